import numpy as np
import pyarrow.parquet as pq
import pytest

import querymesh as qm
from equivalence import FUNCTIONS, SCHEMA, as_multiset, rows_of

CONDITIONS = "is_even(a) AND s LIKE '%b%' AND (ok OR s LIKE '%zz%')"
PLAIN = "a % 2 = 0 AND s LIKE '%b%' AND (ok OR s LIKE '%zz%')"
SMALL = qm.policies.Mesh(sample_rows=200)


@pytest.fixture
def files(tmp_path):
    """Eight files of 500 rows, one a batch."""
    folder = tmp_path / "in"
    folder.mkdir()
    table = rows_of(np.random.default_rng(0), 4000)
    for k in range(8):
        pq.write_table(table.slice(500 * k, 500), folder / f"part-{k}.parquet")
    return folder


def stream_of(spark, folder):
    schema = spark.createDataFrame(SCHEMA.empty_table()).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def drained(out, tmp_path, name="out"):
    """Run to the end of the files; each batch goes to a file sink."""
    running = (
        out.writeStream.format("parquet")
        .option("path", str(tmp_path / name))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(120)
    return running


def results(spark, tmp_path, name="out"):
    return as_multiset(spark.read.parquet(str(tmp_path / name)).toArrow())


def query():
    return qm.query(f"SELECT id, a, s FROM S WHERE {CONDITIONS}", functions=FUNCTIONS)


def test_an_untrained_stream_learns_and_switches_without_a_restart(spark, files, tmp_path):
    out = qm.run(
        query(),
        {"S": stream_of(spark, files)},
        checkpoint=str(tmp_path / "checkpoint"),
        policy=SMALL,
    )
    assert out.isStreaming
    live = qm.inspect(out)
    assert live.mesh.sample_rows == 0
    slowly = out.writeStream.foreachBatch(
        lambda batch, number: (
            batch.write.mode("append").parquet(str(tmp_path / "out")),
            number == 5 and live.wait_until_learned(30),
        )
    )
    running = (
        slowly.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(120)
    plain = spark.read.parquet(str(files)).filter(PLAIN).select("id", "a", "s")
    assert results(spark, tmp_path) == as_multiset(plain.toArrow())
    assert [version for version, _ in live.view.versions] == [0, 1]
    assert live.mesh.sample_rows >= 200
    by_version = {version for version, _ in live.counts.leaf_rows}
    assert by_version == {0, 1}, "some batches ran before the switch, some after"
    assert live.counts.rows_in == 4000
    assert 200 <= live.counts.profiled_rows < 1000


def test_a_restart_goes_on_with_what_was_learned(spark, files, tmp_path):
    source = {"S": stream_of(spark, files)}
    first = qm.run(
        query(),
        source,
        checkpoint=str(tmp_path / "checkpoint"),
        policy=SMALL,
    )
    drained(first, tmp_path)
    assert qm.inspect(first).wait_until_learned(30)
    more = rows_of(np.random.default_rng(9), 500)
    pq.write_table(more, files / "part-8.parquet")
    again = qm.run(query(), {"S": stream_of(spark, files)}, checkpoint=str(tmp_path / "checkpoint"))
    live = qm.inspect(again)
    assert live.mesh.sample_rows >= 200
    drained(again, tmp_path)
    assert live.counts.rows_in == 500
    assert {version for version, _ in live.counts.leaf_rows} == {1}
    plain = spark.read.parquet(str(files)).filter(PLAIN).select("id", "a", "s")
    assert results(spark, tmp_path) == as_multiset(plain.toArrow())


def test_a_driver_that_ended_before_it_published_profiles_again(spark, files, tmp_path):
    checkpoint = str(tmp_path / "checkpoint")
    first = qm.run(
        query(),
        {"S": stream_of(spark, files)},
        checkpoint=checkpoint,
        policy=SMALL,
    )
    assert qm.inspect(first).mesh.sample_rows == 0
    (folder,) = (tmp_path / "checkpoint" / "querymesh").iterdir()
    (folder / "enough-rows-profiled").touch()
    again = qm.run(
        query(),
        {"S": stream_of(spark, files)},
        checkpoint=checkpoint,
        policy=SMALL,
    )
    drained(again, tmp_path)
    assert qm.inspect(again).wait_until_learned(30)
    assert qm.inspect(again).mesh.sample_rows >= 200


def test_a_checkpoint_that_cannot_hold_meshes_is_refused(spark, files):
    with pytest.raises(qm.UnsupportedError, match="cannot be opened for meshes"):
        qm.run(query(), {"S": stream_of(spark, files)}, checkpoint="dbfs:/somewhere")


@pytest.mark.parametrize("engine", ["native", "fabric"])
def test_a_trained_mesh_runs_a_stream_on_either_engine(spark, files, tmp_path, engine):
    condition = "a > 3 AND s LIKE '%b%' AND ok"
    mesh = qm.train(qm.query(f"SELECT * FROM S WHERE {condition}"), spark.read.parquet(str(files)))
    drained(qm.run(mesh, {"S": stream_of(spark, files)}, engine=engine), tmp_path)
    plain = spark.read.parquet(str(files)).filter(condition)
    assert results(spark, tmp_path) == as_multiset(plain.toArrow())


def test_where_on_a_stream_with_a_look_up_free_predicate(spark, files, tmp_path):
    stream = stream_of(spark, files)
    out = stream.transform(qm.where(FUNCTIONS["is_even"], "ok"))
    assert out.schema == stream.schema
    drained(out, tmp_path)
    plain = spark.read.parquet(str(files)).filter("a % 2 = 0 AND ok")
    assert results(spark, tmp_path) == as_multiset(plain.toArrow())


def test_an_untrained_stream_cannot_be_native(spark, files):
    with pytest.raises(qm.UnsupportedError, match="an untrained stream has none yet"):
        stream_of(spark, files).transform(qm.where("s LIKE '%a%'", "s LIKE '%b%'", engine="native"))


def test_a_stream_of_cheap_comparisons_leaves_nothing_to_learn(spark, files, tmp_path):
    out = stream_of(spark, files).transform(qm.where("a > 1", "ok", engine="native"))
    live = qm.inspect(out)
    assert live.left_to_spark == ("a > 1", "ok")
    assert live.mesh.operators == ()
    drained(out, tmp_path)
    plain = spark.read.parquet(str(files)).filter("a > 1 AND ok")
    assert results(spark, tmp_path) == as_multiset(plain.toArrow())


def test_a_stream_is_no_sample_and_no_look_up_table(spark, files):
    stream = stream_of(spark, files)
    with pytest.raises(qm.TrainingError, match="a stream has no sample"):
        qm.train(query(), stream)
    joined = qm.query("SELECT * FROM S s, L t WHERE s.g = t.g")
    batch = spark.read.parquet(str(files))
    with pytest.raises(qm.QueryMeshError, match="must be static"):
        qm.run(joined, {"S": batch, "L": stream})
