"""Several queries as one set of operators: what they share, and what stays apart."""

import pyarrow as pa
import pytest

from querymesh.errors import QueryError, SchemaError
from querymesh.query.bind.share import MOST_QUERIES, SharedQuery, queries_in, result_name, share
from querymesh.query.model import Lookup
from querymesh.query.parse.query import query
from querymesh.query.predicate.decorators import predicate
from querymesh.query.predicate.predicate import Predicate

SCHEMAS = {
    "s": pa.schema([("a", pa.int64()), ("k", pa.int64()), ("price", pa.float64())]),
    "n": pa.schema([("k", pa.int64()), ("label", pa.string())]),
    "m": pa.schema([("k", pa.int64())]),
}


def shared(*texts: str, functions: list[dict[str, Predicate]] | None = None) -> SharedQuery:
    known = functions or [{}] * len(texts)
    return share([query(t, functions=f).bind(SCHEMAS) for t, f in zip(texts, known, strict=True)])


def served(found: SharedQuery) -> dict[str, int]:
    return {op.name: mask for op, mask in zip(found.operators, found.serves, strict=True)}


def test_a_condition_of_two_queries_is_one_operator() -> None:
    found = shared(
        "SELECT a FROM s WHERE price > 10 AND a = 1",
        "SELECT k FROM s AS x WHERE x.k = 2 AND x.price > 10",
    )
    assert served(found) == {"price > 10 [q1, q2]": 0b11, "a = 1 [q1]": 0b01, "k = 2 [q2]": 0b10}
    assert [op.index for op in found.operators] == [1, 2, 3]
    assert found.everyone == 0b11
    first, second = found.parts
    assert [op.index for op in first.operators] == [1, 2]
    assert [op.index for op in second.operators] == [1, 3]
    assert second.source.alias == "s"


def test_rows_tell_their_query_and_have_a_struct_for_each() -> None:
    found = shared("SELECT a FROM s", "SELECT price AS p, k FROM s")
    assert found.output_schema == pa.schema(
        [
            ("query", pa.int32()),
            ("q1", pa.struct([("a", pa.int64())])),
            ("q2", pa.struct([("p", pa.float64()), ("k", pa.int64())])),
        ]
    )
    assert [result_name(number) for number in queries_in(0b110)] == ["q2", "q3"]


def test_constants_that_are_equal_in_python_alone_stay_apart() -> None:
    found = shared("SELECT a FROM s WHERE a = 1", "SELECT a FROM s WHERE (a = 1) = TRUE")
    assert list(served(found).values()) == [0b01, 0b10]


def test_a_look_up_is_shared_where_table_keys_and_rows_are_the_same() -> None:
    found = shared(
        "SELECT s.a FROM s, n WHERE s.k = n.k AND n.label = 'x'",
        "SELECT r.label FROM s AS t, n AS r WHERE r.k = t.k AND r.label = 'x'",
        "SELECT n.label FROM s, n WHERE s.k = n.k AND n.label = 'y'",
        "SELECT n.label FROM s, n WHERE s.a = n.k AND n.label = 'x'",
        "SELECT s.a FROM s, m WHERE s.k = m.k",
    )
    assert list(served(found).values()) == [0b00011, 0b00100, 0b01000, 0b10000]
    lookups = [op for op in found.operators if isinstance(op, Lookup)]
    assert [op.relation for op in lookups] == ["n", "n_2", "n_3", "m"]
    assert [(relation.name, relation.alias) for relation in found.query.relations] == [
        ("s", "s"), ("n", "n"), ("n", "n_2"), ("n", "n_3"), ("m", "m"),
    ]  # fmt: skip
    assert found.static_filters["n"] != found.static_filters["n_2"]
    assert found.static_filters["m"] == ()
    assert found.schemas["n_2"] == SCHEMAS["n"]
    (output,) = found.parts[1].outputs
    assert (output.name, output.expr.relation) == ("label", "n")  # type: ignore[union-attr]


def test_a_query_that_joins_a_table_twice_has_two_look_ups() -> None:
    twice = "SELECT n.label FROM s, n, n AS r WHERE s.k = n.k AND s.k = r.k"
    found = shared(twice, twice)
    assert list(served(found).values()) == [0b11, 0b11]


def test_functions_that_differ_under_one_name_are_told_apart() -> None:
    one, other = (predicate(lambda a: a, name="f", columns=["a"]) for _ in range(2))
    sql = "SELECT a FROM s WHERE f(a)"
    found = shared(sql, sql, sql, functions=[{"f": one}, {"f": other}, {"f": one}])
    assert served(found) == {"f [q1, q3]": 0b101, "f #2 [q2]": 0b010}
    assert dict(found.query.functions) == {"f": one, "f_2": other}


def test_a_guarded_condition_is_not_the_same_as_one_without_a_guard() -> None:
    bare = predicate(lambda a: a, name="f", columns=["a"])
    sql = "SELECT a FROM s WHERE a > 1 AND CASE WHEN price > 1 THEN f(a) END"
    guarded = predicate(bare.fn, name="f", columns=["a"], after=["a > 1"])
    found = shared(sql, sql, functions=[{"f": bare}, {"f": guarded}])
    assert list(served(found).values()) == [0b11, 0b01, 0b10]
    assert [op.after for op in found.operators] == [frozenset(), frozenset(), frozenset({1})]


def test_what_cannot_share_a_pass_is_refused() -> None:
    with pytest.raises(QueryError, match="give at least one"):
        share([])
    with pytest.raises(SchemaError, match="these read m and n: run them apart"):
        share([query(f"SELECT * FROM {name}").bind(SCHEMAS) for name in ("n", "m")])
    bound = query("SELECT a FROM s WHERE a = 1").bind(SCHEMAS)
    assert len(share([bound] * MOST_QUERIES).parts) == MOST_QUERIES
    with pytest.raises(QueryError, match="at most 62 queries share one pass, not 63"):
        share([bound] * (MOST_QUERIES + 1))
