"""Commands of `querymesh`, called in this process."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from typer.testing import CliRunner, Result

from querymesh.cli.added import GROUP
from querymesh.cli.commands import command_line


def invoke(*words: str | Path, added: list[EntryPoint] | None = None) -> Result:
    """Run a command, with the commands that installed distributions add unless others are given."""
    app = command_line(entry_points(group=GROUP) if added is None else added)
    # Wide enough that no path is broken over two lines.
    return CliRunner(env={"COLUMNS": "250"}).invoke(app, [str(word) for word in words])


def fails(result: Result, code: int, *words: str) -> None:
    """The command ended as it should, with a message and without a traceback."""
    text = " ".join((result.output + result.stderr).split())
    assert result.exit_code == code, text
    assert "Traceback" not in text
    for word in words:
        assert word in text
