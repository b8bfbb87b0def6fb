"""`querymesh advise`, and how its inputs and those of `run` are read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer import BadParameter

from command_line import fails, invoke
from querymesh.cli.files import Reader, reader_from

FUNCTIONS = """
import querymesh as qm

@qm.predicate(columns=["name"], vectorised=False)
def short(name):
    if name == "bad":
        raise ValueError("no name")
    return len(name) < 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file with semicolons and no header, under a name that tells no format, and functions."""
    lines = "".join(f"{i};{'ab' if i % 2 else 'long'}\n" for i in range(200))
    (tmp_path / "rows.data").write_text(f"{lines}200;bad\n", encoding="utf-8")
    (tmp_path / "calls.py").write_text(FUNCTIONS, encoding="utf-8")
    (tmp_path / "query.sql").write_text(
        "SELECT * FROM Rows WHERE short(name) AND id >= 100", encoding="utf-8"
    )
    return tmp_path


def as_csv(folder: Path) -> tuple[str, ...]:
    """The words that read the file, once its first line names its columns."""
    path = folder / "rows.data"
    path.write_text("id;name\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    return ("--format", "csv", "--option", "delimiter=;")


def test_advise_answers_in_words_and_for_programs(spark: SparkSession, folder: Path) -> None:
    told = folder / "advice.json"
    result = invoke(
        *("advise", folder / "rows.data", *as_csv(folder)),
        *("--where", "id < 100", "--where", "short(name)", "--where", "name RLIKE 'a.*b'"),
        *("--functions", folder / "calls.py", "--json", told),
    )
    assert result.exit_code == 0, result.output
    assert result.output.startswith("no: ")
    assert "by remembering repeated values" in result.output
    figures = json.loads(told.read_text(encoding="utf-8"))
    assert figures["verdict"] == "no"
    assert figures["leftToSpark"] == ["id < 100"]
    assert [each["name"] for each in figures["conditions"]] == ["short", "name RLIKE 'a.*b'"]


def test_run_reads_with_the_options_given_and_drops_what_raises(
    spark: SparkSession, folder: Path
) -> None:
    words = ("run", folder / "query.sql", "--input", f"Rows={folder / 'rows.data'}")
    words = (*words, *as_csv(folder), "--functions", str(folder / "calls.py"))
    raised = invoke(*words, "--output", folder / "a")
    assert raised.exit_code == 1, raised.output
    assert "predicate short raised ValueError on the row name='bad'" in raised.stderr
    assert "--on-error drop" in raised.stderr
    result = invoke(*words, "--output", folder / "out.parquet", "--on-error", "drop")
    assert result.exit_code == 0, result.output
    found = pq.read_table(folder / "out.parquet").column("id").to_pylist()
    assert sorted(found) == [i for i in range(100, 200) if i % 2]
    assert "dropped 1 row a predicate raised on" in result.output
    fails(invoke(*words, "--output", folder / "b", "--on-error", "ignore"), 2, "ignore", "drop")


def test_a_format_that_spark_does_not_have_is_one_message(
    spark: SparkSession, folder: Path
) -> None:
    words = ("advise", folder / "rows.data", "--where", "id > 1")
    fails(invoke(*words, "--format", "excel"), 1, "no reader for the format excel", "parquet")
    fails(invoke(*words), 1, "cannot tell the format", "--format")
    fails(invoke("advise", folder / "none.csv", "--where", "id > 1"), 1, "no file or directory")


def test_options_of_the_reader_go_before_ours_whatever_their_case() -> None:
    reader = reader_from(" CSV ", ["HEADER=false", "sep=="])
    assert reader == Reader("csv", {"HEADER": "false", "sep": "="})
    assert reader.options_for("csv") == {"HEADER": "false", "sep": "=", "inferSchema": "true"}
    assert Reader().options_for("parquet") == {}


@pytest.mark.parametrize("given", [["header"], ["=x"], ["a=1", "A=2"]])
def test_a_wrong_option_of_the_reader_is_wrong_usage(given: list[str]) -> None:
    with pytest.raises(BadParameter, match=r"KEY=VALUE|twice"):
        reader_from(None, given)
