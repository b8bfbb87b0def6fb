"""Commands that other distributions add, and what is said where they are missing."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from command_line import fails, invoke
from querymesh.cli.added import GROUP

SOURCES = Path(__file__).parents[2] / "src" / "querymesh"


@pytest.mark.parametrize("words", [("bench",), ("bench", "where", "--quick"), ("reproduce", "qm")])
def test_without_the_laboratory_its_commands_say_what_to_install(words: tuple[str, ...]) -> None:
    missing = f"querymesh {words[0]} is part of the laboratory"
    fails(invoke(*words, added=[]), 1, missing, "pip install ./lab")


def test_help_names_the_laboratory_where_it_is_missing() -> None:
    text = " ".join(invoke("--help", added=[]).output.split())
    assert "bench Measure against other engines (part of the laboratory" in text
    assert "reproduce Run a paper's experiments again (part of the laboratory" in text


def test_a_distribution_adds_a_command_by_an_entry_point() -> None:
    entry_point = EntryPoint("words", "test_added:say", GROUP)
    assert "Say two words." in invoke("--help", added=[entry_point]).output
    assert invoke("words", "--second", "you", added=[entry_point]).output == "hello you\n"


def say(first: str = "hello", second: str = "world") -> None:
    """Say two words."""
    print(first, second)


@pytest.mark.parametrize("place", ["no_such_module_at_all:bench", "test_added:no_such_function"])
def test_a_command_that_cannot_be_loaded_stops_no_other(place: str) -> None:
    broken = EntryPoint("bench", place, GROUP)
    assert invoke("--help", added=[broken]).exit_code == 0
    fails(
        invoke("bench", "where", added=[broken]), 1, "querymesh bench cannot be loaded", "no_such"
    )


def test_the_library_imports_nothing_of_the_laboratory() -> None:
    named = re.compile(r"^\s*(from|import) querymesh_lab\b", re.MULTILINE)
    files = list(SOURCES.rglob("*.py"))
    assert files
    assert not [path for path in files if named.search(path.read_text(encoding="utf-8"))]
