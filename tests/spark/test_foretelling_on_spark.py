"""Dear functions over texts, ordered row by row by what is foretold: batch, stream and file."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import querymesh as qm
from equivalence import as_multiset
from querymesh.classify.tree import Classes
from telling_texts import telling_texts

ROWS, FILES, SAMPLED = 4000, 4, 400


def words_after(word):
    """A model that finds a word decisive: what it says of a row is drawn, and mostly by it."""

    def passes(bodies: pa.Array, marks: pa.Array) -> pa.Array:
        return pa.array([mark[int(word[-1])] == "1" for mark in marks.to_pylist()])

    return passes


FUNCTIONS = {
    f"model_{k}": qm.predicate(
        words_after(f"key{k}"), columns=["body", "mark"], name=f"model_{k}", cost_us=2000.0 + k
    )
    for k in range(3)
}


def texts():
    """Rows whose `mark` has what each model says, which nothing but the models may look at."""
    profile = telling_texts(ROWS, seed=5)
    # So many digits beside it that no two marks are alike.
    digits = np.random.default_rng(6).integers(10**9, 10**10, ROWS)
    marks = [
        "".join(str(int(one)) for one in row) + str(end)
        for row, end in zip(profile.outcomes, digits, strict=True)
    ]
    return profile.sample.append_column("mark", pa.array(marks)), profile


@pytest.fixture
def folder(tmp_path):
    found, (table, _) = tmp_path / "in", texts()
    found.mkdir()
    each = ROWS // FILES
    for number in range(FILES):
        pq.write_table(table.slice(each * number, each), found / f"part-{number}.parquet")
    return found


def expected():
    table, profile = texts()
    return as_multiset(table.select(["id"]).filter(pa.array(profile.outcomes.all(axis=1))))


def policy(**options):
    training = qm.policies.Training(seconds=None, **options)  # however busy the machine is
    return qm.policies.Mesh(sample_rows=SAMPLED, training=training)


def evaluations(out):
    return sum(each.evaluations for each in qm.inspect(out).counts.by_operator().values())


def test_a_filter_finds_the_same_rows_with_fewer_calls(spark, folder):
    rows = spark.read.parquet(str(folder))
    calls = {}
    for name, predict in (("foretold", True), ("single", False)):
        out = rows.transform(qm.where(*FUNCTIONS.values(), policy=policy(predict=predict, seed=1)))
        assert as_multiset(out.select("id").toArrow()) == expected()
        run = qm.inspect(out)
        calls[name] = evaluations(out)
        assert isinstance(run.mesh.tree, Classes) == predict
        assert ("foretold from body" in run.explain()) == predict
    assert calls["foretold"] < 0.75 * calls["single"]


def test_a_mesh_that_foretells_is_trained_saved_loaded_and_run(spark, folder, tmp_path):
    rows = spark.read.parquet(str(folder))
    asked = qm.query(
        "SELECT id FROM S WHERE model_0(body, mark) AND model_1(body, mark) "
        "AND model_2(body, mark)",
        functions=FUNCTIONS,
    )
    mesh = qm.train(asked, rows, policy=policy())
    assert isinstance(mesh.tree, Classes), mesh.why
    mesh.save(tmp_path / "mesh.json")
    again = qm.load(tmp_path / "mesh.json", FUNCTIONS)
    assert again.tree == mesh.tree
    assert as_multiset(qm.run(again, rows).toArrow()) == expected()


def test_features_of_ones_own_travel_to_tasks(spark, folder):
    def embedding(bodies):
        found = [[f"Key{k}" in body for k in range(3)] for body in bodies.to_pylist()]
        return np.array(found, dtype=float)

    own = qm.policies.Predicted(features=embedding, columns=["body"])
    rows = spark.read.parquet(str(folder))
    out = rows.transform(qm.where(*FUNCTIONS.values(), policy=policy(classifier=own)))
    assert as_multiset(out.select("id").toArrow()) == expected()
    assert evaluations(out) < 1.6 * ROWS


def test_a_stream_learns_to_foretell_and_switches_to_it(spark, folder, tmp_path):
    stream = spark.readStream.schema(spark.read.parquet(str(folder)).schema)
    stream = stream.option("maxFilesPerTrigger", 1).parquet(str(folder))
    checkpoint = str(tmp_path / "checkpoint")
    out = stream.transform(qm.where(*FUNCTIONS.values(), policy=policy(), checkpoint=checkpoint))
    live = qm.inspect(out)

    def write(batch, number):
        batch.select("id").write.mode("append").parquet(str(tmp_path / "out"))
        if number == 3:
            live.wait_until_learned(60)

    writer = out.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    assert writer.trigger(availableNow=True).start().awaitTermination(180)
    assert as_multiset(spark.read.parquet(str(tmp_path / "out")).toArrow()) == expected()
    assert isinstance(live.mesh.tree, Classes), live.mesh.why
    assert live.problems == []
