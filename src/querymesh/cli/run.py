"""The command `querymesh run`: run a query over files, as a batch or as streams."""

from __future__ import annotations

from pathlib import Path

import typer

import querymesh as qm
from querymesh.cli import options
from querymesh.cli.files import (
    as_stream,
    read_files,
    read_query,
    reader_from,
    split_inputs,
    stream_names,
    write_format,
)
from querymesh.cli.interrupt import started_session
from querymesh.cli.options import BudgetEnd, Engine, OnError, policy_from, training_from
from querymesh.cli.results import print_run, write_page, write_result
from querymesh.policies.policy import CommandLine
from querymesh.policies.registry import names_where, policy_class


def run(
    query: options.QueryFile,
    inputs: options.Inputs,
    output: options.Output,
    policy: options.PolicyName = "mesh",
    engine: options.EngineName = Engine.auto,
    checkpoint: options.Checkpoint = None,
    mesh: options.MeshFile = None,
    functions: options.Functions = None,
    time: options.Time = None,
    stream: options.Stream = False,
    follow: options.Follow = False,
    files: options.FilesPerBatch = None,
    shards: options.Shards = None,
    watermark: options.Watermark = "10 seconds",
    idle_timeout: options.IdleTimeout = "10 minutes",
    index: options.Index = "hash",
    goal: options.Goal = None,
    weights: options.Weights = None,
    samples: options.StreamSamples = None,
    html: options.PlanPage = None,
    adapt: options.Adapt = True,
    preset: options.Preset = None,
    search: options.Search = None,
    start: options.Start = None,
    tolerance: options.Tolerance = None,
    accuracy: options.Accuracy = None,
    seed: options.Seed = 0,
    on_error: options.OnErrorName = OnError.stop,
    budget: options.BudgetAmount = None,
    budget_then: options.BudgetThen = BudgetEnd.stop,
    format: options.Format = None,
    option: options.ReaderOptions = None,
) -> None:
    """Run a query over files and write what it finds."""
    if follow and not stream:
        raise typer.BadParameter("--follow is for streams: give --stream as well")
    if stream and checkpoint is None:
        raise typer.BadParameter("--stream needs --checkpoint DIR, so that it can go on later")
    if html is not None and not policy_class(policy).has_plans:
        planning = names_where(lambda each: each.has_plans)
        raise typer.BadParameter(
            f"--html is a page of what policy {' or '.join(planning)} has planned: give "
            f"{' or '.join(f'--policy {name}' for name in planning)}; a mesh is drawn by "
            "querymesh explain --html"
        )
    if output.exists() and not stream:
        raise qm.QueryMeshError(f"{output} exists already: remove it or choose another --output")
    paths, reader = split_inputs(inputs), reader_from(format, option)
    style = write_format(output)
    asked = read_query(query, functions, time)
    plan = asked if mesh is None else _saved_mesh(mesh, asked)
    training = training_from(preset, search, start, tolerance, accuracy, seed)
    own = {"goal": goal, "weights": weights}
    said = {name: text for name, text in own.items() if text is not None}
    chosen = policy_from(policy, CommandLine(training, adapt, said))
    spark = started_session("querymesh-run")
    data = read_files(spark, paths, reader)
    if stream:
        streaming = stream_names(asked, data)
        for name in [name for name in data if name.lower() in streaming]:
            data[name] = as_stream(data[name], paths[name], reader, files)
    result = qm.run(
        plan,
        data,
        sample=read_files(spark, split_inputs(samples), reader) if samples else None,
        policy=chosen,
        engine=engine.value,
        index=index,
        shards=shards,
        checkpoint=None if checkpoint is None else str(checkpoint),
        watermark=watermark,
        idle_timeout=idle_timeout,
        on_error=on_error.value,
        budget=None if budget is None else qm.Budget(budget, then=budget_then.value),
    )
    write_result(result, output, style, checkpoint, follow)
    print_run(result, output)
    if html is not None:
        write_page(result, html)


def _saved_mesh(path: Path, asked: qm.Query) -> qm.Mesh | qm.JoinMesh:
    """The mesh of a file, which must have been trained for the query that is asked."""
    mesh = qm.load(path, functions=asked.functions)
    if mesh.query.sql.split() != asked.sql.split():
        raise qm.MeshFileError(f"{path} was trained for another query: {mesh.query.sql}")
    return mesh
