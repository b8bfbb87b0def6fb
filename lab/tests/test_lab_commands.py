"""`querymesh bench` and `querymesh reproduce`, as the laboratory's pyproject.toml names them."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from command_line import fails, invoke
from querymesh.cli.added import GROUP, LAB_COMMANDS
from querymesh_lab.papers.claim import Claim, Result

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


@pytest.fixture
def added() -> list[EntryPoint]:
    """The commands that installing the laboratory adds."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    commands = project["entry-points"][GROUP]
    return [EntryPoint(name, place, GROUP) for name, place in commands.items()]


def test_the_laboratory_adds_every_command_that_is_named_without_it(
    added: list[EntryPoint],
) -> None:
    assert {entry_point.name for entry_point in added} == set(LAB_COMMANDS)
    assert all(callable(entry_point.load()) for entry_point in added)


def test_help_of_a_benchmark_names_its_options(added: list[EntryPoint]) -> None:
    result = invoke("bench", "where", "--help", added=added)
    assert result.exit_code == 0, result.output
    assert all(
        word in result.output for word in ("--quick", "--case", "--growth", "--real", "--group")
    )


def test_an_unknown_benchmark_is_wrong_usage(added: list[EntryPoint]) -> None:
    fails(invoke("bench", "everything", added=added), 2, "where")


def test_forms_of_the_join_benchmark_are_wrong_usage_of_others(added: list[EntryPoint]) -> None:
    fails(invoke("bench", "where", "--real", added=added), 2, "are of bench join")


def test_groups_are_of_the_guest_and_the_costly_benchmark(added: list[EntryPoint]) -> None:
    fails(invoke("bench", "where", "--group", "tpch", added=added), 2, "is of bench guest")
    fails(invoke("bench", "guest", "--group", "tpcds", added=added), 1, "tpcds", "tpch")
    fails(invoke("bench", "costly", "--group", "tpcds", added=added), 1, "tpcds", "proxies")


def test_an_unknown_paper_or_figure_is_one_message(added: list[EntryPoint]) -> None:
    fails(invoke("reproduce", "om2", added=added), 1, "om2", "amri")
    fails(invoke("reproduce", "om", "--figure", "99", added=added), 1, "99")


def test_rows_that_were_written_are_printed_as_markdown_without_a_run(
    added: list[EntryPoint], tmp_path: Path
) -> None:
    target = tmp_path / "rows.json"
    row = Result(Claim("om", "3a", "a claim", 80.0, "%"), 83.2).as_row("a command")
    target.write_text(json.dumps([row]))
    result = invoke("reproduce", "om", "--read", target, "--markdown", added=added)
    assert result.exit_code == 0, result.output
    assert "| 3a | a claim | 80 % | 83.2 % |  |  | exceeds |" in result.output
    fails(invoke("reproduce", "om", "--read", tmp_path / "none.json", added=added), 1, "none.json")


def test_bench_measures_a_case_prints_it_and_writes_json(
    spark: SparkSession, added: list[EntryPoint], tmp_path: Path
) -> None:
    target = tmp_path / "bench.json"
    words = ("bench", "where", "--quick", "--case", "training", "--json", target)
    result = invoke(*words, added=added)
    assert result.exit_code == 0, result.output
    assert "querymesh bench where" in result.output
    rows = json.loads(target.read_text())
    assert {row["case"] for row in rows} == {"training"}
    assert all(row["value"] > 0 for row in rows)
