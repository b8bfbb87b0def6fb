"""Meshes whose classifier is no tree, as batches, as streams and saved."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import querymesh as qm
from classifiers import AnyClass, OwnBayes
from equivalence import as_multiset
from querymesh.classify.tree import Classes, Leaf

ROWS, FILES = 6000, 8
LONG = "x" * 70
TRAINING = qm.policies.Training(classifier=OwnBayes())
PATTERNS = [f"mark RLIKE '[^{k}]$'" for k in range(3)]
CONDITIONS = "not_0(mark) AND not_1(mark) AND not_2(mark)"


def ends_otherwise(digit):
    def passes(marks: pa.Array) -> pa.Array:
        return pa.array([not mark.endswith(digit) for mark in marks.to_pylist()])

    return passes


FUNCTIONS = {
    f"not_{k}": qm.predicate(
        ends_otherwise(str(k)), columns=["mark"], name=f"not_{k}", cost_us=50.0 + k
    )
    for k in range(3)
}


def marked():
    """Four numbers whose sum tells which function drops a row, most of the time."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(ROWS, 4))
    kind = np.digitize(numbers.sum(axis=1), [-0.9, 0.9])
    mark = np.where(rng.random(ROWS) < 0.9, kind, 3)
    return pa.table(
        {"id": np.arange(ROWS)}
        | {f"x{k}": numbers[:, k] for k in range(4)}
        | {"mark": [f"{LONG}{k}" for k in mark]}
    )


@pytest.fixture
def files(tmp_path):
    folder, table, each = tmp_path / "in", marked(), ROWS // FILES
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(table.slice(each * number, each), folder / f"part-{number}.parquet")
    return folder


def expected():
    table = marked()
    return as_multiset(
        pa.table({"id": [i for i, m in enumerate(table["mark"].to_pylist()) if m[-1] not in "012"]})
    )


def query():
    return qm.query(f"SELECT id FROM S WHERE {CONDITIONS}", functions=FUNCTIONS)


def test_a_trained_mesh_is_saved_loaded_and_run(spark, files, tmp_path):
    rows = spark.read.parquet(str(files))
    mesh = qm.train(query(), rows, policy=qm.policies.Mesh(training=TRAINING))
    assert isinstance(mesh.tree, Classes), mesh.why
    mesh.save(tmp_path / "mesh.json")
    again = qm.load(tmp_path / "mesh.json", FUNCTIONS, classifiers=[OwnBayes()])
    assert again.tree == mesh.tree
    out = qm.run(again, rows)
    assert as_multiset(out.toArrow()) == expected()
    assert qm.inspect(out).engine == "fabric"
    evaluations = sum(each.evaluations for each in qm.inspect(out).counts.by_operator().values())
    single = qm.run(again, rows, policy="single")
    assert as_multiset(single.toArrow()) == expected()
    alone = sum(each.evaluations for each in qm.inspect(single).counts.by_operator().values())
    assert evaluations < 0.85 * alone


def test_sql_conditions_with_a_classifier_run_in_python_or_are_refused(spark, files):
    rows = spark.read.parquet(str(files))
    asked = qm.query(f"SELECT id FROM S WHERE {' AND '.join(PATTERNS)}")
    policy = qm.policies.Mesh(training=TRAINING, sample_rows=1500)
    mesh = qm.train(asked, rows, policy=policy)
    out = qm.run(asked, rows, policy=policy)
    assert as_multiset(out.toArrow()) == expected()
    assert qm.inspect(out).engine == "fabric"
    with pytest.raises(qm.UnsupportedError, match="classifier own is asked in Python"):
        qm.run(asked, rows, policy=policy, engine="native")
    told_apart = replace(
        mesh,
        tree=Classes(AnyClass(("x0",), 2, 0), (Leaf(0), Leaf(1)), 0.1),
        routes=((1, 2, 3), (3, 2, 1)),
        leaves=mesh.leaves[:1] * 2,
    )
    assert as_multiset(qm.run(told_apart, rows).toArrow()) == expected()
    with pytest.raises(qm.UnsupportedError, match="classifier any is asked in Python"):
        qm.run(told_apart, rows, engine="native")


def test_a_stream_learns_a_classifier_of_ones_own_and_switches_to_it(spark, files, tmp_path):
    stream = spark.readStream.schema(spark.read.parquet(str(files)).schema)
    stream = stream.option("maxFilesPerTrigger", 1).parquet(str(files))
    checkpoint = str(tmp_path / "checkpoint")
    policy = qm.policies.Mesh(training=TRAINING, sample_rows=1200)
    out = qm.run(query(), {"S": stream}, checkpoint=checkpoint, policy=policy)
    live = qm.inspect(out)

    def write(batch, number):
        batch.write.mode("append").parquet(str(tmp_path / "out"))
        if number == 5:
            live.wait_until_learned(60)

    writer = out.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    assert writer.trigger(availableNow=True).start().awaitTermination(180)
    assert as_multiset(spark.read.parquet(str(tmp_path / "out")).toArrow()) == expected()
    assert isinstance(live.mesh.tree, Classes), live.mesh.why
    assert live.mesh.tree.classifier.kind == "own"
    assert {version for version, _ in live.counts.leaf_rows} >= {0, 1}
    assert live.problems == []
    assert "own tells class 0" in live.explain()
