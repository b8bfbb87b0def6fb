from collections.abc import Mapping
from decimal import Decimal

import pyarrow as pa
import pytest

from querymesh.errors import QueryError, SchemaError, UnsupportedError
from querymesh.query.expr import Call, Cast, Column, Expr, Literal
from querymesh.query.model import BoundQuery, Filter, Lookup
from querymesh.query.parse.query import query, where
from querymesh.query.predicate.decorators import predicate
from querymesh.query.predicate.predicate import Predicate

SCHEMAS = {
    "Stock": pa.schema(
        [
            ("symbol", pa.string()),
            ("sector", pa.int32()),
            ("price", pa.decimal128(9, 2)),
            ("data", pa.string()),
            ("ts", pa.timestamp("us", "Europe/Berlin")),
        ]
    ),
    "News": pa.schema([("sector", pa.int64()), ("kind", pa.string()), ("rid", pa.int64())]),
    "Research": pa.schema([("rid", pa.float64()), ("score", pa.float64()), ("day", pa.date32())]),
}


def yes(name: str, after: object = (), columns: object = ()) -> Predicate:
    return predicate(lambda *args: args[0], name=name, after=after, columns=columns)  # type: ignore[arg-type]


def bound(sql: str, functions: Mapping[str, Predicate] | None = None, **more: str) -> BoundQuery:
    return query(sql, functions=functions, **more).bind(SCHEMAS)


def test_operators_stand_in_the_order_written_with_what_must_come_before() -> None:
    found = bound(
        """SELECT s.symbol FROM Stock s, News n, Research r
           WHERE bullish(s.data) AND r.rid = n.rid AND n.kind LIKE 'a%' AND s.sector = n.sector
             AND s.price > 5 AND r.score > s.price AND guarded()""",
        {"bullish": yes("bullish"), "guarded": yes("guarded", ["PRICE > 5", "r"], ["s.data"])},
    )
    assert [(op.index, op.name, op.after) for op in found.operators] == [
        (1, "bullish", frozenset()),
        (2, "r", frozenset({3})),
        (3, "n", frozenset()),
        (4, "s.price > 5", frozenset()),
        (5, "r.score > s.price", frozenset({2, 3})),
        (6, "guarded", frozenset({2, 3, 4})),
    ]
    assert found.source.alias == "s"
    assert list(found.static_filters) == ["n"]
    assert found.precedence[5] == frozenset({2, 3, 4})


def test_a_lookup_has_all_its_keys_however_they_are_written() -> None:
    found = bound(
        "SELECT price FROM Stock s JOIN News n ON n.sector = s.sector + 1 AND kind = symbol"
    )
    (lookup,) = found.operators
    assert isinstance(lookup, Lookup)
    assert lookup.build_keys == (Column("n", "sector"), Column("n", "kind"))
    assert lookup.probe_keys[1] == Column("s", "symbol")


def test_keys_of_integers_and_doubles_meet_as_doubles() -> None:
    found = bound("SELECT kind FROM News n, Research r WHERE n.rid = r.rid")
    (lookup,) = found.operators
    assert isinstance(lookup, Lookup)
    assert lookup.probe_keys == (Cast(Column("n", "rid"), "double", implicit=True),)


def test_names_are_found_whatever_their_case() -> None:
    found = bound("SELECT SYMBOL, S.Price AS p FROM stock S WHERE s.SECTOR = 1")
    assert found.output_schema.names == ["symbol", "p"]
    (condition,) = found.operators
    assert isinstance(condition, Filter)
    assert condition.expr == Call("=", (Column("S", "sector"), Literal(1)))
    assert condition.name == "sector = 1"


def test_columns_keep_their_types_and_expressions_get_theirs() -> None:
    found = bound("SELECT price, sector, sector + 1, price * 2 AS d, symbol = 'x' AS b FROM Stock")
    assert found.output_schema == pa.schema(
        [
            ("price", pa.decimal128(9, 2)),
            ("sector", pa.int32()),
            ("sector + 1", pa.int64()),
            ("d", pa.decimal128(11, 2)),
            ("b", pa.bool_()),
        ]
    )


def test_a_star_prefixes_columns_that_two_relations_share() -> None:
    found = bound("SELECT * FROM News n, Research r WHERE n.rid = r.rid")
    assert found.output_schema.names == ["sector", "kind", "n_rid", "r_rid", "score", "day"]
    merged = bound("SELECT *, rid + 1 AS next FROM News JOIN Research USING (rid)")
    assert merged.output_schema.names == ["sector", "kind", "rid", "score", "day", "next"]


def test_a_table_may_be_joined_with_itself() -> None:
    found = bound("SELECT a.kind, b.kind AS other FROM News a, News b WHERE a.rid = b.sector")
    assert found.output_schema.names == ["kind", "other"]
    assert set(found.schemas) == {"a", "b"}


def test_equal_names_are_told_apart() -> None:
    names = [
        op.name
        for op in where(["a > 1", "a > 1"]).bind({"input": pa.schema([("a", pa.int8())])}).operators
    ]
    assert names == ["a > 1", "a > 1 #2"]


def test_literals_are_read_as_what_they_stand_beside() -> None:
    found = bound("SELECT symbol FROM Stock WHERE ts >= '2024-07-01' AND sector < 1.5D")
    moment, number = (op.expr for op in found.operators if isinstance(op, Filter))
    assert isinstance(moment, Call)
    assert str(moment.args[1].value) == "2024-06-30 22:00:00+00:00"  # type: ignore[union-attr]
    assert number == Call(
        "<", (Cast(Column("Stock", "sector"), "double", implicit=True), Literal(1.5))
    )


def test_a_literal_with_a_point_is_a_decimal_and_makes_one_of_an_integer_beside_it() -> None:
    found = bound("SELECT symbol FROM Stock WHERE sector < 1.5 AND price < 1.5 AND price = 2")
    whole, same, shorter = (op.expr for op in found.operators if isinstance(op, Filter))
    sector, price = Column("Stock", "sector"), Column("Stock", "price")

    def exactly(expr: Expr, name: str) -> Cast:
        return Cast(expr, name, implicit=True)

    point, two = Literal(Decimal("1.5")), Literal(Decimal(2))
    assert whole == Call("<", (exactly(sector, "decimal(11,1)"), exactly(point, "decimal(11,1)")))
    assert same == Call("<", (price, exactly(point, "decimal(9,2)")))
    assert shorter == Call("=", (price, exactly(two, "decimal(9,2)")))


def test_the_windowed_relation_is_the_source() -> None:
    sql = "SELECT kind FROM News n, Stock s [RANGE 1 HOUR] WHERE n.sector = s.sector"
    assert bound(sql).source.alias == "s"
    sql = "SELECT kind FROM News n, Stock s WHERE n.sector = s.sector WINDOW 60 seconds"
    assert bound(sql, time="ts").source.alias == "s"
    with pytest.raises(UnsupportedError, match="n, s are windowed streams"):
        bound(sql)
    with pytest.raises(SchemaError, match="time column moment"):
        bound(sql, time="moment")


def test_no_conditions_are_no_operators() -> None:
    assert bound("SELECT symbol FROM Stock").operators == ()
    (constant,) = bound("SELECT symbol FROM Stock WHERE NULL").operators
    assert constant.name == "NULL"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT a FROM Stok", "no input is given for Stok: did you mean 'Stock'"),
        ("SELECT pirce FROM Stock", "Stock has no column pirce: did you mean 'price'.*symbol"),
        ("SELECT s.pirce FROM Stock s", "Stock s has no column pirce"),
        ("SELECT z.price FROM Stock s", "unknown relation z in z.price"),
        ("SELECT z.* FROM Stock s", r"unknown relation z in z\.\*"),
        ("SELECT sector FROM Stock s, News n WHERE s.sector = n.sector", "s.sector, n.sector"),
        ("SELECT symbol FROM Stock WHERE symbol > 5", "symbol > 5.*STRING and BIGINT"),
        ("SELECT symbol FROM Stock WHERE NOT sector", "NOT sector.*boolean.*BIGINT"),
        ("SELECT symbol FROM Stock WHERE sector", "sector is BIGINT, not a condition"),
        ("SELECT symbol + 1 FROM Stock", r"symbol \+ 1.*numbers"),
        ("SELECT symbol FROM Stock WHERE ts > 'soon'", "'soon' is no TIMESTAMP"),
        ("SELECT symbol FROM Stock, News WHERE symbol = News.rid", "STRING and BIGINT"),
        ("SELECT symbol FROM Stock s, Research r WHERE s.ts = r.day", "of one kind, not TIMESTAMP"),
    ],
)
def test_queries_that_do_not_fit_the_data_name_what_does(sql: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        bound(sql)


def test_a_cross_join_asks_for_an_equality() -> None:
    with pytest.raises(
        QueryError, match=r"no equality links n to s: add one, such as s\.key = n\.key"
    ):
        bound("SELECT symbol FROM Stock s, News n WHERE s.sector > n.sector")


def test_two_outputs_of_one_name_are_refused() -> None:
    with pytest.raises(QueryError, match="two output columns are named sector"):
        bound("SELECT s.sector, n.sector FROM Stock s, News n WHERE s.sector = n.sector")


def test_a_cast_without_a_shared_meaning_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="TIMESTAMP to STRING"):
        bound("SELECT CAST(ts AS STRING) AS t FROM Stock")


def test_after_may_name_a_function_a_lookup_or_a_condition() -> None:
    for name, expected in (("first", 1), ("FIRST", 1), ("n", 2), ("sector in (1,2)", 3)):
        found = bound(
            """SELECT symbol FROM Stock s, News n
               WHERE first(data) AND s.sector = n.sector AND S.Sector IN (1, 2)
                 AND last(data)""",
            {"first": yes("first"), "last": yes("last", name if " " not in name else "s." + name)},
        )
        assert found.operators[3].after == {expected}


def test_an_unknown_after_offers_the_nearest_name() -> None:
    with pytest.raises(QueryError, match=r"'frist', which is no operator.*did you mean 'first'"):
        bound(
            "SELECT symbol FROM Stock WHERE first(data) AND last(data)",
            {"first": yes("first"), "last": yes("last", "frist")},
        )


def test_after_may_name_a_predicate_as_it_is_shown_whatever_its_case() -> None:
    found = bound(
        "SELECT symbol FROM Stock WHERE guarded(data) AND f(data)",
        {"f": yes("Bullish"), "guarded": yes("guarded", ["bullISH"])},
    )
    assert [op.name for op in found.operators] == ["guarded", "Bullish"]
    assert found.operators[0].after == {2}


def test_a_look_up_stands_where_its_first_key_is_written() -> None:
    found = bound(
        "SELECT price FROM Stock s, News n "
        "WHERE n.sector = s.sector AND s.price > 5 AND n.kind = s.symbol"
    )
    assert [op.name for op in found.operators] == ["n", "s.price > 5"]


def test_a_circle_of_after_is_shown() -> None:
    with pytest.raises(QueryError, match="a -> c -> b -> a"):
        bound(
            "SELECT symbol FROM Stock WHERE a(data) AND b(data) AND c(data)",
            {"a": yes("a", "c"), "b": yes("b", "a"), "c": yes("c", "b")},
        )
    with pytest.raises(QueryError, match="a -> a"):
        bound("SELECT symbol FROM Stock WHERE a(data)", {"a": yes("a", "a")})
