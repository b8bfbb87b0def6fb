"""The command `querymesh demo`: the example of bullish stocks, on an embedded Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from querymesh.cli.interrupt import started_session
from querymesh.cli.options import JsonFile
from querymesh.cli.results import out, write_json


def demo(
    seconds: Annotated[float, typer.Option(min=1, help="how long the stream runs")] = 25,
    report: Annotated[Path, typer.Option(help="where the HTML report goes")] = Path(
        "querymesh-demo.html"
    ),
    json_file: JsonFile = None,
) -> None:
    """Watch a stream of stocks learn its mesh, then compare it with one order and plain Spark."""
    from querymesh.demo.play import play

    figures = play(started_session("querymesh-demo"), seconds, report, out)
    if json_file is not None:
        write_json(json_file, figures)
