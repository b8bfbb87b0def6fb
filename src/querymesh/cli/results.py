"""Results on the command line: written to files, and told to whoever watches."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql import DataFrame
from rich.console import Console
from rich.text import Text

import querymesh as qm
from querymesh.cli.interrupt import asked_to_stop, stop_all
from querymesh.report.live.join_progress import BatchLines
from querymesh.report.text.run_text import did_text

out = Console(highlight=False)

LOOK_SECONDS = 0.3
"""How often a stream that runs is looked at."""


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
    done = qm.inspect(result)
    shown = BatchLines(done) if done.cube is not None else None
    with asked_to_stop() as stop:
        while started.isActive and not stop.wait(LOOK_SECONDS):
            if shown is not None:
                _print_lines(shown.new(started.recentProgress))
    if stop.is_set():
        stop_all()
        print_run(result, output)
        raise KeyboardInterrupt
    if (problem := started.exception()) is not None:
        raise problem
    if shown is not None:
        _print_lines(shown.new(started.recentProgress))


def print_run(result: DataFrame, output: Path) -> None:
    """What ran and how, and where the result is."""
    done = qm.inspect(result)
    out.print(Text(did_text(done)), soft_wrap=True)
    if done.engine == "native" and done.tree is None:
        out.print(Text(f"why: {done.view.mesh.why}"), soft_wrap=True)
    out.print(f"result written to {output}", soft_wrap=True)


def write_page(result: DataFrame, html: Path) -> None:
    """What policy "rate" or "chart" knew and chose as a page; of charts, with the drawings."""
    plan_loop = qm.inspect(result).plan_loop
    if plan_loop is None:
        raise qm.QueryMeshError(
            f"no page was written to {html}: nothing was planned by rates or charts"
        )
    plan_loop.explain(html=html)
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
