"""`querymesh run`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import DataFrame

import querymesh as qm
from querymesh.cli.files import (
    as_stream,
    read_files,
    read_query,
    split_inputs,
    stream_names,
    write_format,
)
from querymesh.cli.options import (
    Accuracy,
    Engine,
    Functions,
    Policy,
    Preset,
    QueryFile,
    Search,
    Seed,
    Shards,
    Start,
    Time,
    Tolerance,
    policy_from,
    training_from,
)
from querymesh.cli.results import print_run, write_page, write_result


def run(
    query: QueryFile,
    inputs: Annotated[list[str], typer.Option("--input", help="Name=path, for each relation")],
    output: Annotated[Path, typer.Option(help="where the result goes: .parquet, .csv or .json")],
    policy: Annotated[
        Policy,
        typer.Option(
            help="a mesh, the best single order, or decided tuple by tuple: by overall "
            "selectivity (eddy) or by content (cbr); joins of windowed streams also round by "
            "round: by output rates (rate), or by rate and memory (chart)"
        ),
    ] = Policy.mesh,
    engine: Annotated[Engine, typer.Option(help="what runs it")] = Engine.auto,
    checkpoint: Annotated[Path | None, typer.Option(help="of the stream")] = None,
    mesh: Annotated[Path | None, typer.Option(help="a saved mesh to run with")] = None,
    functions: Functions = None,
    time: Time = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="read streams from directories of files")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="go on as files arrive, until Ctrl-C; with --stream")
    ] = False,
    files: Annotated[
        int | None, typer.Option("--files-per-batch", min=1, help="of each stream")
    ] = None,
    shards: Shards = None,
    watermark: Annotated[str, typer.Option(help="how late tuples may come")] = "10 seconds",
    idle_timeout: Annotated[
        str, typer.Option(help="a stream silent for longer holds up no other")
    ] = "10 minutes",
    index: Annotated[
        str, typer.Option(help="how join states are searched: hash, bitmap, amri or auto")
    ] = "hash",
    goal: Annotated[
        str | None,
        typer.Option(help="of policy rate: 'most by 60s', 'first 1000' or 'last'"),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="of policy chart: of the output rate and of memory, as 0.4,0.6"),
    ] = None,
    samples: Annotated[
        list[str] | None,
        typer.Option("--sample", help="of a join of streams: Name=path, for each, to learn from"),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="of policies rate and chart: also write what was planned as a page"),
    ] = None,
    adapt: Annotated[bool, typer.Option(help="let a stream change its mesh as it runs")] = True,
    preset: Preset = None,
    search: Search = None,
    start: Start = None,
    tolerance: Tolerance = None,
    accuracy: Accuracy = None,
    seed: Seed = 0,
) -> None:
    """Run a query over files and write what it finds."""
    if follow and not stream:
        raise typer.BadParameter("--follow is for streams: give --stream as well")
    if stream and checkpoint is None:
        raise typer.BadParameter("--stream needs --checkpoint DIR, so that it can go on later")
    if html is not None and policy not in (Policy.rate, Policy.chart):
        raise typer.BadParameter(
            "--html is a page of what policy rate or chart has planned: give --policy rate or "
            "--policy chart; a mesh is drawn by querymesh explain --html"
        )
    if output.exists() and not stream:
        raise qm.QueryMeshError(f"{output} exists already: remove it or choose another --output")
    paths = split_inputs(inputs)
    style = write_format(output)
    asked = read_query(query, functions, time)
    plan = asked if mesh is None else _saved_mesh(mesh, asked)
    training = training_from(preset, search, start, tolerance, accuracy, seed)
    chosen = policy_from(policy, training, adapt, goal, weights)
    spark = qm.local_session(app_name="querymesh-run")
    data = read_files(spark, paths)
    if stream:
        data = _streams(asked, data, paths, files)
    result = qm.run(
        plan,
        data,
        sample=read_files(spark, split_inputs(samples)) if samples else None,
        policy=chosen,
        engine=engine.value,
        index=index,
        shards=shards,
        checkpoint=None if checkpoint is None else str(checkpoint),
        watermark=watermark,
        idle_timeout=idle_timeout,
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


def _streams(
    asked: qm.Query, data: dict[str, DataFrame], paths: dict[str, str], files: int | None
) -> dict[str, DataFrame]:
    """The inputs, with those that the query reads as streams read as streams of files."""
    streaming = stream_names(asked, data)
    return {
        name: as_stream(df, paths[name], files) if name.lower() in streaming else df
        for name, df in data.items()
    }
