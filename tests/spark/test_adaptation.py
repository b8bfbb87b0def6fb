import logging
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import querymesh as qm
from drifting import PLAIN, SWAPPED, Files, conditions, is_even, trained
from equivalence import as_multiset
from simulated_stream import OPPOSITE

EAGER = qm.policies.Mesh(adapt=qm.policies.Adaptation())
"""Told in so many words to adapt: where it cannot, that is an error."""


def drained(out, tmp_path):
    running = (
        out.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(120)


def results(spark, tmp_path):
    return as_multiset(spark.read.parquet(str(tmp_path / "out")).toArrow())


def test_after_a_swap_of_selectivities_a_stream_returns_to_its_oracle(spark, tmp_path, caplog):
    caplog.set_level(logging.INFO, "querymesh")
    files = Files(tmp_path / "in", [OPPOSITE] * 12 + [SWAPPED] * 14)
    mesh = trained(OPPOSITE, cost=1.0)
    checkpoint = str(tmp_path / "checkpoint")
    out = qm.run(mesh, files.stream(spark), checkpoint=checkpoint)
    live = qm.inspect(out)
    drained(out, tmp_path)

    assert results(spark, tmp_path) == files.expected(), "no row lost, none doubled"
    batches = live.batches
    assert [batch.batch_id for batch in batches] == list(range(26))
    of_oracle = [
        batch.evaluations / oracle for batch, oracle in zip(batches, files.oracle, strict=True)
    ]
    assert max(of_oracle[:12]) < 1.1
    assert of_oracle[12] > 1.5
    assert max(of_oracle[22:]) < 1.1, "back within ten batches"
    spent = sum(batch.profile_evaluations for batch in batches)
    assert 0 < spent <= 0.01 * sum(batch.evaluations for batch in batches)
    assert live.counts.profile_evaluations == spent

    assert 1 <= len(live.switches) <= 2
    switch = live.switches[0]
    assert 12 <= switch.batch < 22
    assert " passed " in switch.reason
    assert [version for version, _ in live.view.versions] == [*range(live.view.version + 1)]
    assert batches[-1].versions == {"input": {live.view.version}}
    assert switch.reason in caplog.text

    for passes in [SWAPPED] * 2:
        files.add(passes)
    again = qm.run(mesh, files.stream(spark), checkpoint=checkpoint)
    drained(again, tmp_path)
    later = qm.inspect(again)
    assert later.batches[-1].versions == {"input": {live.view.version}}, "what was learned is kept"
    assert later.batches[-1].evaluations < 1.1 * files.oracle[-1]
    assert results(spark, tmp_path) == files.expected()


def evaluations_of_oracle(out, files):
    """By micro-batch, what was evaluated over what the oracle would."""
    batches = zip(qm.inspect(out).batches, files.oracle, strict=True)
    return [batch.evaluations / oracle for batch, oracle in batches]


def test_content_based_routing_follows_a_swap_within_two_batches(spark, tmp_path):
    """Twelve thousand rows, where a mesh may take ten batches."""
    files = Files(tmp_path / "in", [OPPOSITE] * 4 + [SWAPPED] * 4)
    routing = qm.policies.Routing(trial_by="calls", chunk=1000, split_if_cheaper=False)
    how = {
        "policy": qm.policies.Cbr(routing=routing),
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    out = files.stream(spark).transform(qm.where(*conditions(cost=1.0), **how))
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected(), "no row lost, none doubled"
    of_oracle = evaluations_of_oracle(out, files)
    assert of_oracle[0] > 1.3, "nothing is known at first"
    assert max(of_oracle[2:4]) < 1.1
    assert of_oracle[4] > max(of_oracle[2:4])
    assert max(of_oracle[6:]) < 1.1, "back within two batches"


def test_an_eddy_follows_what_changes_for_all_tuples(spark, tmp_path):
    """The best condition becomes the worst, so that it is only met behind others, and the best
    again; with the settings users get."""
    phases = [[0.2, 0.3, 0.9], [0.9, 0.3, 0.9], [0.05, 0.3, 0.9]]
    regimes = [np.array([passes] * len(OPPOSITE)) for passes in phases]
    files = Files(tmp_path / "in", [regime for regime in regimes for _ in range(3)])
    how = {"policy": "eddy", "checkpoint": str(tmp_path / "checkpoint")}
    out = files.stream(spark).transform(qm.where(*conditions(cost=1.0), **how))
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected(), "no row lost, none doubled"
    of_oracle = evaluations_of_oracle(out, files)
    assert max(of_oracle[phase * 3 + 2] for phase in range(3)) < 1.05, "within two batches"


def test_on_stationary_data_adapting_costs_less_than_a_hundredth(spark, tmp_path):
    files = Files(tmp_path / "in", [OPPOSITE] * 16, rows=4000)
    out = qm.run(trained(OPPOSITE), files.stream(spark))
    live = qm.inspect(out)
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    assert live.switches == []
    metrics = live.counts
    assert 0 < metrics.profile_evaluations < 0.01 * metrics.evaluations
    assert metrics.evaluations + metrics.profile_evaluations < 1.01 * sum(files.oracle) * 1.005


def test_an_untrained_stream_goes_on_adapting(spark, tmp_path):
    files = Files(tmp_path / "in", [OPPOSITE] * 8 + [SWAPPED] * 10)
    out = files.stream(spark).transform(
        qm.where(*conditions(cost=1.0), policy=qm.policies.Mesh(sample_rows=600))
    )
    live = qm.inspect(out)
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    assert [version for version, _ in live.view.versions][:3] == [0, 1, 2]
    assert live.batches[-1].evaluations < 1.1 * files.oracle[-1]
    assert live.switches[0].version == 2


def test_a_learner_in_trouble_does_not_disturb_the_query(spark, tmp_path, caplog):
    files = Files(tmp_path / "in", [OPPOSITE] * 3 + [SWAPPED] * 5, rows=500)
    checkpoint = tmp_path / "elsewhere"
    out = qm.run(
        trained(OPPOSITE, cost=1.0),
        files.stream(spark),
        checkpoint=str(checkpoint),
        policy=qm.policies.Mesh(adapt=qm.policies.Adaptation(budget=1.0)),
    )

    def write(batch, number):
        batch.write.mode("append").parquet(str(tmp_path / "out"))
        if number == 1:
            shutil.rmtree(checkpoint)

    running = (
        out.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(120)
    assert results(spark, tmp_path) == files.expected()
    assert qm.inspect(out).switches == []
    assert not checkpoint.exists()
    assert caplog.text.count("the query goes on with the mesh it has") == 1, "said once"


def poisoned_functions():
    """Of these `only_even` raises on what `even_x` drops."""

    def only_even(x: pa.Array, y: pa.Array) -> pa.Array:
        if not pc.all(is_even(x)).as_py():
            raise ValueError("poison")
        return is_even(y)

    poisoned = qm.predicate(only_even, columns=["x", "y"], name="only_even", cost_us=100.0)
    return {"only_even": poisoned, **{p.name: p for p in conditions(cost=1.0)}}


def test_a_row_that_raises_in_profiling_and_is_dropped_all_the_same_is_profiled(spark, tmp_path):
    """A row that an earlier operator drops on every route taken may be poison to a later one."""
    files = Files(tmp_path / "in", [np.array([[0.1, 0.5, 0.5]])] * 4, rows=1000)
    query = qm.query(
        "SELECT * FROM input WHERE even_x(x) AND only_even(x, y) AND even_z(z)",
        functions=poisoned_functions(),
    )
    first = pq.read_table(files.folder / "part-000.parquet")
    mesh = qm.train(query, first.filter(is_even(first["x"])))
    routes = [tuple(sorted(route, key=lambda k: (k != 1, route.index(k)))) for route in mesh.routes]
    mesh = type(mesh)(**{**vars(mesh), "routes": tuple(routes)})
    out = qm.run(
        mesh, files.stream(spark), policy=qm.policies.Mesh(adapt=qm.policies.Adaptation(budget=1.0))
    )
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    live = qm.inspect(out)
    assert live.counts.profiled_rows > 0
    assert live.problems == []


def test_profiling_that_raises_does_not_stop_the_query_and_is_told(spark, tmp_path):
    """Beside a look-up a row that raises cannot travel on: it cannot be profiled."""
    files = Files(tmp_path / "in", [np.array([[0.1, 0.5, 0.5]])] * 4, rows=1000)
    query = qm.query(
        "SELECT i.* FROM input i, Kinds k WHERE even_x(i.x) AND only_even(i.x, i.y) "
        "AND even_z(i.z) AND i.kind = k.kind",
        functions=poisoned_functions(),
    )
    kinds = pa.table({"kind": list("abcdefgh")})
    out = qm.run(
        query,
        {"input": files.stream(spark), "Kinds": kinds},
        policy=qm.policies.Mesh(sample_rows=200),
    )
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    live = qm.inspect(out)
    told = [problem for problem in live.problems if "rows could not be profiled" in problem]
    assert told
    assert all("after=" in problem for problem in told)
    learning = live.progress["streams"]["i"]["learning"]
    assert learning["isLearning"]
    assert "rows could not be profiled" in learning["message"]


def test_a_damaged_mesh_in_the_folder_does_not_stop_the_query(spark, tmp_path):
    files = Files(tmp_path / "in", [OPPOSITE] * 2, rows=500)
    checkpoint = str(tmp_path / "checkpoint")
    out = qm.run(trained(OPPOSITE, cost=1.0), files.stream(spark), checkpoint=checkpoint)
    (folder,) = (tmp_path / "checkpoint" / "querymesh").iterdir()
    (folder / "mesh-000001.json").write_text("{")
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    live = qm.inspect(out)
    assert any("mesh-000001.json" in problem for problem in live.problems)
    assert live.batches
    assert all(batch.versions == {"input": {0}} for batch in live.batches)


def test_a_checkpoint_that_cannot_hold_meshes_is_named_or_done_without(spark, tmp_path, caplog):
    files = Files(tmp_path / "in", [OPPOSITE], rows=100)
    (tmp_path / "file").write_text("no folder")
    below = str(tmp_path / "file" / "checkpoint")
    mesh = trained(OPPOSITE, cost=1.0)
    qm.run(mesh, files.stream(spark), checkpoint=below)
    assert "does not adapt" in caplog.text
    with pytest.raises(qm.UnsupportedError, match="meshes cannot be kept under the checkpoint"):
        qm.run(mesh, files.stream(spark), checkpoint=below, policy=EAGER)
    with pytest.raises(qm.UnsupportedError, match="meshes cannot be kept under the checkpoint"):
        qm.run(mesh.query, files.stream(spark), checkpoint=below)


def test_a_frame_written_to_two_sinks_keeps_their_batches_apart(spark, tmp_path):
    files = Files(tmp_path / "in", [OPPOSITE] * 2, rows=500)
    out = qm.run(trained(OPPOSITE, cost=1.0), files.stream(spark))
    for sink in ("a", "b"):
        running = (
            out.writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / sink))
            .trigger(availableNow=True)
            .start()
        )
        assert running.awaitTermination(60)
    batches = qm.inspect(out).batches
    assert [(batch.batch_id, batch.rows_in) for batch in batches] == [(0, 500), (1, 500)] * 2
    assert len({batch.query_id for batch in batches}) == 2


def test_adaptation_can_be_turned_off_and_is_not_for_the_native_engine(spark, tmp_path):
    files = Files(tmp_path / "in", [OPPOSITE], rows=100)
    stream = files.stream(spark)
    mesh = trained(OPPOSITE, cost=1.0)
    still = qm.inspect(qm.run(mesh, stream, policy=qm.policies.Mesh(adapt=False)))
    assert still.engine == "fabric"
    sample = pq.read_table(files.folder / "part-000.parquet")
    sql = qm.train(qm.query(f"SELECT * FROM input WHERE {PLAIN}"), sample)
    assert qm.inspect(qm.run(sql, stream)).engine == "native"
    assert qm.inspect(qm.run(sql, stream, policy=EAGER)).engine == "fabric"
    with pytest.raises(qm.UnsupportedError, match="cannot adapt"):
        qm.run(sql, stream, engine="native", policy=EAGER)
    with pytest.raises(qm.QueryMeshError, match=r"True, False or .*policies\.Adaptation"):
        qm.run(sql, stream, policy=qm.policies.Mesh(adapt=0.01))
    with pytest.raises(qm.UnsupportedError, match="cannot be opened for meshes"):
        qm.run(mesh, stream, checkpoint="dbfs:/somewhere", policy=EAGER)


def test_where_no_folder_can_be_shared_a_trained_stream_runs_without_adapting(
    spark, tmp_path, caplog
):
    files = Files(tmp_path / "in", [OPPOSITE], rows=100)
    qm.run(trained(OPPOSITE, cost=1.0), files.stream(spark), checkpoint="dbfs:/somewhere")
    assert "does not adapt" in caplog.text
