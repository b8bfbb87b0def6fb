from __future__ import annotations

import io

from rich.console import Console

from querymesh.report.live.progress import ProgressLines, batch_progress

SPARK = {"batchId": 3, "numInputRows": 1200, "processedRowsPerSecond": 900.5}


def test_a_first_batch_has_no_input_rate_and_reads_as_zero() -> None:
    batch = batch_progress(SPARK, 2.5, 1, 4)
    assert batch.input_rows_per_second == 0.0
    assert batch.as_json() == {
        "batchId": 3,
        "numInputRows": 1200,
        "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 900.5,
        "evaluationsPerRow": 2.5,
        "version": 1,
        "routes": 4,
    }


def test_the_head_comes_once_and_again_after_an_interruption() -> None:
    console = Console(file=io.StringIO(), width=120)
    lines = ProgressLines(console)
    batch = batch_progress(SPARK, None, 0, 1)
    lines.show(batch)
    lines.show(batch)
    lines.interrupted()
    lines.show(batch)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("batchId") == 2
    assert text.count("900") == 3
