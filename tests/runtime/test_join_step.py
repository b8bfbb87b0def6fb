"""The one step of a windowed join, which tasks, benchmarks and tests drive."""

import numpy as np
import pyarrow as pa

import querymesh as qm
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.join.index_order import LEAST_ROWS
from querymesh.fabric.join.indices import Indices, attributes_of
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.index.store.index_plan import HashPlan
from querymesh.index.tune.indexing import Indexing
from querymesh.index.tune.tuner import Tuner
from querymesh.mesh.mesh import written_order
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.runtime.join_step import JoinSteps, counted_streams, newest_us
from querymesh.runtime.task.slots import PLACE

SECOND_US = 1_000_000
RANGE = (
    "SELECT a.v AS i, b.v AS j FROM A a [RANGE 5 SECONDS], B b [RANGE 2 SECONDS] WHERE a.k = b.k"
)
ROWS = "SELECT a.v AS i, b.v AS j FROM A a [ROWS 2], B b [RANGE 9 SECONDS] WHERE a.k = b.k"


def batch(*rows: tuple[float, int, int]) -> pa.RecordBatch:
    """Rows of (second, key, value)."""
    seconds, keys, values = zip(*rows, strict=True) if rows else ((), (), ())
    times = pa.array([round(s * SECOND_US) for s in seconds], pa.timestamp("us", "UTC"))
    columns = {"ts": times, "k": pa.array(keys, pa.int64()), "v": pa.array(values, pa.int64())}
    return pa.record_batch(columns)


def join_of(sql: str) -> JoinQuery:
    return bind_join(qm.query(sql, time="ts"), {name: batch().schema for name in "AB"})


def steps_of(sql: str, **how: object) -> JoinSteps:
    """A join on the orders as written."""
    join = join_of(sql)
    routers = {
        alias: MeshRouter(
            written_order(join.query, tuple(op.name for op in view.operators), view.precedence)
        )
        for alias, view in join.views.items()
    }
    return JoinSteps(JoinFabric(join), routers, **how)


def results(steps: JoinSteps, on_stored=None, **streams: pa.RecordBatch) -> list[tuple[int, int]]:
    out = steps.step(steps.arrivals(streams), on_stored)
    return sorted(tuple(row.values()) for batch in out for row in batch.to_pylist())


def test_what_arrives_meets_what_came_before_and_what_comes_with_it() -> None:
    steps = steps_of(RANGE)
    assert results(steps, a=batch((0, 7, 1)), b=batch((1, 7, 10))) == [(1, 10)]
    assert results(steps, b=batch((4, 7, 11), (6, 7, 12))) == [(1, 11)]


def test_the_caller_is_told_between_storing_and_probing() -> None:
    steps = steps_of(RANGE)
    results(steps, a=batch((0, 7, 1)))
    told = []

    def on_stored(arrivals, partitions) -> None:
        rows = {alias: stem.rows for alias, stem in steps.fabric.streams.items()}
        probed = {alias: stem.probes for alias, stem in steps.fabric.stems.items()}
        told.append((set(arrivals), len(partitions["b"]), rows, probed["a"]))

    found = results(steps, on_stored, b=batch((1, 7, 10), (2, 7, 11)))
    assert found == [(1, 10), (1, 11)]
    assert told == [({"b"}, 2, {"a": 1, "b": 2}, 0)], "both are stored and none has probed"


def test_the_caller_is_told_of_arrivals_in_their_order_whatever_the_order_of_probes() -> None:
    steps = steps_of(RANGE)
    steps.fabric.streams["a"].plan = HashPlan(None, (0,))
    keys = np.random.default_rng(0).permutation(LEAST_ROWS)
    rows = batch(*((number / 10_000, int(key), number) for number, key in enumerate(keys)))
    told = []
    results(steps, lambda arrivals, _: told.append(arrivals["a"].times), a=rows)
    assert (np.diff(told[0]) > 0).all()
    (partition,) = steps.fabric.streams["a"].partitions
    assert not (np.diff(partition.times) > 0).all()


def test_routers_may_be_exchanged_between_steps() -> None:
    steps = steps_of(RANGE)
    results(steps, a=batch((0, 7, 1)))
    other = steps_of(RANGE)
    steps.routers = other.routers
    assert results(steps, b=batch((1, 7, 10))) == [(1, 10)]


def test_only_windows_that_count_rows_are_counted() -> None:
    assert counted_streams(join_of(RANGE)) == {}
    assert counted_streams(join_of(ROWS)) == {"a": 0}
    assert counted_streams(join_of(ROWS), {"a": 7, "b": 9}) == {"a": 7}
    steps = steps_of(ROWS)
    placed = {"a": np.array([0, 1, 2]), "b": np.array([3])}
    streams = {"a": batch((0, 7, 1), (0, 7, 2), (0, 7, 3)), "b": batch((0, 7, 10))}
    found = [row for out in steps.step(steps.arrivals(streams, placed)) for row in out.to_pylist()]
    assert [row["i"] for row in found] == [2, 3], "the last two of a"
    assert steps.counted == {"a": 3}
    assert steps_of(ROWS, counted={"a": 5}).counted == {"a": 5}


def test_places_may_be_a_column_of_the_rows() -> None:
    steps = steps_of(ROWS)

    def placed(rows: pa.RecordBatch, *places: int) -> pa.RecordBatch:
        return rows.append_column(PLACE, pa.array(places, pa.int64()))

    rows = placed(batch((0, 7, 1), (0, 7, 2)), 9, 4)
    arrived = steps.arrivals({"a": rows, "b": placed(batch())})["a"]
    assert arrived.rows["v"].to_pylist() == [2, 1], "of one time, by place"
    assert PLACE not in arrived.rows.schema.names


def test_what_no_later_tuple_can_meet_is_forgotten() -> None:
    steps = steps_of(RANGE)
    arrivals = steps.arrivals({"a": batch((0, 7, 1)), "b": batch((0, 7, 10))})
    assert newest_us(arrivals) == 0
    list(steps.step(arrivals))
    steps.forget(3 * SECOND_US)
    assert {alias: stem.rows for alias, stem in steps.fabric.streams.items()} == {"a": 1, "b": 0}
    assert results(steps, b=batch((3, 7, 11))) == [(1, 11)]
    assert newest_us({}) is None
    assert newest_us(steps.arrivals({"a": batch()})) is None


def test_small_partitions_are_merged() -> None:
    steps = steps_of(RANGE)
    for second in range(40):
        results(steps, a=batch((second / 100, 7, second)))
    before = len(steps.fabric.streams["a"].partitions)
    steps.forget(0)
    assert len(steps.fabric.streams["a"].partitions) < before
    assert len(results(steps, b=batch((0.5, 7, 10)))) == 40


def test_indices_are_chosen_after_a_step_if_the_driver_of_steps_tunes() -> None:
    eager = Indexing(first=1, window=1, every=1, steps=1)
    for tunes in (False, True):
        steps = steps_of(RANGE, tunes=tunes)
        tuner = Tuner("amri", attributes_of(steps.fabric.join), eager)
        steps.indices = Indices(steps.fabric, tuner)
        for second in range(3):
            rows = batch(*((second, key, key) for key in range(50)))
            assert len(results(steps, a=rows, b=rows)) == 50 * (1, 3, 5)[second]
        assert bool(tuner.changes) == tunes
