from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import filter_runs
import meshes
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.watch import Switch
from querymesh.report.text.advice_text import advice_text
from querymesh.report.text.mesh_text import mesh_text
from querymesh.report.text.run_text import metrics_text, run_text, switches_text
from querymesh.runtime.run import Run

GOLDEN = Path(__file__).parent


def agrees(text: str, name: str) -> None:
    """Compare with the golden file; delete the file and run again to write it anew."""
    path = GOLDEN / name
    if not path.exists():
        path.write_text(text + "\n", encoding="utf-8")
        pytest.fail(f"{name} was missing and has been written: read it, then run again")
    assert text + "\n" == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "make", [meshes.three_kinds, meshes.one_route, meshes.untrained, meshes.no_operators]
)
def test_a_mesh_reads_as_in_its_golden_file(make: Callable[[], Mesh]) -> None:
    agrees(mesh_text(make()), f"mesh_{make.__name__}.txt")


def test_a_run_reads_as_in_its_golden_file() -> None:
    agrees(metrics_text(meshes.a_run(), meshes.three_kinds()), "metrics_a_run.txt")


def test_a_run_without_rows_reads_as_in_its_golden_file() -> None:
    agrees(metrics_text(meshes.Metrics(), meshes.untrained()), "metrics_nothing.txt")


def test_a_switch_says_after_which_batch_and_why():
    when = datetime(2026, 1, 2, tzinfo=UTC)
    switch = Switch(2, 41, when, "scan passed 10% and now 90%: 12 -> 9 µs a row", 0.25)
    assert switches_text([switch]) == (
        "after batch 41 mesh 2, expected to save 25.0 %: "
        "scan passed 10% and now 90%: 12 -> 9 µs a row"
    )
    assert switches_text([]) == ""


@pytest.mark.parametrize(
    "make",
    [filter_runs.plain, filter_runs.nothing_to_order, filter_runs.native, filter_runs.sandwich],
)
def test_the_run_of_a_filter_reads_as_in_its_golden_file(make: Callable[[], Run]) -> None:
    agrees(run_text(make()), f"run_{make.__name__}.txt")


def test_an_advice_reads_as_in_its_golden_file() -> None:
    agrees(advice_text(filter_runs.advice()), "advice.txt")


def test_a_decision_that_an_earlier_call_made_says_that_nothing_was_spent() -> None:
    run = filter_runs.sandwich()
    assert run.preparation is not None
    run.preparation = replace(run.preparation, remembered=True)
    assert "nothing was spent this time" in run_text(run)
