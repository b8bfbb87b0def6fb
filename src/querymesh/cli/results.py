"""Results on the command line: written to files, and told to whoever watches."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console
from rich.text import Text

import querymesh as qm
from querymesh.optimize.chart.chart_planner import ChartPlanner
from querymesh.report.charts.chart_plot import write_words
from querymesh.report.live.join_progress import BatchLines, join_run_text
from querymesh.report.text.run_text import metrics_text, switches_text
from querymesh.runtime.loops.plan_loop import PlanLoop

out = Console(highlight=False)


def write_result(
    result: DataFrame, output: Path, style: str, checkpoint: Path | None, follow: bool
) -> None:
    """Save a batch result, or run a stream to its end and print a line a batch."""
    if not result.isStreaming:
        result.write.format(style).option("header", "true").save(str(output))
        return
    writer = result.writeStream.format(style).option("header", "true").outputMode("append")
    writer = writer.option("checkpointLocation", str(checkpoint))
    writer = (
        writer.trigger(processingTime="0 seconds") if follow else writer.trigger(availableNow=True)
    )
    started = writer.start(str(output))
    done = qm.metrics(result)
    shown = BatchLines(done) if isinstance(done, qm.JoinRun) else None
    try:
        while started.isActive:
            started.awaitTermination(1)
            if shown is not None:
                _print_lines(shown.new(started.recentProgress))
    except KeyboardInterrupt:
        out.print("stopping; the batch that runs is done again when it starts anew")
        started.stop()
    if (problem := started.exception()) is not None:
        raise problem
    if shown is not None:
        _print_lines(shown.new(started.recentProgress))


def print_run(result: DataFrame, output: Path) -> None:
    """What ran and how, and where the result is."""
    done = qm.metrics(result)
    if isinstance(done, qm.JoinRun):
        out.print(Text(join_run_text(done)), soft_wrap=True)
        for alias, switch in done.switches:
            out.print(Text(f"{alias}: {switches_text([switch])}"), soft_wrap=True)
        if done.planner is not None:
            out.print(Text(f"\n{done.planner.explain()}\n"), soft_wrap=True)
    elif isinstance(done, qm.TreeRun):
        out.print(Text(done.explain()), soft_wrap=True)
    elif done.engine == "fabric":
        text = metrics_text(done.metrics, done.mesh, done.versions[-1][0], done.router)
        out.print(Text(text), soft_wrap=True)
        if done.switches:
            out.print(Text(switches_text(done.switches)), soft_wrap=True)
    else:
        out.print(Text(f"ran in Catalyst on {len(done.mesh.routes)} route(s): {done.mesh.why}"))
    out.print(f"result written to {output}", soft_wrap=True)


def write_page(result: DataFrame, html: Path) -> None:
    """What policy "rate" or "chart" knew and chose as a page; of charts, with the drawings."""
    done = qm.metrics(result)
    if not isinstance(done, qm.JoinRun | qm.TreeRun) or done.planner is None:
        raise qm.QueryMeshError(
            f"no page was written to {html}: nothing was planned by rates or charts"
        )
    if isinstance(done.planner, PlanLoop | ChartPlanner) and done.policy == "chart":
        done.planner.explain(html=html)
    else:
        title = f"Output rates of the join of {', '.join(done.join.aliases)}"
        write_words(title, done.join.query.sql, done.planner.explain(), html)
    out.print(f"page written to {html}", soft_wrap=True)


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        out.print(Text(line), soft_wrap=True)


def write_json(path: Path, figures: object) -> None:
    """Write figures as JSON, for programs."""
    try:
        path.write_text(json.dumps(figures, indent=2, default=str) + "\n", encoding="utf-8")
    except OSError as problem:
        raise qm.QueryMeshError(f"cannot write {path}: {problem.strerror}") from problem
