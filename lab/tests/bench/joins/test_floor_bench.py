"""Our join against Spark's own part of the same job: all rows travel, and nothing comes out."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from querymesh.errors import QueryMeshError, SetupError
from querymesh_lab.bench.data.join_data import Design
from querymesh_lab.bench.joins import floor_bench
from querymesh_lab.bench.joins.floor_bench import BATCH_ROWS, design_of, run_floor
from querymesh_lab.bench.joins.join_bench import DESIGNS
from querymesh_lab.bench.joins.join_case import JoinCase, Outcome, write_case
from querymesh_lab.bench.joins.on_spark import floor_contestant
from querymesh_lab.bench.measure import Timing, silent


@pytest.mark.parametrize("batch_rows", BATCH_ROWS)
def test_a_batch_of_any_size_has_windows_of_as_many_batches(batch_rows: int) -> None:
    design = design_of(batch_rows)
    assert design.all_rows == batch_rows * design.batches
    assert design.in_window * 5 == pytest.approx(1.5 * batch_rows)


def test_sizes_that_the_table_of_rivals_has_too_are_the_same_streams() -> None:
    by_name = {design.name: design for design in DESIGNS}
    for batch_rows in (2_000, 20_000):
        assert by_name[design_of(batch_rows).name] == design_of(batch_rows)


def test_the_floor_takes_in_every_row_and_gives_out_none(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = Design("3-way", rows=300, rate=100.0, window_s=1, batches=2)
    case = write_case(design, tmp_path / "case")
    seen = tmp_path / "seen"
    seen.mkdir()

    def counted(batches):  # type: ignore[no-untyped-def]
        rows = [batch.num_rows for batch in batches]
        (seen / f"{len(list(seen.iterdir()))}-{id(rows)}").write_text(str(sum(rows)))
        return
        yield

    assert floor_contestant.floor_contestant(spark, case).answer == (0, 0, 0)
    monkeypatch.setattr(floor_contestant, "taken_in", counted)
    outcome = floor_contestant.floor_contestant(spark, case)
    assert outcome.answer == (0, 0, 0)
    assert outcome.details["batches"] == design.batches
    assert sum(int(path.read_text()) for path in seen.iterdir()) == design.all_rows


def test_the_table_has_the_floor_and_both_policies(spark: SparkSession) -> None:
    said: list[str] = []
    rows = run_floor(True, None, said.append)
    assert [row["claim"] for row in rows] == ["floor", "single", "mesh"]
    assert rows[0]["value"] == 1.0
    assert all(row["details"]["us_a_row"] > 0 for row in rows)
    assert all(row["target"] == "-" for row in rows)
    floor_bench.print_rows(rows)
    assert "× floor" in said[-1]


def test_large_batches_are_held_against_the_target_and_small_ones_are_not() -> None:
    timing = Timing({"floor": (2.0,), "mesh": (2.4,), "A/A control": (2.0,)}, "floor")
    found = {rows: floor_bench._finding(design_of(rows), timing, "mesh") for rows in BATCH_ROWS}
    assert [found[rows].target for rows in BATCH_ROWS] == ["-", "-", *["≤ 1.25 × floor"] * 2]
    assert found[200_000].met
    assert found[200_000].value == 1.2
    assert found[200_000].details["us_a_row"] == 2.0
    assert floor_bench._finding(design_of(200_000), timing, "floor").target == "-"


def test_without_processor_time_nothing_is_said(tmp_path: Path) -> None:
    case = JoinCase(Design("3-way"), tmp_path, (1, 2, 3))
    with pytest.raises(SetupError, match="/proc"):
        floor_bench.processor_seconds(Outcome(case.expected, 1.0))


def test_an_unknown_case_names_those_there_are() -> None:
    with pytest.raises(QueryMeshError, match="batches of 2,000"):
        run_floor(True, ["5-way uniform, batches of 3,000"], silent)
