"""The options that commands share, and the names that some of them take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

QueryFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a file with SQL")]
Functions = Annotated[
    str | None, typer.Option(help="a module or file.py with the predicates the query calls")
]
Time = Annotated[str | None, typer.Option(help="the column that windows go by")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="write the figures here as JSON")]


Preset = Annotated[str | None, typer.Option(help="the paper's settings: table-1 or table-3")]
Search = Annotated[
    str | None,
    typer.Option(help="iterative-improvement, simulated-annealing or optimal"),
]
Start = Annotated[
    str | None,
    typer.Option(help="route-driven, content-driven, random-pick, extreme-1 or extreme-n"),
]
Tolerance = Annotated[
    float | None, typer.Option(help="leave orders that cost at most this share more to a lottery")
]
Accuracy = Annotated[
    float | None, typer.Option(help="sample again until the sample foretells this well, as 0.95")
]
Seed = Annotated[int, typer.Option(help="of the sample and the search")]


class Policy(StrEnum):
    """Who decides the route."""

    auto = "auto"
    mesh = "mesh"
    single = "single"
    eddy = "eddy"
    cbr = "cbr"
    rate = "rate"
    chart = "chart"


class Engine(StrEnum):
    """What runs it."""

    auto = "auto"
    native = "native"
    fabric = "fabric"
