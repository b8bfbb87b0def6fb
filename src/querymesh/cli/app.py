"""The group that all commands belong to: it turns errors into a message and an exit code.

Errors of the package are one red message and exit code 1, wrong usage is exit code 2, Ctrl-C is a
message and exit code 130, and only a defect shows a traceback.
"""

from __future__ import annotations

from typing import Any

import typer
from pyspark.errors import PySparkException
from rich.text import Text
from typer.core import TyperGroup

from querymesh.cli.interrupt import err, stop_all
from querymesh.cli.main import INTERRUPTED
from querymesh.errors import QueryMeshError
from querymesh.spark.workers.worker_python import mismatch_in


class Commands(TyperGroup):
    """All commands; what they raise is told without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except QueryMeshError as problem:
            err.print(Text(_as_typed(str(problem)), style="red"), soft_wrap=True)
        except PySparkException as problem:
            err.print(Text(_as_typed(_task_error(problem)), style="red"), soft_wrap=True)
        except KeyboardInterrupt:
            stop_all()
            err.print("stopped by Ctrl-C", soft_wrap=True)
            raise typer.Exit(INTERRUPTED) from None
        raise typer.Exit(1)


def _as_typed(text: str) -> str:
    """An error with the options it names as one types them here."""
    return text.replace('on_error="drop"', "--on-error drop")


def _task_error(problem: PySparkException) -> str:
    """What went wrong in a task, without Spark's traceback around it."""
    text = str(problem)
    if (another_python := mismatch_in(text)) is not None:
        return another_python
    ours = text.rfind("querymesh.errors.")
    if ours < 0:
        return f"Spark: {text.strip().splitlines()[0]}"
    kind, _, message = text[ours + len("querymesh.errors.") :].partition(": ")
    java = message.find("\n\n\tat ")
    return message[:java].strip() if java > 0 else message.strip() or kind


def empty_app() -> typer.Typer:
    """The application before any command is added."""
    return typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help="Different plans for different data, on Apache Spark.",
    )
