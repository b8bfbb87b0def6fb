"""`querymesh run --policy rate`: goals as text, trees of Spark's own joins, files for streams."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from command_line import fails, invoke

SQL = """SELECT s.id AS s, n.id AS n FROM Stock s [RANGE 5 SECONDS], News n [RANGE 5 SECONDS]
WHERE s.k = n.k"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A join of two streams, one row a second each, which match in every second row."""
    (tmp_path / "query.sql").write_text(SQL, encoding="utf-8")
    for name, step in (("stock", 1), ("news", 2)):
        (tmp_path / name).mkdir()
        times = pa.array([1_700_000_000_000_000 + 1_000_000 * i for i in range(0, 40, step)])
        table = {"ts": times.cast(pa.timestamp("us", "UTC")), "id": range(0, 40, step)}
        table["k"] = table["id"]
        table["note"] = ["not asked for"] * len(times)
        pq.write_table(pa.table(table), tmp_path / name / "0.parquet")
    return tmp_path


def run(folder: Path, *words: str | Path):
    names = ("Stock", "News")
    given = [w for name in names for w in ("--input", f"{name}={folder / name.lower()}")]
    asked = ("run", folder / "query.sql", *given, "--time", "ts", "--policy", "rate")
    return invoke(*asked, "--output", folder / "out.parquet", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--goal", "fastest"), "a goal is 'most by 60s', 'first 1000' or 'last', not 'fastest'"),
        (("--goal", "first 0"), "the first 0.0 results: write a number above 0"),
        (("--goal", "first 5000"), "the first 5000 results are not reached"),
        (("--goal", "last", "--policy", "mesh"), "--goal is of policy rate"),
        (("--engine", "native", "--index", "amri"), "leave out index="),
    ],
    ids=str,
)
def test_a_goal_that_cannot_be_is_one_message(
    spark: SparkSession, folder: Path, words: tuple[str, ...], said: str
) -> None:
    fails(run(folder, *words), 1, said)


def test_a_batch_runs_as_a_tree_and_shows_it(spark: SparkSession, folder: Path) -> None:
    result = run(folder, "--engine", "native", "--goal", "first 5")
    assert result.exit_code == 0, result.output
    assert 'goal "first 5", 1 round seen, as a tree of Spark\'s own joins' in result.output
    assert "├─" in result.output
    assert spark.read.parquet(str(folder / "out.parquet")).count() == 20


@pytest.mark.parametrize(
    ("words", "title", "drawings"),
    [
        (("--engine", "native"), "Output rates of the join of s, n", 0),
        (("--stream",), "Output rates of the join of s, n", 0),
        # Of two streams there is one order, and so only a chart of the one that has conditions.
        (("--policy", "chart"), "Charts of the join of s, n", 1),
        # After one micro-batch there is none yet.
        (("--policy", "chart", "--weights", "1,2", "--stream"), "Charts of the join of s, n", 0),
    ],
    ids=str,
)
def test_a_run_writes_what_it_planned_as_a_page(
    spark: SparkSession, folder: Path, words: tuple[str, ...], title: str, drawings: int
) -> None:
    (folder / "query.sql").write_text(f"{SQL} AND s.id < 30", encoding="utf-8")
    page = folder / "plan.html"
    kept = ("--checkpoint", folder / "checkpoint") if "--stream" in words else ()
    result = run(folder, *words, *kept, "--html", page)
    assert result.exit_code == 0, result.output
    assert f"page written to {page}" in result.output
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert f"<h1>{title}</h1>" in text
    assert "AND s.id &lt; 30" in text
    assert f"policy {'chart' if 'Charts' in title else 'rate'}" in text
    assert text.count("<svg") == drawings


def test_a_page_is_of_plans_by_rates_or_charts_only(spark: SparkSession, folder: Path) -> None:
    page = folder / "no" / "plan.html"
    for policy in ("mesh", "eddy", "single"):
        refused = run(folder, "--policy", policy, "--html", page)
        fails(refused, 2, "give --policy rate or", "explain --html")
    assert not (folder / "out.parquet").exists()
    fails(run(folder, "--html", page), 1, f"cannot write the page to {page}")


def test_a_stream_runs_as_a_tree_that_a_sample_was_given_for(
    spark: SparkSession, folder: Path
) -> None:
    stream = ("--engine", "native", "--stream", "--checkpoint", folder / "checkpoint")
    fails(run(folder, *stream), 1, "give sample=")
    samples = [
        w for name in ("Stock", "News") for w in ("--sample", f"{name}={folder / name.lower()}")
    ]
    result = run(folder, *stream, *samples)
    assert result.exit_code == 0, result.output
    assert "as a tree of Spark's own joins" in result.output
    assert spark.read.parquet(str(folder / "out.parquet")).count() == 20
