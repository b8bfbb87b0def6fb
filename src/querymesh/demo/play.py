"""The demo from beginning to end: the stream, the comparison, the table and the page."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from querymesh.demo import market
from querymesh.demo.compare import compare
from querymesh.demo.predicates import FUNCTIONS
from querymesh.demo.stream import stream
from querymesh.mesh.mesh import Mesh
from querymesh.policies.mesh import Mesh as MeshPolicy
from querymesh.query.parse.query import query
from querymesh.report.comparison import Comparison, per_row
from querymesh.report.html.mesh_page import write_mesh_page
from querymesh.report.live.progress import BatchProgress, ProgressLines
from querymesh.report.text.figures import times
from querymesh.report.text.mesh_text import mesh_text
from querymesh.report.text.run_text import metrics_text, switches_text
from querymesh.spark.train import train

SEED = 2012
ROWS = 60_000
ROUNDS = 3


def play(
    spark: SparkSession,
    seconds: float,
    report: Path,
    console: Console,
    rows: int = ROWS,
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    """Show everything on the console, write the page, and return the figures for programs."""
    console.print(Text("Bullish stocks in the news: a query that learns while it runs\n", "bold"))
    console.print(Text(market.SQL, "cyan"), soft_wrap=True)
    console.print(
        "\nNews and StreetResearch are look-up tables as of now; the paper's windows are left out."
        "\nThe stream starts with nothing known: one route, the order as written.\n"
    )
    lines = ProgressLines(console)

    def learned(mesh: Mesh) -> None:
        title = "learned, and switched without a restart"
        console.print(Rule(title, style="green"))
        console.print(Text(mesh_text(mesh)), soft_wrap=True)
        console.print(Rule(style="green"))
        lines.interrupted()

    streamed = stream(spark, seconds, SEED, lines.show, learned)
    live = streamed.run
    version, mesh = live.view.versions[-1]
    if not mesh.is_learned:
        mesh = _trained(console)
    console.print(Text("\nThe stream in figures\n", "bold"))
    console.print(Text(metrics_text(live.counts, live.view.mesh, version)), soft_wrap=True)
    if live.switches:
        console.print(Text(switches_text(live.switches)), soft_wrap=True)
    console.print(
        Text(f"\nComparing on {rows:,} fresh ticks as a batch, {rounds} interleaved rounds", "bold")
    )
    comparison = compare(spark, mesh, rows, rounds, SEED)
    console.print(_table(comparison))
    for contender in comparison.contenders:
        console.print(Text(f"{contender.name}: {contender.how}", "dim"), soft_wrap=True)
    console.print(_verdict(comparison), soft_wrap=True)
    write_mesh_page(
        mesh,
        report,
        metrics=live.counts,
        comparison=comparison,
        progress=streamed.batches,
        title="Bullish stocks in the news",
        version=version,
    )
    console.print(f"report written to {report}", soft_wrap=True)
    return _figures(mesh, comparison, streamed.batches)


def _trained(console: Console) -> Mesh:
    """For a stream too short to learn: a mesh from a sample of the same ticks."""
    console.print("The stream ended before it had learned: training on a sample instead.")
    inputs = {
        "Stock": market.ticks(2000, SEED),
        "News": market.news(SEED),
        "StreetResearch": market.research(SEED),
    }
    mesh = train(query(market.SQL, functions=FUNCTIONS), inputs, policy=MeshPolicy(seed=SEED))
    assert isinstance(mesh, Mesh)
    return mesh


def _table(comparison: Comparison) -> Table:
    table = Table()
    table.add_column("contender")
    for head in ("median s", "× mesh's time", "predicate calls a row", "rows out"):
        table.add_column(head, justify="right")
    for c in comparison.contenders:
        work = per_row(c.evaluations, comparison.rows)
        table.add_row(
            c.name,
            f"{median(c.seconds):.2f}",
            times(comparison.ratio(c)),
            "–" if work is None else f"{work:.2f}",
            f"{c.rows_out:,}",
        )
    control = median(comparison.control_seconds)
    table.add_row("mesh, again (control)", f"{control:.2f}", times(comparison.control), "", "")
    return table


def _verdict(comparison: Comparison) -> Text:
    if not comparison.same_results:
        return Text("The contenders gave DIFFERENT results: this is a defect.", "red")
    return Text("All contenders gave the same rows (count and hash).", "green")


def _figures(mesh: Mesh, comparison: Comparison, batches: list[BatchProgress]) -> dict[str, Any]:
    return {
        "seed": SEED,
        "mesh": {
            "routes": [list(route) for route in mesh.routes],
            "expected_us": mesh.expected_us,
            "single_us": mesh.single_us,
            "bound_us": mesh.bound_us,
            "gain": mesh.gain,
            "why": mesh.why,
        },
        "stream": [batch.as_json() for batch in batches],
        "comparison": comparison.as_json(),
    }
