"""Commands that other distributions add: `reproduce` and `bench` come with the laboratory.

A distribution adds a command by an entry point of the group `querymesh.commands`, a function that
typer can read. In the `pyproject.toml` of the laboratory::

    [project.entry-points."querymesh.commands"]
    bench = "querymesh_lab.cli:bench"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint

import typer

from querymesh.errors import SetupError

GROUP = "querymesh.commands"
LAB_COMMANDS = {
    "reproduce": "Run a paper's experiments again (part of the laboratory, not installed).",
    "bench": "Measure against other engines (part of the laboratory, not installed).",
}
"""The laboratory's commands, and what `--help` says of them where it is missing."""

_ANY_WORDS = {"allow_extra_args": True, "ignore_unknown_options": True}


def add_commands(app: typer.Typer, entry_points: Iterable[EntryPoint]) -> None:
    """Add every command found; one of the laboratory that is missing says what to install."""
    found = {entry_point.name: entry_point for entry_point in entry_points}
    for name in {**LAB_COMMANDS, **found}:
        if name in found:
            _add(app, found[name])
        else:
            message = (
                f"querymesh {name} is part of the laboratory, which is not installed: "
                "run pip install ./lab in a checkout of QueryMesh"
            )
            _add_refusal(app, name, LAB_COMMANDS[name], message)


def _add(app: typer.Typer, entry_point: EntryPoint) -> None:
    try:
        command: Callable[..., None] = entry_point.load()
    except (ImportError, AttributeError) as problem:
        # One distribution that is broken must not take the other commands with it.
        message = f"querymesh {entry_point.name} cannot be loaded: {problem}"
        _add_refusal(app, entry_point.name, "Cannot be loaded.", message)
    else:
        app.command(entry_point.name)(command)


def _add_refusal(app: typer.Typer, name: str, summary: str, message: str) -> None:
    """A command that takes any words and says why it cannot run."""

    def refuse() -> None:
        raise SetupError(message)

    app.command(name, help=summary, context_settings=_ANY_WORDS)(refuse)
