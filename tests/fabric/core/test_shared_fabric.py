from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import querymesh as qm
from equivalence import FUNCTIONS, as_multiset, in_batches, random_mesh, rows_of, shared_cases
from querymesh.errors import QueryError, SchemaError
from querymesh.fabric.core.operators import MOST_ROWS
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.shared_fabric import SharedFabric
from querymesh.fabric.core.tables import make_tables
from querymesh.mesh.mesh import written_order
from querymesh.query.bind.share import share
from soak import random_cases


def shared(queries, inputs):
    return share([q.bind({r.name: inputs[r.name].schema for r in q.relations}) for q in queries])


def run(queries, inputs, mesh=None, batch_rows=7):
    """Each query's results, and the fabric that made them in one pass."""
    bound = shared(queries, inputs)
    tables = make_tables(bound, {r.alias: inputs[r.name] for r in bound.query.relations})
    fabric = SharedFabric(bound, tables)
    names = tuple(op.name for op in bound.operators)
    router = MeshRouter(mesh or written_order(bound.query, names, bound.precedence))
    out = [
        result
        for batch in in_batches(inputs[bound.source.name], batch_rows)
        for result in fabric.run(batch, router)
    ]
    table = pa.Table.from_batches(out, bound.output_schema)
    results = []
    for k, part in enumerate(bound.parts):
        mine = table.filter(pa.compute.equal(table["query"], k))[f"q{k + 1}"].combine_chunks()
        columns = [mine.field(i) for i in range(mine.type.num_fields)]
        results.append(as_multiset(pa.Table.from_arrays(columns, schema=part.output_schema)))
    return results, fabric


@given(shared_cases(), st.data(), st.integers(1, 40))
@random_cases(40, 60)
def test_queries_in_one_pass_give_what_duckdb_gives_each_of_them(cases, data, batch_rows):
    inputs = {name: table for case in cases for name, table in case.inputs.items()}
    bound = share([case.bound for case in cases])
    mesh = random_mesh(data.draw, bound)
    results, _ = run([case.query for case in cases], inputs, mesh, batch_rows)
    assert results == [case.expected() for case in cases]


def calls_counted():
    """A function that counts the rows it is asked about."""
    asked = Counter()

    def even(a):
        asked.update(a.to_pylist())
        return pa.compute.equal(pa.compute.bit_wise_and(a, pa.scalar(1, a.type)), 0)

    return qm.predicate(even, columns=["id"], name="even"), asked


SECTORS = pa.table({"g": ["tech", "tech", "farm"], "region": ["EU", "US", "EU"]})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "SELECT id FROM Src s WHERE even(s.id) AND s.a > 3",
            "SELECT a FROM Src x WHERE even(x.id) AND x.ok",
        ),
        (
            "SELECT id FROM Src s, Sectors t WHERE s.g = t.g AND even(s.id)",
            "SELECT a FROM Src x WHERE x.ok AND even(x.id)",
        ),
        (
            "SELECT id FROM Src s, Sectors t WHERE s.g = t.g AND even(s.id) AND t.region = 'EU'",
            "SELECT a FROM Src s, Sectors u WHERE s.g = u.g AND even(s.id)",
        ),
    ],
)
def test_a_shared_operator_is_asked_once_a_tuple(first, second):
    even, asked = calls_counted()
    source = rows_of(np.random.default_rng(0), 500)
    queries = [qm.query(sql, functions={"even": even}) for sql in (first, second)]
    inputs = {"Src": source, "Sectors": SECTORS} if "Sectors" in first else {"Src": source}
    _, fabric = run(queries, inputs, batch_rows=100)
    names = [op.name for op in fabric.bound.operators]
    assert names.count("even [q1, q2]") == 1
    assert max(asked.values()) == 1
    index = names.index("even [q1, q2]") + 1
    assert fabric.metrics.by_operator()[index].evaluations == sum(asked.values())


def test_what_no_remaining_query_asks_for_is_skipped():
    source = rows_of(np.random.default_rng(0), 1000)
    queries = [
        qm.query("SELECT id FROM Src s WHERE s.ok AND s.a > 3"),
        qm.query("SELECT id FROM Src s WHERE s.a > 3 AND is_even(s.a)", functions=FUNCTIONS),
    ]
    results, fabric = run(queries, {"Src": source}, batch_rows=100)
    evaluations = {k: v.evaluations for k, v in fabric.metrics.by_operator().items()}
    big = [a is not None and a > 3 for a in source["a"].to_pylist()]
    ok = [bool(v) for v in source["ok"].to_pylist()]
    assert evaluations == {1: 1000, 2: 1000, 3: sum(big)}
    assert sum(results[0].values()) == sum(b and o for b, o in zip(big, ok, strict=True))


def test_functions_of_one_name_that_differ_are_told_apart():
    source = rows_of(np.random.default_rng(0), 200)
    high = qm.predicate(lambda a: pa.compute.greater(a, 5), columns=["a"], name="f")
    low = qm.predicate(lambda a: pa.compute.less(a, 5), columns=["a"], name="f")
    queries = [
        qm.query("SELECT a FROM Src s WHERE f(s.a)", functions={"f": fn}) for fn in (high, low)
    ]
    (first, second), _ = run(queries, {"Src": source})
    assert all(int(row.strip("(),")) > 5 for row in first)
    assert all(int(row.strip("(),")) < 5 for row in second)


def test_a_guard_in_one_query_only_does_not_bind_the_other():
    """`inverse` must come after `a <> 0` in q1; q2 asks it alone. They are two operators."""
    guarded = qm.predicate(
        lambda a: pa.compute.greater(a, 1), columns=["a"], name="inverse", after=["s.a <> 0"]
    )
    bare = qm.predicate(guarded.fn, columns=["a"], name="inverse")
    q1 = qm.query(
        "SELECT a FROM Src s WHERE s.a <> 0 AND inverse(s.a)", functions={"inverse": guarded}
    )
    q2 = qm.query("SELECT a FROM Src s WHERE inverse(s.a)", functions={"inverse": bare})
    schema = rows_of(np.random.default_rng(0), 1).schema
    bound = share([q.bind({"Src": schema}) for q in (q1, q2)])
    assert [op.after for op in bound.operators] == [frozenset(), frozenset({1}), frozenset()]


def test_queries_over_different_sources_do_not_share_a_pass():
    schema = rows_of(np.random.default_rng(0), 1).schema
    bounds = [qm.query(f"SELECT * FROM {n} WHERE a > 1").bind({n: schema}) for n in ("A", "B")]
    with pytest.raises(SchemaError, match="must read the same source, but these read a and b"):
        share(bounds)
    with pytest.raises(QueryError, match="there is no query"):
        share([])


def test_results_are_handed_on_before_they_are_too_many():
    source = rows_of(np.random.default_rng(0), 1000)
    many = pa.table({"g": ["tech"] * 400 + ["farm"] * 400 + ["mine"] * 400})
    queries = [
        qm.query("SELECT s.id FROM Src s, Many t WHERE s.g = t.g"),
        qm.query("SELECT s.id, s.a FROM Src s WHERE s.ok"),
    ]
    bound = shared(queries, {"Src": source, "Many": many})
    tables = make_tables(bound, {"s": source, "t": many})
    fabric = SharedFabric(bound, tables)
    router = MeshRouter(written_order(bound.query, ("t [q1]", "s.ok [q2]"), bound.precedence))
    batch = source.combine_chunks().to_batches()[0]
    pieces = [result.num_rows for result in fabric.run(batch, router)]
    assert len(pieces) > 2
    assert max(pieces) < 2 * MOST_ROWS


def test_a_query_that_joins_a_table_twice_has_two_look_ups_of_it():
    source = rows_of(np.random.default_rng(0), 60)
    query = qm.query(
        "SELECT s.id, t.region, u.region AS other FROM Src s, Sectors t, Sectors u "
        "WHERE s.g = t.g AND s.g = u.g AND t.region < u.region"
    )
    (once, again), fabric = run([query, query], {"Src": source, "Sectors": SECTORS})
    tech = sum(g == "tech" for g in source["g"].to_pylist())
    assert once == again
    assert sum(once.values()) == tech
    assert len(fabric.bound.operators) == 3


def test_literals_that_python_takes_for_equal_stay_apart():
    source = pa.table({"s": ["1", "1", "true", "1.0"]})
    queries = [
        qm.query(f"SELECT s FROM Src WHERE s = CAST({literal} AS STRING)")
        for literal in ("1", "TRUE")
    ]
    (ones, trues), _ = run(queries, {"Src": source})
    assert (sum(ones.values()), sum(trues.values())) == (2, 1)


def test_a_lottery_hears_only_of_what_was_evaluated():
    """Operator 3 is q2's alone: rows that left q2 skip it, and it must not look like a dropper."""
    source = rows_of(np.random.default_rng(0), 6000)
    queries = [
        qm.query("SELECT id FROM Src s WHERE s.a > 3 AND s.id >= 0"),
        qm.query("SELECT id FROM Src s WHERE s.ok AND s.id > -9"),
    ]
    bound = shared(queries, {"Src": source})
    names = tuple(op.name for op in bound.operators)
    mesh = replace(
        written_order(bound.query, names, bound.precedence), uncertain=(((1, 2, 3, 4),),)
    )
    results, fabric = run(queries, {"Src": source}, mesh, batch_rows=50)
    for index, visits in fabric.metrics.by_operator().items():
        assert visits.passed <= visits.evaluations <= 6000, index
    alone = [run([query], {"Src": source})[0][0] for query in queries]
    assert results == alone
