"""What only Spark understands of a query: the same rows as Spark's own SQL gives."""

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

import querymesh as qm
from equivalence import as_multiset

SCHEMA = (
    "id BIGINT, payload STRUCT<size: INT, user: STRING, tags: ARRAY<INT>>, arr ARRAY<INT>, "
    "attributes MAP<STRING, INT>, body STRING, day STRING, number STRING, value DOUBLE, "
    "ts TIMESTAMP"
)


def event(i):
    return {
        "id": i,
        "payload": None
        if i % 13 == 0
        else {"size": i % 7, "user": f"u{i % 5}", "tags": [i % 3, i % 4]},
        "arr": [i % 5, i % 6],
        "attributes": {"a": i % 9},
        "body": f'{{"x": {i % 9}, "y": "k{i % 3}"}}',
        "day": f"2024-01-{1 + i % 28:02d}",
        "number": f"{i % 50}.{i % 10}" if i % 11 else "none",
        "value": i * 1.5,
        "ts": dt.datetime(2024, 1, 1) + dt.timedelta(seconds=i),
    }


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """Events, the same with other numbers, and a small table of users; also as views."""
    found = {}
    for name, first, rows in (("Event", 0, 300), ("Click", 100, 200)):
        folder = str(tmp_path_factory.mktemp(name))
        made = spark.createDataFrame([event(i) for i in range(first, first + rows)], SCHEMA)
        made.repartition(2).write.mode("overwrite").parquet(folder)
        found[name] = spark.read.parquet(folder)
    users = [(f"u{k}", k, {"quota": k * 2, "name": f"n{k}"}) for k in range(4)]
    found["Users"] = spark.createDataFrame(
        users, "user STRING, level INT, info STRUCT<quota: INT, name: STRING>"
    )
    for name, frame in found.items():
        frame.createOrReplaceTempView(name)
    spark.udf.register("even", lambda x: None if x is None else x % 2 == 0, "boolean")
    spark.udf.register("twice", lambda x: None if x is None else 2 * x, "bigint")
    return found


@qm.predicate
def even(x):
    return pc.equal(pc.bit_wise_and(x, 1), 0)


@qm.function(returns=pa.int64())
def twice(x):
    return pc.multiply(x, pa.scalar(2, pa.int64()))


FUNCTIONS = {"even": even, "twice": twice}


def agrees(spark, tables, sql, *, plain=None, time=None, functions=None, **options):
    """The run of the query, once its result is what Spark's own SQL gives."""
    asked = qm.query(sql, time=time, functions=functions)
    names = {relation.name for relation in asked.relations}
    out = qm.run(asked, {name: tables[name] for name in names}, **options)
    expected = spark.sql(plain or sql)
    assert out.columns == expected.columns
    types = [field.dataType for field in expected.schema]
    assert [field.dataType for field in out.schema] == types
    found = as_multiset(out.toArrow())
    assert found == as_multiset(expected.toArrow())
    assert found.total() > 0, "a comparison of nothing with nothing"
    return qm.inspect(out)


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


WINDOWED = (
    "FROM Event e [RANGE 60 SECONDS], Click c [RANGE 30 SECONDS] WHERE e.payload.size = c.arr[1]"
)
PLAIN = (
    "FROM Event e, Click c WHERE greatest(e.ts, c.ts) - e.ts <= interval 60 seconds "
    "AND greatest(e.ts, c.ts) - c.ts <= interval 30 seconds AND e.payload.size = c.arr[1]"
)


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


def test_every_engine_and_policy_gives_the_same(spark, tables):
    sql = "SELECT id, payload.size FROM Event WHERE arr[0] > 1 AND even(id) AND body RLIKE 'k1'"
    for options in ({"engine": "fabric"}, {"policy": "eddy"}, {"policy": "single"}):
        agrees(spark, tables, sql, functions=FUNCTIONS, **options)
    sql = "SELECT id, payload.size FROM Event WHERE arr[0] > 1 AND body RLIKE 'k1'"
    live = agrees(spark, tables, sql, engine="native")
    assert live.engine == "native"


def test_a_sample_of_ones_own_is_read_in_the_same_way(spark, tables):
    sql = "SELECT id FROM Event WHERE arr[0] > 1 AND body RLIKE 'k1' AND even(payload.size)"
    for sample in (tables["Event"].limit(50), tables["Event"].toArrow()):
        agrees(spark, tables, sql, functions=FUNCTIONS, sample=sample)
    sql = "SELECT e.id, u.level FROM Event e, Users u WHERE e.payload.user = u.user AND even(e.id)"
    agrees(spark, tables, sql, functions=FUNCTIONS, sample=tables["Event"].toArrow())
    sql = f"SELECT e.id AS e, c.id AS c {WINDOWED} AND e.payload.tags[0] = 1"
    plain = f"SELECT e.id AS e, c.id AS c {PLAIN} AND e.payload.tags[0] = 1"
    sample = {name: tables[name].toArrow() for name in ("Event", "Click")}
    agrees(spark, tables, sql, plain=plain, time="ts", sample=sample)


def test_a_mesh_of_it_is_trained_saved_and_loaded(spark, tables, tmp_path):
    for sql in (
        "SELECT id, payload.size FROM Event e "
        "WHERE e.arr[0] > 1 AND even(id) AND e.body RLIKE 'k1'",
        "SELECT e.id, u.info.name FROM Event e, Users u "
        "WHERE e.payload.user = u.user AND even(e.id) AND e.arr[0] > 1",
    ):
        asked = qm.query(sql, functions=FUNCTIONS)
        inputs = {relation.name: tables[relation.name] for relation in asked.relations}
        mesh = qm.train(asked, inputs)
        assert mesh.is_learned
        mesh.save(tmp_path / "mesh.json")
        loaded = qm.load(tmp_path / "mesh.json", functions=FUNCTIONS)
        expected = as_multiset(spark.sql(sql).toArrow())
        for each in (mesh, loaded):
            assert as_multiset(qm.run(each, inputs).toArrow()) == expected


def test_a_mesh_of_a_window_join_with_it_is_trained_saved_and_loaded(spark, tables, tmp_path):
    outputs = "e.payload.user AS who, c.arr[0] + e.arr[0] AS n"
    asked = qm.query(f"SELECT {outputs} {WINDOWED} AND e.payload.tags[0] = 1", time="ts")
    inputs = {name: tables[name] for name in ("Event", "Click")}
    mesh = qm.train(asked, {name: each.toArrow() for name, each in inputs.items()})
    mesh.save(tmp_path / "mesh.json")
    expected = spark.sql(f"SELECT {outputs} {PLAIN} AND e.payload.tags[0] = 1")
    for each in (mesh, qm.load(tmp_path / "mesh.json")):
        found = as_multiset(qm.run(each, inputs).toArrow())
        assert found == as_multiset(expected.toArrow())


def test_queries_that_share_one_pass_may_have_it(spark, tables):
    texts = [
        "SELECT *, hex(id) AS h FROM Event e WHERE arr[0] > 1 AND even(id)",
        "SELECT * FROM Event WHERE id > 20 AND payload.size > 3",
        "SELECT x.id, u.info.name FROM Event x, Users u "
        "WHERE x.payload.user = u.user AND x.number <> 'none' "
        "AND cast(x.number as decimal(5,1)) > 20.5",
    ]
    queries = [qm.query(text, functions=FUNCTIONS if "even" in text else None) for text in texts]
    with qm.run_all(queries, {name: tables[name] for name in ("Event", "Users")}) as results:
        for text, out in zip(texts, results, strict=True):
            assert out.columns == spark.sql(text).columns
            assert as_multiset(out.toArrow()) == as_multiset(spark.sql(text).toArrow())


def streamed(spark, tables, name, folder):
    tables[name].orderBy("ts").coalesce(1).write.mode("overwrite").parquet(str(folder))
    return spark.readStream.schema(tables[name].schema).parquet(str(folder))


def to_end(out, checkpoint):
    found = []
    query = (
        out.writeStream.foreachBatch(lambda batch, _: found.append(batch.toArrow()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return as_multiset(pa.concat_tables(found))


def test_a_stream_is_filtered_and_joined_by_it(spark, tables, tmp_path):
    event = streamed(spark, tables, "Event", tmp_path / "Event")
    for number, sql in enumerate(
        (
            "SELECT id, payload.size, hex(id) AS h FROM Event "
            "WHERE arr[0] > 1 AND even(id) AND body RLIKE 'k1'",
            "SELECT e.ts, e.id, u.info.name, hex(e.id) AS h FROM Event e, Users u "
            "WHERE e.payload.user = u.user AND e.arr[0] > u.level AND even(e.id)",
        )
    ):
        asked = qm.query(sql, functions=FUNCTIONS)
        inputs = {r.name: tables[r.name] for r in asked.relations}
        out = qm.run(asked, {**inputs, "Event": event})
        assert out.isStreaming
        expected = as_multiset(spark.sql(sql).toArrow())
        assert to_end(out, tmp_path / f"checkpoint{number}") == expected
        assert qm.inspect(out).counts.rows_in > 0


def test_a_window_join_of_streams_has_it_and_keeps_its_states(spark, tables, tmp_path):
    inputs = {n: streamed(spark, tables, n, tmp_path / n) for n in ("Event", "Click")}
    outputs = "e.id AS e, c.payload.user AS who, e.arr[0] + c.arr[0] AS n"
    asked = qm.query(f"SELECT {outputs} {WINDOWED} AND e.payload.tags[0] = 1", time="ts")
    out = qm.run(asked, inputs, checkpoint=str(tmp_path / "states"), watermark="1 hour")
    expected = spark.sql(f"SELECT {outputs} {PLAIN} AND e.payload.tags[0] = 1")
    assert to_end(out, tmp_path / "states") == as_multiset(expected.toArrow())


def test_a_watermark_stays_on_the_column_that_had_it(spark, tables, tmp_path):
    event = streamed(spark, tables, "Event", tmp_path / "Event").withWatermark("ts", "1 minute")
    sql = "SELECT e.ts, hex(e.id) AS h FROM Event e, Users u WHERE e.payload.user = u.user"
    out = qm.run(qm.query(sql), {"Event": event, "Users": tables["Users"]})
    assert "spark.watermarkDelayMs" in out.schema["ts"].metadata
    counted = out.groupBy(F.window("ts", "1 minute")).count()
    assert counted.isStreaming


@pytest.mark.parametrize(
    ("sql", "error", "said"),
    [
        ("SELECT id FROM Event WHERE rand() > 0.5", qm.UnsupportedError, "not deterministic"),
        ("SELECT uuid() AS u FROM Event", qm.UnsupportedError, "not deterministic"),
        ("SELECT id FROM Event WHERE lenght(body) > 1", qm.QueryError, "did you mean 'length'"),
        ("SELECT id FROM Event WHERE payload.sise > 1", qm.SchemaError, "did you mean 'size'"),
        ("SELECT id FROM Event WHERE pay.size > 1", qm.SchemaError, "no column pay.size"),
        ("SELECT payload.size.x FROM Event", qm.SchemaError, "x"),
        ("SELECT id FROM Event WHERE hex(id)", qm.SchemaError, "STRING, not a condition"),
        ("SELECT id FROM Event WHERE body RLIKE '('", qm.QueryError, "RLIKE pattern"),
        ("SELECT id FROM Event WHERE body LIKE 'a\\\\b'", qm.QueryError, "must be followed by"),
        ("SELECT explode(arr) AS x FROM Event", qm.UnsupportedError, "no value for a single row"),
        ("SELECT id FROM Event WHERE every(id > 1)", qm.QueryError, "of groups of rows"),
        ("SELECT count(*) AS n, hex(arr[0]) AS h FROM Event", qm.QueryError, "neither grouped by"),
        ("SELECT id FROM Event WHERE even(len(hex(even(id))))", qm.UnsupportedError, "between"),
        ("SELECT id FROM Event WHERE exists(arr, x -> even(x))", qm.UnsupportedError, "lambda"),
        ("SELECT hex(id) AS a, arr[0] AS A FROM Event", qm.QueryError, "two output columns"),
        ("SELECT hex(id) AS h, count(*) AS n FROM Event", qm.QueryError, "neither grouped by"),
        ("SELECT hexx(count(*)) AS n FROM Event", qm.QueryError, "unknown function hexx"),
        (
            "SELECT e.id FROM Event e, Users u WHERE array_contains(e.arr, u.level)",
            qm.QueryError,
            "no equality links u",
        ),
    ],
)
def test_what_spark_does_not_understand_either_is_refused(spark, tables, sql, error, said):
    inputs = {name: tables[name] for name in ("Event", "Users") if f"{name} " in f"{sql} "}
    with pytest.raises(error, match=said):
        qm.run(qm.query(sql, functions={"even": even}), inputs)


def test_without_a_session_the_first_refusal_stands():
    asked = qm.query("SELECT id FROM Event WHERE arr[0] > 1")
    with pytest.raises(qm.UnsupportedError, match="not supported"):
        asked.bind({"Event": pa.schema([("id", pa.int64()), ("arr", pa.list_(pa.int64()))])})
