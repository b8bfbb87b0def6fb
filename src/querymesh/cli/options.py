"""The options that commands share, and the names that some of them take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import querymesh as qm
from querymesh.errors import OptionError
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


def policy_from(
    policy: Policy, training: Training, adapt: bool, goal: str | None, weights: str | None
) -> qm.policies.Policy:
    """The policy asked for, with the options that are its own."""
    for name, given, owner in (("goal", goal, Policy.rate), ("weights", weights, Policy.chart)):
        if given is not None and policy is not owner:
            raise OptionError(
                f"--{name} is of policy {owner.value}, and the policy is {policy.value}: give "
                f"--policy {owner.value}, or leave --{name} out"
            )
    planned: dict[str, Any] = {"sample_rows": training.sample_rows, "seed": training.seed}
    if not adapt:
        planned["budget"] = 0.0
    match policy:
        case Policy.mesh:
            return qm.policies.Mesh(training=training, adapt=adapt)
        case Policy.single:
            return qm.policies.Single(training=training, adapt=adapt)
        case Policy.eddy:
            return qm.policies.Eddy(seed=training.seed)
        case Policy.cbr:
            return qm.policies.Cbr(seed=training.seed)
        case Policy.rate:
            from querymesh.optimize.rate.goals import goal_from

            return qm.policies.Rate(goal=None if goal is None else goal_from(goal), **planned)
        case Policy.chart:
            from querymesh.optimize.chart.charting import weights_from

            chosen = None if weights is None else weights_from(weights)
            return qm.policies.Chart(weights=chosen, **planned)
