"""Where a mesh gains: the grid is whole, and a cell reports everything it is asked for."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.qm.windows import grid
from querymesh_lab.papers.qm.windows.grid import Cell

COLUMNS = (
    "kinds", "matches", "window", "step", "SP, µs a tuple", "QM, µs a tuple", "QM over SP", "A/A",
    "probes a tuple, SP", "QM", "at best by kind", "leaves", "results a tuple",
)  # fmt: skip


def test_its_parts_are_the_whole_grid_and_the_papers_cell_is_among_them() -> None:
    every = [cell for rows in grid.WINDOW_ROWS for cell in grid.cells(rows)]
    assert len(every) == len(set(every)) == 81
    assert every.count(grid.PAPER_CELL) == 1
    assert [cell for cell in every if "the paper's own" in cell.name] == [grid.PAPER_CELL]


def test_a_cell_is_reported_with_times_probes_and_leaves() -> None:
    (found,) = grid.measure(Bench(quick=True), grid.cells(1_000))
    cell = found.details["cell"]
    assert tuple(cell) == COLUMNS
    assert found.our_value == cell["QM over SP"] > 0
    assert found.a_a == cell["A/A"]
    assert cell["at best by kind"] <= cell["probes a tuple, SP"]
    assert cell["leaves"] >= 1


def test_with_one_kind_a_mesh_has_to_keep_what_one_order_has() -> None:
    one, more = Cell(1, 3.0, 1_000, 1_000).claim(), Cell(3, 3.0, 1_000, 1_000).claim()
    assert (one.paper_value, one.sense) == (0.978, "at least")
    assert (more.paper_value, more.sense) == (None, "more")


def test_some_cells_are_timed_as_whole_spark_jobs(spark: SparkSession) -> None:
    (found,) = grid.measure_jobs(Bench(quick=True, start=lambda: spark))
    assert found.claim.claim.endswith("whole Spark job")
    assert found.our_value is not None
    assert found.our_value > 0


def test_the_spark_jobs_were_chosen_beforehand_one_for_each_number_of_kinds() -> None:
    assert [(cell.kinds, cell.matches, cell.window_rows) for cell in grid.SPARK_CELLS] == [
        (1, 3.0, 10_000), (3, 3.0, 10_000), (9, 3.0, 10_000),
    ]  # fmt: skip


def test_all_cells_of_a_part_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Cell] = []
    monkeypatch.setattr(grid, "_core", lambda bench, cell: ran.append(cell))
    monkeypatch.setattr(grid, "_warm_up", lambda: None)
    grid.measure(Bench(), grid.cells(3_000))
    assert ran == grid.cells(3_000)
