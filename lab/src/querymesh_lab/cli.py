"""`querymesh bench` and `querymesh reproduce`, which the `querymesh` command finds by entry point.

What they measure is imported when it is asked for, so that `querymesh --help` stays quick.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text

from querymesh.cli.options import JsonFile
from querymesh.cli.results import out, write_json

Rows = list[dict[str, Any]]
Quick = Annotated[bool, typer.Option("--quick", help="smaller data, fewer rounds")]

BENCHMARKS = ("where", "join", "policies", "goals", "guest", "costly", "classify")


class Options(NamedTuple):
    """What was asked for on the command line of `bench`."""

    quick: bool
    cases: list[str] | None
    contestants: list[str] | None
    plots: Path | None
    groups: list[str] | None
    json_file: Path | None
    before: Path | None


def reproduce(
    paper: Annotated[str, typer.Argument(help="qm, cbr, amri, om, rate, or all")],
    quick: Quick = False,
    json_file: JsonFile = None,
    plots: Annotated[Path | None, typer.Option(help="draw the figures here, as SVG")] = None,
    figure: Annotated[list[str] | None, typer.Option(help="only this one; repeatable")] = None,
    read: Annotated[
        list[Path] | None,
        typer.Option(help="run nothing, take the rows that --json wrote; repeatable"),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="print the tables as Markdown")
    ] = False,
) -> None:
    """Run a paper's experiments again: each claim, our value, and whether it holds."""
    from querymesh_lab.papers import papers, rows_text

    if read:
        rows = papers.read_rows(paper, read, figure or ())
    else:
        rows = papers.reproduce(paper, quick, plots, _print_line, figure or ())
    if markdown:
        typer.echo(rows_text.markdown(rows))
    else:
        rows_text.print_rows(rows, out)
    if json_file is not None:
        write_json(json_file, rows)


def bench(
    what: Annotated[
        str, typer.Argument(help="where, join, policies, goals, guest, costly, classify, or all")
    ] = "all",
    json_file: JsonFile = None,
    quick: Quick = False,
    case: Annotated[list[str] | None, typer.Option(help="only this case; repeatable")] = None,
    contestant: Annotated[
        list[str] | None,
        typer.Option(
            help="of join, only this one; repeatable: mesh, single, spark, floor, flink chain"
        ),
    ] = None,
    growth: Annotated[
        bool, typer.Option("--growth", help="of join, how it grows with windows and streams")
    ] = False,
    indices: Annotated[
        bool, typer.Option("--indices", help="of join, each kind of index beside the others")
    ] = False,
    real: Annotated[bool, typer.Option("--real", help="of join, on real data")] = False,
    core: Annotated[
        bool, typer.Option("--core", help="of join, without Spark: time a tuple, step by step")
    ] = False,
    floor: Annotated[
        bool,
        typer.Option("--floor", help="of join, what it costs above Spark's own part of the job"),
    ] = False,
    before: Annotated[
        Path | None,
        typer.Option(help="of --core, the folder of an earlier release to run beside this one"),
    ] = None,
    plots: Annotated[Path | None, typer.Option(help="of --growth, draw it here, as SVG")] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="of guest and costly, all cases of this group; repeatable"),
    ] = None,
) -> None:
    """Measure against plain Spark, Flink, the best single order and the class oracle."""
    if what not in (*BENCHMARKS, "all"):
        raise typer.BadParameter(
            f"there is no benchmark {what!r}: choose {', '.join(BENCHMARKS)} or all"
        )
    forms = {"growth": growth, "indices": indices, "real": real, "core": core, "floor": floor}
    chosen = [name for name, asked in forms.items() if asked]
    if chosen and what != "join":
        raise typer.BadParameter(
            "--growth, --indices, --real, --core and --floor are of bench join"
        )
    if before is not None and not core:
        raise typer.BadParameter("--before is of bench join --core")
    if group and what not in ("guest", "costly", "all"):
        raise typer.BadParameter("--group is of bench guest and bench costly")
    chosen = chosen or [name for name in BENCHMARKS if what in (name, "all")]
    options = Options(quick, case, contestant, plots, group, json_file, before)
    rows = [row for name in chosen for row in RUNS[name](options)]
    if json_file is not None:
        write_json(json_file, rows)


def _where(options: Options) -> Rows:
    from querymesh_lab.bench.filters import where_bench

    rows = where_bench.run_where(options.quick, options.cases, _print_line)
    return _shown(rows, where_bench.print_rows)


def _growth(options: Options) -> Rows:
    from querymesh_lab.bench.joins import growth

    rows = growth.run_growth(options.quick, _print_line, options.plots)
    return _shown(rows, growth.print_rows)


def _indices(options: Options) -> Rows:
    from querymesh_lab.bench.joins import index_kinds

    rows = index_kinds.run_indices(options.quick, options.cases or [], _print_line)
    return _shown(rows, index_kinds.print_rows)


def _real(options: Options) -> Rows:
    from querymesh_lab.bench.filters import where_bench
    from querymesh_lab.bench.joins import real_joins

    rows = real_joins.run_real(options.quick, _print_line)
    where_bench.print_rows(rows, out, "querymesh bench join --real")
    return rows


def _core(options: Options) -> Rows:
    from querymesh_lab.bench.joins import core_bench

    rows = core_bench.run_core_grid(options.quick, options.cases, _print_line, options.before)
    return _shown(rows, core_bench.print_rows)


def _floor(options: Options) -> Rows:
    from querymesh_lab.bench.joins import floor_bench

    rows = floor_bench.run_floor(options.quick, options.cases, _print_line)
    return _shown(rows, floor_bench.print_rows)


def _join(options: Options) -> Rows:
    from querymesh_lab.bench.joins import join_bench

    rows = join_bench.run_join(options.quick, options.cases, _print_line, options.contestants)
    return _shown(rows, join_bench.print_rows)


def _policies(options: Options) -> Rows:
    from querymesh_lab.bench.policies import policies_bench
    from querymesh_lab.papers import policy_cases

    rows = policies_bench.run_policies(
        options.quick, options.cases, _print_line, policy_cases.CASES
    )
    return _shown(rows, policies_bench.print_rows)


def _goals(options: Options) -> Rows:
    from querymesh_lab.bench.policies import goals_bench, goals_table

    rows = goals_bench.run_goals(options.quick, options.cases, _print_line)
    return _shown(rows, goals_table.print_rows)


def _guest(options: Options) -> Rows:
    from querymesh_lab.bench.guest import guest_bench, page

    def save(rows: Rows) -> None:
        if options.json_file is not None:
            write_json(options.json_file, rows)

    rows = guest_bench.run_guest(options.quick, options.cases, options.groups, _print_line, save)
    return _shown(rows, page.print_rows)


def _costly(options: Options) -> Rows:
    from querymesh_lab.bench.costly import costly_bench, page

    def save(rows: Rows) -> None:
        if options.json_file is not None:
            write_json(options.json_file, rows)

    rows = costly_bench.run_costly(options.quick, options.cases, options.groups, _print_line, save)
    return _shown(rows, page.print_rows)


def _classify(options: Options) -> Rows:
    from querymesh_lab.bench.classify import classify_bench

    rows = classify_bench.run_classify(options.quick, options.cases, _print_line)
    return _shown(rows, classify_bench.print_rows)


RUNS: dict[str, Callable[[Options], Rows]] = {
    "where": _where,
    "growth": _growth,
    "indices": _indices,
    "real": _real,
    "core": _core,
    "floor": _floor,
    "join": _join,
    "policies": _policies,
    "goals": _goals,
    "guest": _guest,
    "costly": _costly,
    "classify": _classify,
}
"""Each measures, prints its table and returns its rows."""


def _shown(rows: Rows, show: Callable[[Rows, Console], None]) -> Rows:
    show(rows, out)
    return rows


def _print_line(line: object) -> None:
    out.print(Text(str(line)), soft_wrap=True)
