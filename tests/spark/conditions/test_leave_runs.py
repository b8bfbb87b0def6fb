"""What only Spark understands, on every engine, trained, shared, streamed, refused."""

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import querymesh as qm
from equivalence import as_multiset
from odd_events import FUNCTIONS, PLAIN, WINDOWED, agrees, even


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
