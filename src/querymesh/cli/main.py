"""The command line: demo, run, explain, reproduce, bench, doctor.

The library prints nothing; this module and `cli_results` do. Errors of the package are one red
message and exit code 1, wrong usage is exit code 2, and only a defect shows a traceback.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

import querymesh as qm
from querymesh.cli.files import (
    as_stream,
    load_functions,
    read_file,
    split_inputs,
    spread_over,
    stream_names,
    write_format,
)
from querymesh.cli.options import (
    Accuracy,
    Engine,
    Functions,
    JsonFile,
    Policy,
    Preset,
    QueryFile,
    Search,
    Seed,
    Start,
    Time,
    Tolerance,
)
from querymesh.cli.results import out, print_run, write_json, write_page, write_result
from querymesh.optimize.chart.charting import weights_from
from querymesh.optimize.rate.goals import goal_from

err = Console(stderr=True, highlight=False)


class _Commands(TyperGroup):
    """Turns the package's errors into a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except qm.QueryMeshError as problem:
            err.print(Text(str(problem), style="red"), soft_wrap=True)
        except PySparkException as problem:
            err.print(Text(_task_error(problem), style="red"), soft_wrap=True)
        raise typer.Exit(1)


def _task_error(problem: PySparkException) -> str:
    """What went wrong in a task, without Spark's traceback around it."""
    text = str(problem)
    ours = text.rfind("querymesh.errors.")
    if ours < 0:
        return f"Spark: {text.strip().splitlines()[0]}"
    kind, _, message = text[ours + len("querymesh.errors.") :].partition(": ")
    java = message.find("\n\n\tat ")
    return message[:java].strip() if java > 0 else message.strip() or kind


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Different plans for different data, on Apache Spark.",
)


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(min=1, help="how long the stream runs")] = 25,
    report: Annotated[Path, typer.Option(help="where the HTML report goes")] = Path(
        "querymesh-demo.html"
    ),
    json_file: JsonFile = None,
) -> None:
    """Watch a stream of stocks learn its mesh, then compare it with one order and plain Spark."""
    from querymesh.demo.play import play

    figures = play(qm.local_session(app_name="querymesh-demo"), seconds, report, out)
    if json_file is not None:
        write_json(json_file, figures)


@app.command()
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
    shards: Annotated[int | None, typer.Option(min=1, help="of a join of streams")] = None,
    delay: Annotated[str, typer.Option(help="how late tuples may come")] = "10 seconds",
    idle: Annotated[
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
    asked = _query(query, functions, time)
    plan = asked if mesh is None else qm.load(mesh, functions=asked.functions)
    training = _training(preset, search, start, tolerance, accuracy, seed)
    if isinstance(plan, qm.Mesh | qm.JoinMesh) and plan.query.sql.split() != asked.sql.split():
        raise qm.MeshFileError(f"{mesh} was trained for another query: {plan.query.sql}")
    spark = qm.local_session(app_name="querymesh-run")
    data = _read(spark, paths)
    if stream:
        streaming = stream_names(asked, data)
        data = {
            name: as_stream(df, paths[name], files) if name.lower() in streaming else df
            for name, df in data.items()
        }
    result = qm.run(
        plan,
        data,
        sample=_read(spark, split_inputs(samples)) if samples else None,
        policy=policy.value,
        engine=engine.value,
        index=index,
        shards=shards,
        checkpoint=None if checkpoint is None else str(checkpoint),
        delay=delay,
        idle=idle,
        training=training,
        adapt=adapt,
        goal=None if goal is None else goal_from(goal),
        weights=None if weights is None else weights_from(weights),
    )
    write_result(result, output, style, checkpoint, follow)
    print_run(result, output)
    if html is not None:
        write_page(result, html)


@app.command()
def explain(
    query: QueryFile,
    samples: Annotated[list[str], typer.Option("--sample", help="Name=path, for each relation")],
    html: Annotated[Path | None, typer.Option(help="also write a page with plots")] = None,
    functions: Functions = None,
    time: Time = None,
    shards: Annotated[int | None, typer.Option(min=1, help="of a join of streams")] = None,
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
    asked = _query(query, functions, time)
    training = _training(preset, search, start, tolerance, accuracy, seed)
    spark = qm.local_session(app_name="querymesh-explain")
    data = _read(spark, paths)
    mesh = qm.train(asked, data, seed=seed, training=training)
    if isinstance(mesh, qm.JoinMesh) and shards is not None:
        mesh = spread_over(mesh, data, shards)
    out.print(Text(mesh.explain(html=html)), soft_wrap=True)
    for path, what in ((html, "page"), (save, "mesh")):
        if path is not None:
            if what == "mesh":
                mesh.save(path)
            out.print(f"{what} written to {path}", soft_wrap=True)


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help="qm, cbr, amri, om, rate, or all")],
    quick: Annotated[bool, typer.Option("--quick", help="smaller data, fewer rounds")] = False,
    json_file: JsonFile = None,
    plots: Annotated[Path | None, typer.Option(help="draw the figures here, as SVG")] = None,
    figure: Annotated[list[str] | None, typer.Option(help="only this one; repeatable")] = None,
) -> None:
    """Run a paper's experiments again: each claim, our value, and whether it holds."""
    from querymesh_lab.papers import papers

    rows = papers.reproduce(
        paper, quick, plots, lambda line: out.print(Text(str(line)), soft_wrap=True), figure or ()
    )
    papers.print_rows(rows, out)
    if json_file is not None:
        write_json(json_file, rows)


@app.command()
def bench(
    what: Annotated[str, typer.Argument(help="where, join, policies, goals, or all")] = "all",
    json_file: JsonFile = None,
    quick: Annotated[bool, typer.Option("--quick", help="smaller data, fewer rounds")] = False,
    case: Annotated[list[str] | None, typer.Option(help="only this case; repeatable")] = None,
    contestant: Annotated[
        list[str] | None,
        typer.Option(help="of join, only this one; repeatable: mesh, single, spark, flink chain"),
    ] = None,
    growth: Annotated[
        bool, typer.Option("--growth", help="of join, how it grows with windows and streams")
    ] = False,
    indices: Annotated[
        bool, typer.Option("--indices", help="of join, each kind of index beside the others")
    ] = False,
    real: Annotated[bool, typer.Option("--real", help="of join, on real data")] = False,
    plots: Annotated[Path | None, typer.Option(help="of --growth, draw it here, as SVG")] = None,
) -> None:
    """Measure against plain Spark, Flink, the best single order and the class oracle."""
    from querymesh_lab.bench.filters import where_bench as where
    from querymesh_lab.bench.joins import join_bench, join_growth, join_indices, join_real
    from querymesh_lab.bench.policies import goals_bench as goals
    from querymesh_lab.bench.policies import policies_bench as policies
    from querymesh_lab.papers import policy_cases

    if what not in ("where", "join", "policies", "goals", "all"):
        raise typer.BadParameter(
            f"there is no benchmark {what!r}: choose where, join, policies, goals or all"
        )
    if (growth or real or indices) and what != "join":
        raise typer.BadParameter("--growth, --indices and --real are of bench join")
    findings: list[dict[str, Any]] = []

    def log(line: object) -> None:
        out.print(Text(str(line)), soft_wrap=True)

    if what in ("where", "all"):
        rows = where.run_where(quick, case, log)
        where.print_rows(rows, out)
        findings += rows
    if growth:
        rows = join_growth.run_growth(quick, log, plots)
        join_growth.print_rows(rows, out)
        findings += rows
    if indices:
        rows = join_indices.run_indices(quick, case or [], log)
        join_indices.print_rows(rows, out)
        findings += rows
    if real:
        rows = join_real.run_real(quick, log)
        where.print_rows(rows, out, "querymesh bench join --real")
        findings += rows
    if what in ("join", "all") and not (growth or real or indices):
        rows = join_bench.run_join(quick, case, log, contestant)
        join_bench.print_rows(rows, out)
        findings += rows
    if what in ("policies", "all"):
        rows = policies.run_policies(quick, case, log, policy_cases.CASES)
        policies.print_rows(rows, out)
        findings += rows
    if what in ("goals", "all"):
        rows = goals.run_goals(quick, case, log)
        goals.print_rows(rows, out)
        findings += rows
    if json_file is not None:
        write_json(json_file, findings)


@app.command()
def doctor() -> None:
    """Check what a run needs: Python, Java, the packages, and a small real Spark job."""
    from querymesh.report.doctor import checks

    problems = 0
    for check in checks():
        mark, style = ("ok", "green") if check.ok else ("problem", "red")
        out.print(Text.assemble((f"{mark:<8}", style), f"{check.name:<12} {check.found}"))
        if not check.ok:
            problems += 1
            out.print(Text(f"{'':8}remedy: {check.remedy}"))
    if problems:
        raise typer.Exit(1)


def _training(
    preset: str | None,
    search: str | None,
    start: str | None,
    tolerance: float | None,
    accuracy: float | None,
    seed: int,
) -> qm.Training:
    """The training asked for on the command line; what was not said is the default."""
    given = {"search": search, "start": start, "tolerance": tolerance, "accuracy": accuracy}
    said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if preset is None:
        return qm.Training(seed=seed, **said)
    return qm.Training.preset(preset, seed=seed, **said)


def _query(path: Path, functions: str | None, time: str | None) -> qm.Query:
    text = path.read_text(encoding="utf-8").strip().rstrip(";")
    return qm.query(text, time=time, functions=load_functions(functions))


def _read(spark: SparkSession, paths: dict[str, str]) -> dict[str, DataFrame]:
    return {name: read_file(spark, path) for name, path in paths.items()}


def main() -> None:
    """The `querymesh` command."""
    # PySpark logs an analysis error as a page of JSON before it raises it; we print its message.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    app(prog_name="querymesh")


if __name__ == "__main__":
    main()
