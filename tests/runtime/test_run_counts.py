"""A run as the driver sees it, from what tasks report: batches, shards, problems, loops."""

import pyarrow as pa
import pytest

import querymesh as qm
from join_feed import PAIR, SCHEMA
from querymesh.fabric.core.metrics import Metrics
from querymesh.mesh.hypercube import Hypercube
from querymesh.mesh.mesh import written_mesh
from querymesh.optimize.shards.join_shards import join_cube
from querymesh.query.bind.windowed_join import bind_join
from querymesh.runtime.loop import KEPT_PROBLEMS, Loop
from querymesh.runtime.progress import RunProgress, watermark_text
from querymesh.runtime.run import Run
from querymesh.runtime.run_counts import KEPT_BATCHES
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.task_report import StreamState, TaskReport, ViewReport
from querymesh.runtime.view import View


def filter_run() -> Run:
    bound = qm.query("SELECT * FROM t WHERE x > 1 AND y > 1").bind(
        {"t": pa.schema({"x": pa.int64(), "y": pa.int64()})}
    )
    views = {"t": View("t", bound, written_mesh(bound))}
    return Run(bound.query, "mesh", "fabric", views)


def join_run(cube: Hypercube | None = None) -> Run:
    join = bind_join(qm.query(PAIR, time="ts"), {"A": SCHEMA, "B": SCHEMA})
    views = {alias: View(alias, view, written_mesh(view)) for alias, view in join.views.items()}
    return Run(join.query, "mesh", "join", views, cube or join_cube(join, 2, {}))


def metrics(rows_in: int, rows_out: int = 0) -> Metrics:
    made = Metrics()
    made.rows_in, made.rows_out = rows_in, rows_out
    return made


def filtered(partition: int, batch: int | None, rows: int, query: str = "q") -> TaskReport:
    return TaskReport({"t": ViewReport(metrics(rows, 1))}, TaskPlace(partition, batch, query))


def joined(shard: int, batch: int | None, arrived: int, **more: object) -> TaskReport:
    views = {alias: ViewReport(metrics(99, 1)) for alias in "ab"}
    report = TaskReport(views, TaskPlace(shard, batch, "q"), **more)
    report.arrived["a"] += arrived
    report.states[shard, "a"] = StreamState(arrived, 8 * arrived, 1)
    return report


def test_the_tasks_of_a_batch_over_one_source_add_up() -> None:
    run = filter_run()
    for partition, batch, rows in ((0, 0, 5), (1, 0, 7), (0, 1, 3)):
        run.receive(filtered(partition, batch, rows))
    assert [(batch.batch_id, batch.rows_in) for batch in run.batches] == [(0, 12), (1, 3)]
    assert run.counts.rows_in == 15
    assert run.progress["streams"]["t"]["numInputRows"] == 15


def test_two_queries_on_one_frame_have_batches_of_their_own() -> None:
    run = filter_run()
    for query in ("one", "two"):
        run.receive(filtered(0, 0, 5, query))
    found = [(batch.query_id, batch.batch_id, batch.rows_in) for batch in run.batches]
    assert found == [("one", 0, 5), ("two", 0, 5)]


def test_a_batch_job_has_no_batches_and_is_counted() -> None:
    run = filter_run()
    run.receive(filtered(0, None, 5))
    assert (run.batches, run.counts.rows_in) == ([], 5)


def test_the_last_thousand_batches_are_kept() -> None:
    run = filter_run()
    for number in range(KEPT_BATCHES + 5):
        run.receive(filtered(0, number, 1))
    assert [batch.batch_id for batch in run.batches] == list(range(5, KEPT_BATCHES + 5))


def test_batches_that_were_looked_at_stay_as_they_were() -> None:
    run = filter_run()
    run.receive(filtered(0, 0, 5))
    (before,) = run.batches
    before.versions["t"].add(7)
    run.receive(filtered(1, 0, 5))
    assert (before.rows_in, run.batches[0].rows_in) == (5, 10)
    assert run.batches[0].versions == {"t": set()}


def test_a_shard_that_runs_a_batch_again_counts_by_its_last_run() -> None:
    run = join_run()
    for shard, batch, arrived in ((0, 0, 4), (1, 0, 6), (0, 0, 4), (0, 1, 3)):
        run.receive(joined(shard, batch, arrived))
    assert run.arrived == {"a": 13, "b": 0}
    assert [batch.rows_in for batch in run.batches] == [10, 3]
    assert [batch.rows_out for batch in run.batches] == [4, 2]
    assert run.states["a"] == StreamState(9, 72, 2), "as each shard has it after its last batch"
    assert run.states["b"] == StreamState()


def test_the_tasks_of_a_batch_job_are_not_taken_for_one_another() -> None:
    run = join_run()
    for _ in range(2):
        run.receive(joined(0, None, 4))
    assert run.arrived["a"] == 8, "every execution adds up"


def test_problems_are_told_once_and_not_without_end() -> None:
    run = join_run()
    for number in range(3 * KEPT_PROBLEMS):
        run.receive(joined(0, number, 1, problems=["always", f"problem {number}"]))
    assert run.problems[:3] == ["always", "problem 0", "problem 1"]
    assert len(run.problems) == KEPT_PROBLEMS


def test_a_join_has_a_view_for_each_stream_and_a_filter_one() -> None:
    assert filter_run().view.alias == "t"
    with pytest.raises(qm.UnsupportedError, match=r"each of a, b: take one of \.views"):
        join_run().view  # noqa: B018
    assert set(join_run().mesh.meshes) == {"a", "b"}


def test_a_tree_of_sparks_own_joins_has_no_mesh() -> None:
    run = join_run()
    run.tree = ("a", "b")
    with pytest.raises(qm.UnsupportedError, match="`tree` is its shape"):
        run.mesh  # noqa: B018


def test_where_nothing_is_learned_nobody_waits() -> None:
    assert filter_run().wait_until_learned(0)
    assert filter_run().router is None
    assert filter_run().loops == []


class Listener(Loop):
    """A kind of loop that `Run` has never heard of."""

    problems = ("it listens badly",)

    def __init__(self, learned: bool) -> None:
        self.heard: list[TaskReport] = []
        self.learned = learned

    def receive(self, report: TaskReport) -> None:
        self.heard.append(report)

    def wait(self, seconds: float) -> bool:
        return self.learned

    def explain(self) -> str:
        return f"heard of {len(self.heard)} tasks"

    def add_progress(self, progress: RunProgress) -> None:
        progress["streams"]["t"]["lateRows"] = len(self.heard)


def test_a_new_kind_of_loop_is_put_into_the_run_and_takes_part_in_all_of_it() -> None:
    run, loop, report = filter_run(), Listener(learned=False), filtered(0, 0, 5)
    run.loops.append(loop)
    run.receive(report)
    assert loop.heard == [report]
    assert run.problems == ["it listens badly"]
    assert run.progress["streams"]["t"]["lateRows"] == 1
    assert not run.wait_until_learned(0)
    assert run.loops_of(Listener) == [loop]
    assert run.plan_loop is run.indexing is run.router is None
    loop.learned = True
    assert run.wait_until_learned(0)


def test_a_joins_progress_tells_of_its_states_and_how_far_time_has_come() -> None:
    run = join_run()
    run.receive(joined(0, 0, 4, horizon_us=1_500_000, idle=["b"]))
    told = run.progress
    assert (told["shards"], told["idleStreams"]) == (2, ["b"])
    assert told["horizon"] == watermark_text(1_500_000) == "1970-01-01T00:00:01.500Z"
    assert told["streams"]["a"]["numInputRows"] == told["streams"]["a"]["stateRows"] == 4


def test_sparks_own_progress_has_ours_beside_it() -> None:
    run = filter_run()
    told = run.progress_with({"batchId": 3})
    assert told == {"batchId": 3, "querymesh": run.progress}
    assert run.progress_with(None) == {"querymesh": run.progress}
