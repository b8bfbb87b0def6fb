import pickle

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

import querymesh as qm
from duckdb_reading import duckdb_sql
from querymesh.errors import QueryError, UnsupportedError
from querymesh.query.aggregate import GroupColumn, aggregate_text, check_aliases, split_aggregate
from querymesh.query.expr import Call, Column, Literal, UserCall
from querymesh.query.parse.query import query
from querymesh.query.render import spark_sql, to_text

TWO = "FROM Stock s [RANGE 60 SECONDS], News n [RANGE 1 HOUR] WHERE s.sector = n.sector"


def inner(sql: str, **functions: object) -> dict[str, object]:
    """The outputs of the query below the aggregates."""
    outputs = query(sql, functions=functions).outputs  # type: ignore[arg-type]
    assert outputs is not None
    return {output.name: output.expr for output in outputs}


def made(sql: str) -> tuple[list[str], list[str], list[str]]:
    """The keys and aggregates as Spark SQL, and the names of what comes out."""
    found = query(sql).aggregate
    assert found is not None
    keys, aggregates = ([each.sql for each in part] for part in (found.keys, found.aggregates))
    return keys, aggregates, [output.name for output in found.outputs]


def test_aggregates_stand_on_top_of_a_query_of_what_they_read():
    sql = f"SELECT s.sector, count(*) AS n, avg(s.price * 2) {TWO} GROUP BY s.sector"
    asked = query(sql + " HAVING count(*) > 3")
    assert inner(sql) == {
        "c1": Column("s", "sector"),
        "c2": Call("*", (Column("s", "price"), Literal(2))),
    }
    assert made(sql) == (["`c1`"], ["count(1)", "avg(`c2`)"], ["sector", "n", "avg(s.price * 2)"])
    below, aggregation = split_aggregate(asked)
    assert below.aggregate is None
    assert below.outputs == asked.outputs
    assert below.sql == asked.sql, "a mesh is saved with the whole text"
    assert aggregation == asked.aggregate
    assert query("SELECT a FROM t").aggregate is None


@pytest.mark.parametrize(
    ("group", "named"),
    [
        ("upper(g)", "upper(g)"),
        ("UPPER(t.G)", "UPPER(g)"),
        ("1", "upper(g)"),
        ("big", "upper(g) AS big"),
        ("BIG", "upper(g) AS big"),
    ],
)
def test_a_group_is_named_by_expression_position_or_alias(group, named):
    found = query(f"SELECT {named}, count(*) FROM t GROUP BY {group}")
    assert found.outputs is not None
    (output,) = found.outputs
    assert output.expr.function == "upper"
    assert found.aggregate is not None
    assert found.aggregate.outputs[0].expr.name == "g1"


def test_a_column_wins_over_an_output_of_its_name_that_is_made_of_it():
    sql = "SELECT upper(g) AS g, count(*) FROM t GROUP BY g"
    assert inner(sql) == {"c1": Column("t", "g")}
    found = query(sql).aggregate
    assert found is not None
    assert found.outputs[0].expr.function == "upper"
    assert found.aliases == ()


def test_a_name_in_group_by_that_is_an_output_and_a_column_is_refused():
    found = query("SELECT a + 1 AS b, count(*) FROM t GROUP BY b").aggregate
    assert found is not None
    check_aliases(found, {"t": pa.schema([("a", pa.int64())])})
    with pytest.raises(QueryError, match=r"b is a column of t .* write t\.b"):
        check_aliases(found, {"t": pa.schema([("a", pa.int64()), ("B", pa.int64())])})


@pytest.mark.parametrize(
    ("selected", "group"),
    [("s.sector", "sector"), ("sector", "s.sector"), ("lower(s.sector)", "sector")],
)
def test_a_bare_name_is_the_column_that_is_written_with_its_relation(selected, group):
    sql = f"SELECT {selected}, count(*) {TWO} GROUP BY {group}"
    assert inner(sql) == {"c1": Column("s", "sector")}


def test_a_bare_name_of_two_relations_is_left_to_the_schemas():
    found = inner(f"SELECT max(s.sector), max(n.sector), count(sector) {TWO}")
    assert found["c3"] == Column(None, "sector")
    with pytest.raises(QueryError, match=r"s\.sector is neither"):
        query(f"SELECT s.sector, max(n.sector) {TWO} GROUP BY sector")


def test_what_is_read_twice_is_made_once_and_constants_go_as_they_are():
    sql = "SELECT sum(a), max(t.A), count(DISTINCT a, b), percentile(a, 0.5, 2), first(a, true)"
    _, aggregates, _ = made(sql + " FROM t")
    assert aggregates == [
        "sum(`c1`)",
        "max(`c1`)",
        "count(DISTINCT `c1`, `c2`)",
        "percentile(`c1`, 0.5BD, 2)",
        "first(`c1`, true)",
    ]
    assert inner("SELECT sum(a = 1), sum(a = 1.0), sum(a = TRUE) FROM t").keys() == {
        "c1", "c2", "c3",
    }  # fmt: skip


def test_a_query_that_only_counts_has_a_column_to_count():
    assert inner("SELECT count(*) FROM t WHERE a > 1") == {"c1": Literal(True)}


def test_user_functions_run_below_the_aggregates():
    price = qm.function(lambda a: pc.multiply(a, 2), returns=pa.int64(), name="twice")
    sql = "SELECT twice(a), sum(twice(b)) FILTER (WHERE twice(a) > 2) AS n FROM t GROUP BY twice(a)"
    found = inner(sql, twice=price)
    assert found["c1"] == UserCall("twice", (Column("t", "a"),))
    assert found["c2"] == UserCall("twice", (Column("t", "b"),))
    asked = query(sql, functions={"twice": price})
    assert asked.aggregate is not None
    assert asked.aggregate.aggregates[0].sql == "sum(`c2`) FILTER (WHERE `c3`)"


def test_a_user_function_wins_over_an_aggregate_of_its_name():
    asked = query("SELECT a FROM t WHERE first(a)", functions={"first": lambda a: a})
    assert asked.conjuncts == (UserCall("first", (Column(None, "a"),)),)
    assert asked.aggregate is None


def test_outputs_of_groups_are_named_as_written():
    sql = "SELECT a, sum(b)/count(*), count(DISTINCT b) FILTER (WHERE s = 'x') + 1, max(b) AS top"
    _, _, names = made(sql + " FROM t GROUP BY a")
    assert names == [
        "a",
        "sum(b) / count(*)",
        "count(DISTINCT b) FILTER (WHERE s = 'x') + 1",
        "top",
    ]


def test_a_constant_stays_one_though_it_is_grouped_by():
    found = query("SELECT 'x' AS k FROM t GROUP BY 'x', g HAVING g LIKE 'x'").aggregate
    assert found is not None
    assert found.having == Call("like", (GroupColumn(None, "g2", "g"), Literal("x")))


def test_time_windows_are_keys_with_fields():
    sql = "SELECT window.start, window.end AS until, window, count(*) FROM t"
    asked = query(sql + " GROUP BY window(ts, '1 hour', '5 minutes')")
    found = asked.aggregate
    assert found is not None
    assert [key.sql for key in found.keys] == ["window(`c1`, '1 hour', '5 minutes')"]
    assert [output.name for output in found.outputs] == ["start", "until", "window", "count(*)"]
    fields = [(output.expr.relation, output.expr.name) for output in found.outputs]
    assert fields == [("g1", "start"), ("g1", "end"), (None, "g1"), (None, "a1")]
    assert found.time == "c1"
    assert inner(asked.sql) == {"c1": Column("t", "ts")}


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT a, count(*) FROM t", "a is neither grouped by nor aggregated"),
        ("SELECT g, a + sum(a) FROM t GROUP BY g", "a is neither grouped"),
        ("SELECT g FROM t GROUP BY g HAVING a > 1", r"any_value\(a\)"),
        (f"SELECT n.sector, count(*) {TWO} GROUP BY s.sector", r"n\.sector is neither"),
        ("SELECT a FROM t WHERE count(*) > 1", "not in a condition on single rows"),
        ("SELECT count(*) FROM t JOIN u ON sum(t.a) = u.a", "not in a condition on single rows"),
        ("SELECT sum(max(a)) FROM t", "inside an aggregate"),
        ("SELECT sum(a) FILTER (WHERE max(a) > 1) FROM t", "inside an aggregate"),
        ("SELECT sum(a) FROM t GROUP BY sum(a)", "is an aggregate"),
        ("SELECT sum(a) AS n FROM t GROUP BY n", r"sum\(a\) is an aggregate"),
        ("SELECT sum(a) FROM t GROUP BY 1", r"sum\(a\) is an aggregate"),
        ("SELECT a FROM t GROUP BY 2", "only 1 to 1"),
        ("SELECT a FROM t GROUP BY 0", "only 1 to 1"),
        ("SELECT * FROM t GROUP BY a", r"SELECT \* of groups"),
        ("SELECT t.*, count(*) FROM t", r"SELECT \* of groups"),
        ("SELECT sum(*) FROM t", "say what to aggregate"),
        ("SELECT count(t.*) FROM t", "say what to aggregate"),
        ("SELECT sum() FROM t", "say what to aggregate"),
        ("SELECT sum(a) AS x, max(a) AS X FROM t", "two output columns are named X"),
        ("SELECT upper(g) AS g FROM t GROUP BY g HAVING g = 'A'", "name of another output"),
        ("SELECT f(sum(a)) FROM t", "f is a Python function.*apply it to the DataFrame"),
        ("SELECT f(a) FROM t GROUP BY a", r"add f\(a\) to GROUP BY"),
        ("SELECT window(ts, '1 minute') FROM t", "time windows are made in GROUP BY"),
        ("SELECT a FROM t WHERE window(ts, '1 minute') = 1", "may stand in SELECT and GROUP BY"),
        ("SELECT window.size FROM t GROUP BY window(ts, '1 day')", r"window\.size is neither"),
        ("SELECT count(*) FROM t GROUP BY window(ts)", "sizes in words"),
        ("SELECT count(*) FROM t GROUP BY window(ts, 60)", "sizes in words"),
        ("SELECT count(*) FROM t GROUP BY window(ts, '1 day') = 1", "stands by itself"),
    ],
)
def test_groups_without_meaning_are_refused(sql, said):
    with pytest.raises(QueryError, match=said):
        query(sql, functions={"f": lambda a: a})


def test_an_unknown_aggregate_waits_for_spark_and_is_refused_without():
    schema = pa.schema([("a", pa.int64())])
    with pytest.raises(QueryError, match="unknown function summ: did you mean 'sum'"):
        query("SELECT summ(a) FROM t").bind({"t": schema})


@pytest.mark.parametrize(
    ("sql", "outputs", "groups"),
    [
        ("hex(a) AS h, count(*) AS n FROM t GROUP BY HEX( t.a )", ["hex( a )"], ["g1", "a1"]),
        ("b.c.d, hex(max(a)) AS m FROM t GROUP BY b.c.d", ["b.c.d", "a"], ["g1", "(hex(a1))"]),
        ("sum(a[0]) AS s FROM t", ["a[0]"], ["a1"]),
        ("count(*) FILTER (WHERE a[0] > 1) AS n FROM t", ["a[0] > 1"], ["a1"]),
        ("concat_ws('-', b.c.d, a) AS x FROM t GROUP BY a, b.c.d", ["a", "b.c.d"],
         ["(concat_ws('-', g2, g1))"]),
        ("hex(window.start) AS w FROM t GROUP BY window(date_trunc('day', ts), '1 day')",
         ["date_trunc('day', ts)"], ["(hex(g1.start))"]),
    ],
)  # fmt: skip
def test_groups_may_hold_what_is_left_to_spark(sql, outputs, groups):
    asked = query(f"SELECT {sql}")
    assert [to_text(output.expr).lower() for output in asked.outputs] == outputs
    found = [spark_sql(output.expr).replace("`", "") for output in asked.aggregate.outputs]
    assert found == groups


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT a FROM t GROUP BY ALL", "ALL: name the columns"),
        ("SELECT a FROM t GROUP BY a WITH ROLLUP", "ROLLUP: name the columns"),
        ("SELECT a FROM t GROUP BY ROLLUP(a)", "ROLLUP"),
        ("SELECT a FROM t GROUP BY GROUPING SETS ((a), ())", "GROUPING SETS"),
        ("SELECT first(a) IGNORE NULLS FROM t", "IGNORE NULLS"),
        ("SELECT collect_list(a ORDER BY a) FROM t", "ORDER BY"),
        ("SELECT count(*) FROM t ORDER BY 1", "ORDER BY: do it on the DataFrame"),
        ("SELECT count(*) FROM t LIMIT 1", "LIMIT: do it on the DataFrame"),
    ],
)
def test_grouping_that_is_not_supported_is_named(sql, said):
    with pytest.raises(UnsupportedError, match=said):
        query(sql)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (
            f"SELECT s.sector, sum(s.price) / count(*) AS m {TWO} GROUP BY s.sector HAVING m > 3",
            "Spark groups by s.sector and computes sum(s.price), count(*), "
            "and keeps the groups with m > 3",
        ),
        ("SELECT count(*) FROM t", "Spark computes count(*) over all rows"),
        ("SELECT a FROM t GROUP BY a, b", "Spark groups by a, b"),
        (
            "SELECT 1 FROM t HAVING count(*) > 1",
            "Spark computes count(*) over all rows, and keeps the row with count(*) > 1",
        ),
    ],
)
def test_what_spark_does_on_top_is_told_in_a_line(sql, text):
    found = query(sql).aggregate
    assert found is not None
    assert aggregate_text(found) == text


def test_a_saved_mesh_has_its_aggregates_back(tmp_path):
    table = pa.table({"g": ["x", "y"] * 50, "a": range(100), "b": range(100)})
    asked = query("SELECT g, sum(a) AS n FROM t WHERE a > 3 AND b < 90 GROUP BY g HAVING n > 1")
    mesh = qm.train(asked, table)
    mesh.save(tmp_path / "mesh.json")
    again = qm.load(tmp_path / "mesh.json")
    assert again.query == asked
    assert again.query.aggregate is not None
    assert pickle.loads(cloudpickle.dumps(again.query)) == asked


KEYS = ["g", "t.g", "a % 3", "upper(g)", "a", "CASE WHEN a > 2 THEN g END"]
AGGREGATES = ["count(*)", "count(b)", "sum(b)", "min(a + b)", "max(g)", "count(DISTINCT a)"]
TYPES = {"a": "BIGINT", "b": "BIGINT", "g": "VARCHAR"}
ROWS = pa.table(
    {
        "g": ["x", "y", None, "X", "y", "x"] * 5,
        "a": [1, 2, 3, None, 5, 0] * 4 + [1, 1, 2, 2, 9, 9],
        "b": [*range(29), None],
    }
)
DUCKDB = duckdb.connect()
DUCKDB.register("t", ROWS)


@st.composite
def grouped_queries(draw):
    """A query for us, and the same for DuckDB with its GROUP BY spelled out."""
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3))
    shown = draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
    first, second = draw(st.sampled_from(AGGREGATES)), draw(st.sampled_from(AGGREGATES[:4]))
    items = [f"{key} AS k{i}" for i, key in enumerate(shown)]
    items += [f"{first} AS v", f"{second} + count(*) * 2 AS w"]
    spelled = []
    for key in keys:
        ways = [key]
        if key in shown:
            ways += [f"k{shown.index(key)}", str(shown.index(key) + 1)]
        spelled.append(draw(st.sampled_from(ways)))
    select = f"SELECT {', '.join(items)} FROM t WHERE b > 2"
    having = draw(st.sampled_from(["", " HAVING w > 9", f" HAVING {second} > 5 AND count(*) < 9"]))
    group = f" GROUP BY {', '.join(spelled)}" if keys else ""
    plain = f" GROUP BY {', '.join(keys)}" if keys else ""
    return select + group + having, select + plain + having


@given(grouped_queries())
@settings(max_examples=100, deadline=None)
def test_the_parts_together_give_what_the_query_asks(pair):
    ours, plain = pair
    asked = query(ours)
    found = asked.aggregate
    assert found is not None
    assert asked.outputs is not None
    rows = ", ".join(f'{duckdb_sql(o.expr, TYPES)} AS "{o.name}"' for o in asked.outputs)
    groups = ", ".join(f'{each.sql.replace("`", chr(34))} AS "{each.name}"'
                       for each in (*found.keys, *found.aggregates))  # fmt: skip
    by = ", ".join(key.sql.replace("`", '"') for key in found.keys) or "()"
    types = {each.name: "BIGINT" for each in (*found.keys, *found.aggregates)}
    outputs = ", ".join(duckdb_sql(o.expr, types) for o in found.outputs)
    kept = "true" if found.having is None else duckdb_sql(found.having, types)
    parts = DUCKDB.sql(
        f"SELECT {outputs} FROM (SELECT {groups} FROM (SELECT {rows} FROM t WHERE b > 2) "
        f"GROUP BY {by}) WHERE {kept}"
    ).fetchall()
    assert sorted(map(repr, parts)) == sorted(map(repr, DUCKDB.sql(plain).fetchall()))
