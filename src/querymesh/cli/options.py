"""The options that commands share, and the names that some of them take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from querymesh.optimize.train.training import Training

QueryFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a file with SQL")]
Functions = Annotated[
    str | None, typer.Option(help="a module or file.py with the predicates the query calls")
]
Time = Annotated[str | None, typer.Option(help="the column that windows go by")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="write the figures here as JSON")]
Shards = Annotated[int | None, typer.Option(min=1, help="of a join of streams")]

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
    """The names of the policies: who decides the route."""

    auto = "auto"
    mesh = "mesh"
    single = "single"
    eddy = "eddy"
    cbr = "cbr"
    rate = "rate"
    chart = "chart"


class Engine(StrEnum):
    """The names of the engines: Catalyst (native), our own fabric, or the one that suits."""

    auto = "auto"
    native = "native"
    fabric = "fabric"


def training_from(
    preset: str | None,
    search: str | None,
    start: str | None,
    tolerance: float | None,
    accuracy: float | None,
    seed: int,
) -> Training:
    """The training asked for on the command line; what was not said is the default."""
    given = {"search": search, "start": start, "tolerance": tolerance, "accuracy": accuracy}
    said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if preset is None:
        return Training(seed=seed, **said)
    return Training.preset(preset, seed=seed, **said)
