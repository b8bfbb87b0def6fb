"""Progress of a streaming query, in the names of Spark's own StreamingQueryProgress.

Spark tells the rows of a batch and how fast they came and went; the run's metrics tell how many
evaluations they took and on which version of the mesh. Put together they show a stream learning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.text import Text


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """One micro-batch: Spark's figures, and the mesh's beside them."""

    batch_id: int
    num_input_rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    evaluations_per_row: float | None
    version: int
    routes: int

    def as_json(self) -> dict[str, Any]:
        """The figures for programs, under Spark's names where Spark has one."""
        words = {name: name.split("_") for name in asdict(self)}
        camel = {name: w[0] + "".join(map(str.title, w[1:])) for name, w in words.items()}
        return {camel[name]: value for name, value in asdict(self).items()}


def batch_progress(
    spark: Mapping[str, Any], evaluations_per_row: float | None, version: int, routes: int
) -> BatchProgress:
    """One of Spark's progress reports (`query.recentProgress`), with the mesh's part added."""
    return BatchProgress(
        batch_id=int(spark["batchId"]),
        num_input_rows=int(spark["numInputRows"]),
        input_rows_per_second=_rate(spark, "inputRowsPerSecond"),
        processed_rows_per_second=_rate(spark, "processedRowsPerSecond"),
        evaluations_per_row=evaluations_per_row,
        version=version,
        routes=routes,
    )


def _rate(spark: Mapping[str, Any], name: str) -> float:
    """Spark leaves a rate out where it would divide by zero, as in a stream's first batch."""
    return float(spark.get(name) or 0.0)


class ProgressLines:
    """Prints one line a batch, so that a terminal and a log file show the same."""

    HEAD = (
        f"{'batchId':>7}  {'inputRowsPerSecond':>18}  {'processedRowsPerSecond':>22}  "
        f"{'evaluations a row':>17}  routes"
    )

    def __init__(self, console: Console) -> None:
        self._console = console
        self._head_due = True

    def show(self, batch: BatchProgress) -> None:
        """Print one batch, under the head if it was not printed yet."""
        if self._head_due:
            self._console.print(Text(self.HEAD, style="bold"), soft_wrap=True)
            self._head_due = False
        work = batch.evaluations_per_row
        line = (
            f"{batch.batch_id:>7}  "
            f"{batch.input_rows_per_second:>18,.0f}  {batch.processed_rows_per_second:>22,.0f}  "
            f"{'–' if work is None else format(work, '.2f'):>17}  {batch.routes}"
        )
        style = "green" if batch.routes > 1 else ""
        self._console.print(Text(line, style=style), soft_wrap=True)

    def interrupted(self) -> None:
        """Something else was printed: the next batch gets a head again."""
        self._head_due = True
