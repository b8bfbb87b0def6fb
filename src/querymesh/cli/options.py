"""The options that commands share, and the names that some of them take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from querymesh.errors import OptionError
from querymesh.optimize.train.training import Training
from querymesh.policies.policy import CommandLine, Policy
from querymesh.policies.registry import POLICIES, policy_class


class OnError(StrEnum):
    """What becomes of a row on which a function raises."""

    stop = "raise"
    drop = "drop"


class BudgetEnd(StrEnum):
    """What happens to rows that a budget cannot pay for."""

    stop = "stop"
    keep = "keep"
    drop = "drop"


class Engine(StrEnum):
    """The names of the engines: Catalyst (native), our own fabric, or the one that suits."""

    auto = "auto"
    native = "native"
    fabric = "fabric"


def _registered(policy: str) -> str:
    if policy not in POLICIES:
        known = ", ".join(map(repr, POLICIES))
        raise typer.BadParameter(f"{policy!r} is not one of {known}.")
    return policy


QueryFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a file with SQL")]
Inputs = Annotated[list[str], typer.Option("--input", help="Name=path, for each relation")]
Samples = Annotated[list[str], typer.Option("--sample", help="Name=path, for each relation")]
Functions = Annotated[
    str | None, typer.Option(help="a module or file.py with the predicates the query calls")
]
Time = Annotated[str | None, typer.Option(help="the column that windows go by")]
Shards = Annotated[int | None, typer.Option(min=1, help="of a join of streams")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="of the inputs: csv, json, parquet, orc, text, or any that Spark reads; told by their "
        "names unless given",
    ),
]
ReaderOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="of Spark's reader, as header=false, delimiter=; or multiLine=true; may be repeated",
    ),
]
JsonFile = Annotated[Path | None, typer.Option("--json", help="write the figures here as JSON")]

# Of `explain`.
MeshPage = Annotated[Path | None, typer.Option(help="also write a page with plots")]
SaveMesh = Annotated[Path | None, typer.Option(help="save the trained mesh as JSON")]

# Of `advise`.
InputPath = Annotated[str, typer.Argument(metavar="INPUT", help="a file or a directory of files")]
Where = Annotated[
    list[str],
    typer.Option("--where", metavar="CONDITION", help="SQL text; once for each condition"),
]

# Of `run`.
OnErrorName = Annotated[
    OnError,
    typer.Option("--on-error", help="of a row on which a function raises: stop, or drop it"),
]
BudgetAmount = Annotated[
    float | None,
    typer.Option("--budget", help="what all calls of functions with a price may cost"),
]
BudgetThen = Annotated[
    BudgetEnd,
    typer.Option("--budget-then", help="at its end: stop, or keep or drop the other rows"),
]
Output = Annotated[Path, typer.Option(help="where the result goes: .parquet, .csv or .json")]
PolicyName = Annotated[
    str,
    typer.Option(
        metavar=f"<{'|'.join(POLICIES)}>",
        callback=_registered,
        autocompletion=lambda: list(POLICIES),
        help="a mesh, the best single order, or decided tuple by tuple: by overall "
        "selectivity (eddy) or by content (cbr); joins of windowed streams also round by "
        "round: by output rates (rate), or by rate and memory (chart)",
    ),
]
EngineName = Annotated[Engine, typer.Option(help="what runs it")]
Checkpoint = Annotated[Path | None, typer.Option(help="of the stream")]
MeshFile = Annotated[Path | None, typer.Option(help="a saved mesh to run with")]
Stream = Annotated[bool, typer.Option("--stream", help="read streams from directories of files")]
Follow = Annotated[
    bool, typer.Option("--follow", help="go on as files arrive, until Ctrl-C; with --stream")
]
FilesPerBatch = Annotated[
    int | None, typer.Option("--files-per-batch", min=1, help="of each stream")
]
Watermark = Annotated[str, typer.Option(help="how late tuples may come")]
IdleTimeout = Annotated[str, typer.Option(help="a stream silent for longer holds up no other")]
Index = Annotated[
    str, typer.Option(help="how join states are searched: hash, bitmap, amri or auto")
]
Goal = Annotated[
    str | None, typer.Option(help="of policy rate: 'most by 60s', 'first 1000' or 'last'")
]
Weights = Annotated[
    str | None, typer.Option(help="of policy chart: of the output rate and of memory, as 0.4,0.6")
]
StreamSamples = Annotated[
    list[str] | None,
    typer.Option("--sample", help="of a join of streams: Name=path, for each, to learn from"),
]
PlanPage = Annotated[
    Path | None,
    typer.Option(help="of policies rate and chart: also write what was planned as a page"),
]
Adapt = Annotated[bool, typer.Option(help="let a stream change its mesh as it runs")]

# Of training.
Preset = Annotated[str | None, typer.Option(help="the paper's settings: table-1 or table-3")]
Search = Annotated[
    str | None, typer.Option(help="iterative-improvement, simulated-annealing or optimal")
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


def policy_from(name: str, said: CommandLine) -> Policy:
    """The policy of a name as it makes itself of what was said; options of others are refused."""
    chosen = policy_class(name)
    for option in said.own:
        if option not in chosen.own_options:
            owner = next(each for each in POLICIES if option in policy_class(each).own_options)
            raise OptionError(
                f"--{option} is of policy {owner}, and the policy is {name}: give "
                f"--policy {owner}, or leave --{option} out"
            )
    return chosen.from_command_line(said)
