"""What only Spark understands of a query: the same rows as Spark's own SQL gives."""

import pytest

import querymesh as qm
from equivalence import as_multiset
from odd_events import FUNCTIONS, PLAIN, WINDOWED, agrees

CONDITIONS = [
    "payload.size > 3",
    "e.payload.user = 'u1'",
    "arr[0] > 2",
    "exists(arr, x -> x > 4)",
    "get_json_object(body, '$.y') = 'k1'",
    "from_json(body, 'x INT').x > 4",
    "ts > timestamp '2024-01-01' + interval 2 minutes",
    "cast(day as timestamp) > timestamp '2024-01-10'",
    "try_add(try_cast(number as double), 1) > 20.5",
    "extract(minute from ts) = 1 AND payload.tags[1] IN (1, 2)",
    "e.attributes['a'] BETWEEN 5 AND 7",
    "number RLIKE '(?=1)1'",
    "(payload.size = 1 OR exists(arr, x -> x = 5 AND x > 1)) AND hex(id) LIKE '%A%'",
    "CASE WHEN arr[0] > 1 THEN payload.size END = 2",
    "day LIKE ANY ('%1', '%2') AND trim(both '2' from day) <> ''",
    "id < 99999999999999999999 AND id & 1 = 1",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_on_one_relation_is_an_operator_like_any(spark, tables, condition):
    agrees(spark, tables, f"SELECT id, body FROM Event e WHERE id > 4 AND {condition}")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_beside_a_lookup_is_below_it(spark, tables, condition):
    sql = (
        "SELECT e.id, u.level FROM Event e JOIN Users u ON e.payload.user = u.user "
        f"WHERE {condition}"
    )
    live = agrees(spark, tables, sql)
    assert [operator.name for operator in live.mesh.operators] == ["u"]
    assert not any("u.user" in name for name in live.left_to_spark), "the join is ours"


OUTPUTS = (
    "e.payload.size, e.payload.tags[0] AS tag, get_json_object(e.body, '$.x') AS x, "
    "transform(e.arr, x -> x + e.id)[1] AS moved, cast(e.value AS decimal(10,2)) AS exact, "
    "e.ts + interval 1 day AS later, date_trunc('minute', e.ts) AS minute, e.id"
)


def test_outputs_of_one_relation_are_as_spark_makes_them(spark, tables):
    agrees(spark, tables, f"SELECT {OUTPUTS} FROM Event e WHERE arr[0] = 1")
    agrees(spark, tables, "SELECT *, payload.user AS who FROM Event WHERE payload.size = 1")
    agrees(spark, tables, "SELECT hex(7) AS h FROM Event WHERE id < 9")


def test_outputs_beside_a_lookup_are_as_spark_makes_them(spark, tables):
    linked = "FROM Event e JOIN Users u ON e.payload.user = u.user"
    agrees(spark, tables, f"SELECT u.info.name, e.payload.size * u.level AS n, {OUTPUTS} {linked}")
    agrees(spark, tables, f"SELECT e.*, hex(e.id + u.level) AS h {linked} WHERE u.info.quota > 1")


@pytest.mark.parametrize(
    "condition",
    [
        "e.payload.user = u.user AND e.payload.size < u.info.quota",
        "e.payload.user = u.user AND array_contains(e.arr, u.level)",
        "concat('u', string(e.payload.size)) = u.user AND e.arr[1] >= u.level",
        "e.id % 4 = u.info.quota / 2 AND exists(e.arr, x -> x > u.level)",
        "cast(e.id as decimal(20,0)) + 9007199254740992BD = u.level + 9007199254740992BD",
    ],
)
def test_what_links_two_relations_may_be_anything_spark_compares(spark, tables, condition):
    agrees(spark, tables, f"SELECT e.id, u.level FROM Event e, Users u WHERE {condition}")


def test_a_table_given_as_arrow_is_filtered_by_spark_too(spark, tables):
    given = {**tables, "Users": tables["Users"].toArrow()}
    sql = (
        "SELECT e.id, u.info.name FROM Event e, Users u "
        "WHERE e.payload.user = u.user AND u.info.quota > 2"
    )
    agrees(spark, given, sql)


def test_a_column_that_using_merges_may_stand_in_it(spark, tables):
    users = tables["Users"].withColumn("id", tables["Users"].level.cast("bigint"))
    users.createOrReplaceTempView("Named")
    sql = (
        "SELECT hex(id) AS h, u.info.name FROM Event e JOIN Named u USING (id) "
        "WHERE hex(id) < '3' AND hex(u.id) > '0'"
    )
    agrees(spark, {**tables, "Named": users}, sql)


def test_one_relation_under_two_aliases_has_columns_of_each(spark, tables):
    sql = (
        "SELECT e.id, a.level, b.info.name FROM Event e, Users a, Users b "
        "WHERE e.payload.user = a.user AND concat('u', string(e.payload.size)) = b.user "
        "AND a.info.quota <> 2 AND hex(b.level) > '0'"
    )
    agrees(spark, tables, sql)


@pytest.mark.parametrize(
    ("outputs", "condition"),
    [
        ("e.id AS e, c.id AS c", "e.payload.tags[0] = 1"),
        ("e.id AS e, c.payload.user", "exists(c.arr, x -> x > 4) AND e.body LIKE '%k1%'"),
        ("e.id AS e, e.arr[0] + c.arr[0] AS n", "get_json_object(c.body, '$.x') = e.arr[0]"),
        ("hex(e.id) AS h, c.ts + interval 1 day AS later", "c.payload.user = 'u1'"),
        ("e.payload, c.attributes AS m", "array_contains(e.arr, c.payload.size)"),
    ],
)
def test_a_window_join_of_nested_events_is_as_spark_joins_them(spark, tables, outputs, condition):
    sql = f"SELECT {outputs} {WINDOWED} AND {condition}"
    plain = f"SELECT {outputs} {PLAIN} AND {condition}"
    agrees(spark, tables, sql, plain=plain, time="ts", shards=2)


def test_streams_may_be_linked_by_what_only_spark_evaluates(spark, tables):
    link = "array_contains(e.arr, c.payload.size) AND e.id % 10 = 1"
    sql = f"SELECT e.id AS e, c.id AS c {WINDOWED.partition('WHERE')[0]} WHERE {link}"
    plain = f"SELECT e.id AS e, c.id AS c {PLAIN.partition('AND e.payload')[0]} AND {link}"
    agrees(spark, tables, sql, plain=plain, time="ts")


def test_rows_that_a_window_counts_are_counted_before_sparks_conditions(spark, tables):
    """[ROWS 5] holds the last five arrivals, whether or not a condition drops some of them."""
    sql = (
        "SELECT e.id AS e, c.id AS c FROM Event e [ROWS 5], Click c [ROWS 5] "
        "WHERE e.arr[0] = c.arr[0] AND {0}"
    )
    ours = qm.query(sql.format("e.id % 2 = 0"), time="ts")
    sparks = qm.query(sql.format("conv(right(bin(e.id), 1), 2, 10) = '0'"), time="ts")
    inputs = {name: tables[name].orderBy("ts").coalesce(1) for name in ("Event", "Click")}
    expected = as_multiset(qm.run(ours, inputs).toArrow())
    assert as_multiset(qm.run(sparks, inputs).toArrow()) == expected
    assert expected.total() > 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM Event WHERE even(payload.size) AND arr[0] > 1",
        "SELECT id, twice(payload.size) AS t, payload.user FROM Event WHERE even(arr[0])",
        "SELECT id FROM Event WHERE hex(twice(id)) LIKE '1%' AND arr[0] > 1",
        "SELECT hex(twice(e.id)) AS h FROM Event e, Users u WHERE e.payload.user = u.user "
        "AND even(e.payload.size) AND conv(twice(e.arr[0]), 10, 2) > u.level",
    ],
)
def test_python_functions_stand_beside_within_and_around_it(spark, tables, sql):
    agrees(spark, tables, sql, functions=FUNCTIONS)


def test_groups_may_be_made_of_it(spark, tables):
    agrees(
        spark,
        tables,
        "SELECT date_trunc('minute', ts) AS minute, count(*) AS n, hex(sum(payload.size)) AS h "
        "FROM Event e WHERE payload.size > 1 GROUP BY date_trunc('minute', e.ts) "
        "HAVING hex(count(*)) <> 'A'",
    )
    agrees(
        spark,
        tables,
        "SELECT u.info.name AS who, max(get_json_object(e.body, '$.x')) AS x, "
        "count(*) FILTER (WHERE e.arr[0] > 1) AS n, concat_ws('-', u.info.name, max(u.level)) AS c "
        "FROM Event e, Users u WHERE e.payload.user = u.user GROUP BY u.info.name",
    )


def test_a_guard_written_before_a_condition_that_may_raise_comes_before_it(spark, tables):
    guarded = "number <> 'none' AND cast(number as decimal(5,1)) > 20.5"
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    agrees(spark, tables, f"SELECT id FROM Event e WHERE {guarded}")
    agrees(
        spark,
        tables,
        f"SELECT e.id, u.level FROM Event e, Users u WHERE e.payload.user = u.user AND {guarded}",
    )
    sql = f"SELECT e.id AS e, c.id AS c {WINDOWED} AND e.{guarded.replace('(', '(e.')}"
    plain = f"SELECT e.id AS e, c.id AS c {PLAIN} AND e.{guarded.replace('(', '(e.')}"
    agrees(spark, tables, sql.replace("(e.5", "(5"), plain=plain.replace("(e.5", "(5"), time="ts")
