import json

import numpy as np
import pyarrow as pa
import pytest

from querymesh_lab.bench.joins import growth
from querymesh_lab.bench.joins.core_run import as_batches, steps
from querymesh_lab.bench.joins.growth import GrowingJoin, GrowthPoint, GrowthSize, join_of

SMALL = GrowthSize(streams=3, window_rows=800, batch_rows=200)


def test_steps_end_at_the_same_time_in_every_stream_and_hold_every_row_once():
    join = join_of(GrowthSize(2, 10, 10))
    rng = np.random.default_rng(0)

    def stream(rows):
        times = np.sort(rng.integers(0, 400, rows))
        columns = {"id": np.arange(rows), "ts": pa.array(times, pa.timestamp("us", "UTC"))}
        return pa.table({**columns, "k": np.zeros(rows, np.int64), "price": np.zeros(rows)})

    streams = as_batches({"s0": stream(300), "s1": stream(170)})
    for step_rows in (1, 7, 100, 470, 10_000):
        cut = list(steps(join, streams, step_rows))
        for alias, rows in streams.items():
            assert np.array_equal(
                np.concatenate([step[alias].column("id") for step in cut]), rows.column("id")
            )
        ends = [
            max(t for rows in step.values() for t in rows.column("ts").to_pylist()) for step in cut
        ]
        begins = [
            min(t for rows in step.values() for t in rows.column("ts").to_pylist()) for step in cut
        ]
        assert all(end < begin for end, begin in zip(ends, begins[1:], strict=False))
        assert max(sum(rows.num_rows for rows in step.values()) for step in cut) < step_rows + 20


def test_windows_stay_full_and_no_fuller_while_batches_arrive():
    growing = GrowingJoin(SMALL)
    for _ in range(20):
        growing.round(1)
        for stem in growing.fabric.streams.values():
            assert SMALL.window_rows <= stem.rows <= 3 * SMALL.window_rows


def test_a_round_counts_every_arrival_and_a_probe_finds_half_a_match():
    growing = GrowingJoin(SMALL)
    before = sum(view.metrics.rows_out for view in growing.fabric.views.values())
    done = growing.round(10)
    assert done.rows == 3 * 200 * 10
    assert done.probes == pytest.approx(1.5 * done.rows, rel=0.1)
    results = sum(view.metrics.rows_out for view in growing.fabric.views.values()) - before
    assert results == pytest.approx(0.25 * done.rows, rel=0.15)
    assert done.comparisons >= 0.5 * done.probes
    assert 0 < done.results_s < done.seconds


def test_a_stored_row_is_weighed_in_memory_as_a_file_and_bare():
    growing, point = GrowingJoin(SMALL), GrowthPoint(SMALL)
    growing.round(2)
    growing.weigh(point)
    assert point.raw_bytes_a_row == 32
    assert 32 < point.file_bytes_a_row < 64
    assert 32 < point.memory_bytes_a_row < 96


def test_quick_growth_gives_a_row_for_each_size_and_draws_it(tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    rows = growth.run_growth(True, lambda line: None, tmp_path / "plots")
    rows = json.loads(json.dumps(rows))
    sizes = {(row["details"].get("streams"), row["details"].get("window_rows")) for row in rows}
    assert sizes == {(3, 1000), (3, 10_000), (2, 2000), (4, 2000), (None, None)}
    assert all(row["value"] > 0 for row in rows)
    assert all("--growth --quick" in row["details"]["command"] for row in rows)
    drawn = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert drawn == [
        "join-bytes-by-window.svg",
        "join-rows-by-streams.svg",
        "join-time-by-window.svg",
    ]
    growth.print_rows(rows)
