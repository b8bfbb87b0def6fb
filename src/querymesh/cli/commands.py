"""The command line: demo, run, explain, advise, doctor, and what other distributions add.

The library prints nothing; the modules of this package do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points

import typer

from querymesh.cli.added import GROUP, add_commands
from querymesh.cli.advise import advise
from querymesh.cli.app import empty_app
from querymesh.cli.demo import demo
from querymesh.cli.doctor import doctor
from querymesh.cli.explain import explain
from querymesh.cli.interrupt import quieten
from querymesh.cli.run import run


def command_line(added: Iterable[EntryPoint]) -> typer.Typer:
    """The application with all its commands, those of other distributions among them."""
    app = empty_app()
    for command in (demo, run, explain, advise):
        app.command()(command)
    add_commands(app, added)
    app.command()(doctor)
    return app


def run_command_line() -> None:
    """Run the command that this process was started with, and end the process."""
    # PySpark logs an analysis error as a page of JSON before it raises it; we print its message.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    quieten()
    command_line(entry_points(group=GROUP))(prog_name="querymesh")
