"""`querymesh explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

import querymesh as qm
from querymesh.cli.files import read_files, read_query, split_inputs, spread_over
from querymesh.cli.options import (
    Accuracy,
    Functions,
    Preset,
    QueryFile,
    Search,
    Seed,
    Shards,
    Start,
    Time,
    Tolerance,
    training_from,
)
from querymesh.cli.results import out


def explain(
    query: QueryFile,
    samples: Annotated[list[str], typer.Option("--sample", help="Name=path, for each relation")],
    html: Annotated[Path | None, typer.Option(help="also write a page with plots")] = None,
    functions: Functions = None,
    time: Time = None,
    shards: Shards = None,
    save: Annotated[Path | None, typer.Option(help="save the trained mesh as JSON")] = None,
    preset: Preset = None,
    search: Search = None,
    start: Start = None,
    tolerance: Tolerance = None,
    accuracy: Accuracy = None,
    seed: Seed = 0,
) -> None:
    """Train a mesh on samples and show it: the tree, the routes, and what they save."""
    paths = split_inputs(samples)
    asked = read_query(query, functions, time)
    training = training_from(preset, search, start, tolerance, accuracy, seed)
    spark = qm.local_session(app_name="querymesh-explain")
    data = read_files(spark, paths)
    mesh = qm.train(asked, data, policy=qm.policies.Mesh(training=training))
    if isinstance(mesh, qm.JoinMesh) and shards is not None:
        mesh = spread_over(mesh, data, shards)
    out.print(Text(mesh.explain(html=html)), soft_wrap=True)
    if html is not None:
        out.print(f"page written to {html}", soft_wrap=True)
    if save is not None:
        mesh.save(save)
        out.print(f"mesh written to {save}", soft_wrap=True)
