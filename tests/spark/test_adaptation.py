import logging
import os
import shutil
from threading import Event
from time import perf_counter, sleep

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from equivalence import as_multiset
from simulated_stream import OPPOSITE, OVERHEADS, oracle_evaluations, tuples

import querymesh as qm
from querymesh.optimize.budget import Ask
from querymesh.optimize.watch import Look
from querymesh.spark import task
from querymesh.spark.adapt import Learner, Setting
from querymesh.spark.channel import Channel
from querymesh.spark.task import FabricTask

SWAPPED = np.roll(OPPOSITE, 1, axis=1)
ROWS = 6000


def is_even(values: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(values, pa.scalar(1, values.type)), 0)


def is_even_by_hand(value: int) -> bool:
    return sum(range(value % 2, 40, 2)) % 2 == 0 and value % 2 == 0


def conditions(cost=None):
    """With a declared cost of 1 the cost is the evaluations; without, they take long enough."""
    return [
        qm.predicate(
            is_even_by_hand if cost is None else is_even,
            columns=[column],
            name=f"even_{column}",
            cost=cost,
            vectorised=cost is not None,
        )
        for column in ("x", "y", "z")
    ]


PLAIN = "x % 2 = 0 AND y % 2 = 0 AND z % 2 = 0"


def rows_of(profile, rng):
    """Rows on which the predicates do what the profile says; only `kind` foretells it."""
    values = 2 * rng.integers(0, 1000, profile.outcomes.shape) + (profile.outcomes == 0)
    columns = {name: values[:, k].astype(np.int32) for k, name in enumerate("xyz")}
    return pa.table({"kind": profile.sample["kind"], **columns})


class Files:
    """A folder of files, one a batch, and what the oracle would evaluate on each."""

    def __init__(self, folder, regimes, rows=ROWS, seed=0):
        folder.mkdir()
        self.folder = folder
        self.rng = np.random.default_rng(seed)
        self.oracle = []
        self.rows = 0
        for passes in regimes:
            self.add(passes, rows)

    def add(self, passes, rows=ROWS):
        number = len(self.oracle)
        profile = tuples(self.rng, rows, passes)
        table = rows_of(profile, self.rng)
        table = table.append_column("id", pa.array(np.arange(self.rows, self.rows + rows)))
        path = self.folder / f"part-{number:03d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        self.oracle.append(oracle_evaluations(profile, passes))
        self.rows += rows
        return table

    def stream(self, spark):
        schema = spark.read.parquet(str(self.folder)).schema
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(
            str(self.folder)
        )  # fmt: skip

    def expected(self):
        found = duckdb.sql(f"SELECT * FROM '{self.folder}/*.parquet' WHERE {PLAIN}")
        return as_multiset(found.to_arrow_table())


def trained(passes, cost=None):
    """A mesh for data like this, from other rows than the stream has."""
    rng = np.random.default_rng(77)
    sample = rows_of(tuples(rng, 2000, passes), rng)
    sample = sample.append_column("id", pa.array(np.arange(2000)))
    return qm.train(qm.query("SELECT * FROM input WHERE even_x(x) AND even_y(y) AND even_z(z)",
                             functions={p.name: p for p in conditions(cost)}), sample)  # fmt: skip


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
    live = qm.metrics(out)
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
    assert live.metrics.profile_evaluations == spent

    assert 1 <= len(live.switches) <= 2
    switch = live.switches[0]
    assert 12 <= switch.batch < 22
    assert " passed " in switch.reason
    assert [version for version, _ in live.versions] == list(range(len(live.versions)))
    assert batches[-1].versions == {live.versions[-1][0]}
    assert switch.reason in caplog.text

    for passes in [SWAPPED] * 2:
        files.add(passes)
    again = qm.run(mesh, files.stream(spark), checkpoint=checkpoint)
    drained(again, tmp_path)
    later = qm.metrics(again)
    assert later.batches[-1].versions == {live.versions[-1][0]}, "what was learned is kept"
    assert later.batches[-1].evaluations < 1.1 * files.oracle[-1]
    assert results(spark, tmp_path) == files.expected()


def test_on_stationary_data_adapting_costs_less_than_a_hundredth(spark, tmp_path):
    files = Files(tmp_path / "in", [OPPOSITE] * 16, rows=4000)
    out = qm.run(trained(OPPOSITE), files.stream(spark))
    live = qm.metrics(out)
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    assert live.switches == []
    metrics = live.metrics
    assert 0 < metrics.profile_evaluations < 0.01 * metrics.evaluations
    assert metrics.evaluations + metrics.profile_evaluations < 1.01 * sum(files.oracle) * 1.005


def test_an_untrained_stream_goes_on_adapting(spark, tmp_path):
    files = Files(tmp_path / "in", [OPPOSITE] * 8 + [SWAPPED] * 10)
    out = files.stream(spark).transform(
        qm.where(*conditions(cost=1.0), training=qm.Training(sample_rows=600))
    )
    live = qm.metrics(out)
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    assert [version for version, _ in live.versions][:3] == [0, 1, 2]
    assert live.batches[-1].evaluations < 1.1 * files.oracle[-1]
    assert live.switches[0].version == 2


def test_a_learner_in_trouble_does_not_disturb_the_query(spark, tmp_path, caplog):
    files = Files(tmp_path / "in", [OPPOSITE] * 3 + [SWAPPED] * 5, rows=500)
    checkpoint = tmp_path / "elsewhere"
    out = qm.run(
        trained(OPPOSITE, cost=1.0),
        files.stream(spark),
        checkpoint=str(checkpoint),
        adapt=qm.Adaptation(budget=1.0),
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
    assert qm.metrics(out).switches == []
    assert not checkpoint.exists()
    assert caplog.text.count("the query goes on with the mesh it has") == 1, "said once"


def test_profiling_that_raises_does_not_stop_the_query(spark, tmp_path):
    """A row that an earlier operator drops on every route taken may be poison to a later one."""
    files = Files(tmp_path / "in", [np.array([[0.1, 0.5, 0.5]])] * 4, rows=1000)

    def only_even(x: pa.Array, y: pa.Array) -> pa.Array:
        if not pc.all(is_even(x)).as_py():
            raise ValueError("poison")
        return is_even(y)

    poisoned = qm.predicate(only_even, columns=["x", "y"], name="only_even", cost=100.0)
    functions = {"only_even": poisoned, **{p.name: p for p in conditions(cost=1.0)}}
    query = qm.query(
        "SELECT * FROM input WHERE even_x(x) AND only_even(x, y) AND even_z(z)",
        functions=functions,
    )
    first = pq.read_table(files.folder / "part-000.parquet")
    mesh = qm.train(query, first.filter(is_even(first["x"])))
    routes = [tuple(sorted(route, key=lambda k: (k != 1, route.index(k)))) for route in mesh.routes]
    mesh = type(mesh)(**{**vars(mesh), "routes": tuple(routes)})
    out = qm.run(mesh, files.stream(spark), adapt=qm.Adaptation(budget=1.0))
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    problems = qm.metrics(out).problems
    assert any("rows could not be profiled" in problem for problem in problems)
    assert all("after=" in problem for problem in problems)


def test_a_damaged_mesh_in_the_folder_does_not_stop_the_query(spark, tmp_path):
    files = Files(tmp_path / "in", [OPPOSITE] * 2, rows=500)
    checkpoint = str(tmp_path / "checkpoint")
    out = qm.run(trained(OPPOSITE, cost=1.0), files.stream(spark), checkpoint=checkpoint)
    (folder,) = (tmp_path / "checkpoint" / "querymesh").iterdir()
    (folder / "mesh-000001.json").write_text("{")
    drained(out, tmp_path)
    assert results(spark, tmp_path) == files.expected()
    live = qm.metrics(out)
    assert any("mesh-000001.json" in problem for problem in live.problems)
    assert {version for batch in live.batches for version in batch.versions} == {0}


def test_a_checkpoint_that_cannot_hold_meshes_is_named_or_done_without(spark, tmp_path, caplog):
    files = Files(tmp_path / "in", [OPPOSITE], rows=100)
    (tmp_path / "file").write_text("no folder")
    below = str(tmp_path / "file" / "checkpoint")
    mesh = trained(OPPOSITE, cost=1.0)
    qm.run(mesh, files.stream(spark), checkpoint=below)
    assert "does not adapt" in caplog.text
    with pytest.raises(qm.UnsupportedError, match="meshes cannot be kept under the checkpoint"):
        qm.run(mesh, files.stream(spark), checkpoint=below, adapt=qm.Adaptation())
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
    batches = qm.metrics(out).batches
    assert [(batch.batch_id, batch.rows_in) for batch in batches] == [(0, 500), (1, 500)] * 2
    assert len({batch.query_id for batch in batches}) == 2


def test_adaptation_can_be_turned_off_and_is_not_for_the_native_engine(spark, tmp_path):
    files = Files(tmp_path / "in", [OPPOSITE], rows=100)
    stream = files.stream(spark)
    mesh = trained(OPPOSITE, cost=1.0)
    still = qm.metrics(qm.run(mesh, stream, adapt=False))
    assert still.engine == "fabric"
    sample = pq.read_table(files.folder / "part-000.parquet")
    sql = qm.train(qm.query(f"SELECT * FROM input WHERE {PLAIN}"), sample)
    assert qm.metrics(qm.run(sql, stream)).engine == "native"
    assert qm.metrics(qm.run(sql, stream, adapt=qm.Adaptation())).engine == "fabric"
    with pytest.raises(qm.UnsupportedError, match="cannot adapt"):
        qm.run(sql, stream, engine="native", adapt=qm.Adaptation())
    with pytest.raises(qm.QueryMeshError, match=r"True, False or a querymesh\.Adaptation"):
        qm.run(sql, stream, adapt=0.01)
    with pytest.raises(qm.UnsupportedError, match="cannot be opened for meshes"):
        qm.run(mesh, stream, checkpoint="dbfs:/somewhere", adapt=qm.Adaptation())


def test_where_no_folder_can_be_shared_a_trained_stream_runs_without_adapting(
    spark, tmp_path, caplog
):
    files = Files(tmp_path / "in", [OPPOSITE], rows=100)
    qm.run(trained(OPPOSITE, cost=1.0), files.stream(spark), checkpoint="dbfs:/somewhere")
    assert "does not adapt" in caplog.text


class Reports:
    """Stands in for the accumulator: hands on what a task reports."""

    def __init__(self, learner):
        self.learner = learner

    def __iadd__(self, report):
        started = perf_counter()
        self.learner.receive(report)
        self.longest = max(getattr(self, "longest", 0.0), perf_counter() - started)
        return self


def test_a_mesh_found_for_data_that_is_gone_is_let_go(tmp_path, monkeypatch):
    """The search takes long, and the data swaps back meanwhile: what it finds fits nothing."""
    mesh = trained(OPPOSITE, cost=1.0)
    rng = np.random.default_rng(3)
    sample = rows_of(tuples(rng, 10, OPPOSITE), rng).append_column("id", pa.array(np.arange(10)))
    bound = mesh.query.bind({"input": sample.schema})
    channel = Channel(str(tmp_path / "channel"))
    channel.open()
    installed = []
    setting = Setting(
        channel, OVERHEADS, qm.Training(), "mesh", [False] * 3, qm.Adaptation(),
        lambda *what: installed.append(what),
    )  # fmt: skip
    learner = Learner(mesh, 0, setting)
    released = Event()
    find = Look.finding

    def slowly(look):
        found = find(look)
        released.wait(30)
        return found

    monkeypatch.setattr(Look, "finding", slowly)
    reports = Reports(learner)
    for number in range(30):
        monkeypatch.setattr(task, "_batch_number", lambda number=number: number)
        passes = SWAPPED if 8 <= number < 18 else OPPOSITE
        rows = rows_of(tuples(rng, 4000, passes), rng)
        rows = rows.append_column("id", pa.array(np.arange(4000)))
        list(FabricTask(bound, mesh, reports, {}, channel=channel)(iter(rows.to_batches())))
        sleep(0.03)
    assert installed == []
    assert learner._searching, "a search is under way, begun while the data was swapped"
    released.set()
    sleep(1.0)
    assert installed == []


class SlowChannel(Channel):
    """A folder far away."""

    def publish(self, mesh, version):
        sleep(0.4)
        super().publish(mesh, version)


def test_reports_are_handed_over_at_once_however_slow_the_search_and_the_folder(
    tmp_path, monkeypatch
):
    """The whole loop without Spark: three tasks a batch, the selectivities swap after ten."""
    mesh = trained(OPPOSITE, cost=1.0)
    rng = np.random.default_rng(3)
    sample = rows_of(tuples(rng, 10, OPPOSITE), rng).append_column("id", pa.array(np.arange(10)))
    bound = mesh.query.bind({"input": sample.schema})
    channel = SlowChannel(str(tmp_path / "channel"))
    channel.open()
    installed = []
    setting = Setting(
        channel, OVERHEADS, qm.Training(), "mesh", [False] * 3, qm.Adaptation(),
        lambda *what: installed.append(what),
    )  # fmt: skip
    learner = Learner(mesh, 0, setting)
    reports = Reports(learner)
    for number in range(24):
        monkeypatch.setattr(task, "_batch_number", lambda number=number: number)
        for _ in range(3):
            profile = tuples(rng, 2000, OPPOSITE if number < 10 else SWAPPED)
            rows = rows_of(profile, rng).append_column("id", pa.array(np.arange(2000)))
            run = FabricTask(bound, mesh, reports, {}, channel=channel)
            assert sum(out.num_rows for out in run(iter(rows.to_batches()))) == int(
                profile.outcomes.prod(axis=1).sum()
            )
        sleep(0.1)
    versions = [version for version, _, _ in installed]
    assert versions == list(range(1, len(versions) + 1))
    assert 1 <= len(versions) <= 2
    assert channel.newest() == versions[-1]
    assert reports.longest < 0.2, "less than it takes to publish"


def test_a_channel_keeps_the_last_few_meshes_and_asks(tmp_path):
    channel = Channel(str(tmp_path / "channel"))
    channel.open()
    mesh = trained(OPPOSITE, cost=1.0)
    for number in range(1, 41):
        channel.publish(mesh, number)
        channel.ask(Ask(share=number / 100), number)
    state = channel.state()
    assert (state.version, state.ask_number) == (40, 40)
    assert 8 <= len(list((tmp_path / "channel").glob("mesh-*"))) <= 16
    assert len(list((tmp_path / "channel").glob("ask-*"))) <= 8
    assert channel.asked(40).share == 0.4
    assert channel.asked(1) == Ask(), "an ask that is gone asks for nothing"
    assert channel.read(33, mesh.query).routes == mesh.routes
    channel.open()
    assert channel.asked(channel.state().ask_number) == Ask(), "a new driver asks for itself"
