from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import querymesh as qm
from querymesh.demo import stream
from querymesh.demo.play import play


def test_the_demo_streams_compares_and_writes_its_page(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "run", partial(qm.run, policy=qm.policies.Mesh(sample_rows=500)))
    monkeypatch.setattr(stream, "ROWS_PER_BATCH", 1000)
    monkeypatch.setattr(stream, "AFTER_SWITCH", 2)
    monkeypatch.setattr(stream, "MOST_SECONDS", 15)
    screen = io.StringIO()
    page = tmp_path / "demo.html"
    console = Console(file=screen, width=140)
    figures = play(spark, 1, page, console, rows=2000, rounds=1)
    shown = screen.getvalue()
    assert "processedRowsPerSecond" in shown
    assert "same rows" in shown
    assert page.stat().st_size > 20_000
    comparison = json.loads(json.dumps(figures))["comparison"]
    assert comparison["same_results"]
    calls = {c["name"]: c["evaluations_per_row"] for c in comparison["contenders"]}
    assert calls["mesh"] <= calls["best single order"] <= calls["plain Spark"]
