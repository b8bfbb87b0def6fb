"""`querymesh run --budget`: what calls may cost, and what happens at the end of it."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from command_line import fails, invoke

FUNCTIONS = """
import querymesh as qm

@qm.predicate(columns=["text"], vectorised=False, price=1)
def praises(text):
    return text.startswith("good")
"""


@pytest.fixture
def words(tmp_path):
    (tmp_path / "calls.py").write_text(FUNCTIONS, encoding="utf-8")
    (tmp_path / "query.sql").write_text("SELECT r.text FROM Review r WHERE praises(r.text)")
    texts = [f"{'good' if number % 2 else 'bad'} {number}" for number in range(100)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "reviews.parquet")
    return [
        "run", tmp_path / "query.sql", "--input", f"Review={tmp_path / 'reviews.parquet'}",
        "--functions", str(tmp_path / "calls.py"),
    ]  # fmt: skip


def test_a_budget_that_is_spent_stops_and_says_what_on(spark: SparkSession, words, tmp_path):
    stopped = invoke(*words, "--output", tmp_path / "a.parquet", "--budget", "30")
    fails(stopped, 1, "the budget of 30.00 cannot pay", "calls of praises")


def test_rows_that_a_budget_cannot_pay_for_are_kept_if_told(spark: SparkSession, words, tmp_path):
    words += ["--budget", "30", "--budget-then", "keep"]
    result = invoke(*words, "--output", tmp_path / "b.parquet")
    assert result.exit_code == 0, result.output
    found = pq.read_table(tmp_path / "b.parquet").column("text").to_pylist()
    good = [text for text in found if text.startswith("good")]
    assert len(good) == 50
    assert len(found) > 70, "of the 70 that nobody asked about those that are not good come too"
    assert "the budget could not pay for" in result.output


def test_a_wrong_end_of_a_budget_is_wrong_usage(words, tmp_path):
    words += ["--budget", "30", "--budget-then", "explode"]
    fails(invoke(*words, "--output", tmp_path / "c"), 2, "explode", "keep")
