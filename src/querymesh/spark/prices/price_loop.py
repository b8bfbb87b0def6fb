"""What runs say of Catalyst's prices: a task cannot take less time than its conditions do.

Rows come to Python through conditions that Catalyst evaluates first. A task's time from its first
row to its last has these in it, with the scan, the way to Python and the functions. So a task that
took less than the conditions alone should by their prices shows that prices are too high. That they
are too low it cannot show; conditions that are timed can (`machine_prices.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pyspark.sql import SparkSession

from querymesh.arrays import Floats
from querymesh.cost.catalyst_cost import CostTable
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.placement.costs import left_by
from querymesh.optimize.train.describe import reach
from querymesh.runtime.loop import Loop
from querymesh.runtime.preparation import PricedStage
from querymesh.runtime.task_report import TaskReport
from querymesh.spark.prices.machine_prices import measured_against
from querymesh.stats.profile import Profile

LEAST_ROWS = 2_000
"""Fewer rows say more of the start of a task than of its conditions."""


class PriceLoop(Loop):
    """Corrects the machine's prices by what tasks took."""

    def __init__(self, session: SparkSession, alias: str, stage: PricedStage) -> None:
        self._session = session
        self._alias = alias
        self._stage = stage

    def receive(self, report: TaskReport) -> None:
        """Compare a task's time with the price of what Catalyst did for it."""
        rows = report.views[self._alias].metrics.rows_in
        if rows < LEAST_ROWS or not report.seconds:
            return
        ratio = 1e6 * report.seconds / rows / self._stage.us
        if ratio < 1:
            measured_against(self._session, self._stage.table, ratio)

    def wait(self, seconds: float) -> bool:
        """Every report is taken in at once."""
        return True

    @property
    def problems(self) -> Sequence[str]:
        """Nothing can go wrong here."""
        return ()

    def explain(self) -> str:
        """What the conditions before Python are priced at."""
        return f"conditions before Python are priced at {self._stage.us:.3g} µs a row that passes"


def priced_stage(
    mesh: Mesh, profile: Profile, catalyst_us: Floats, table: CostTable
) -> PricedStage | None:
    """What Catalyst does before the Python stage for each row that comes through, by the table's
    prices; None where it does nothing there, or there is no Python stage."""
    stages = mesh.stages
    if stages is None or not stages.in_python(mesh) or not any(stages.before(mesh)):
        return None
    priced = np.where(np.isfinite(catalyst_us), catalyst_us, 0.0)
    spent_us = through = 0.0
    for rows, parts in zip(reach(profile, mesh.tree), stages.parts(mesh), strict=True):
        some = replace(profile.take(rows), drop_us=priced, pass_us=priced)
        spent_us += float(some.realized_us(parts.before).sum())
        through += float(left_by(some, parts.before).sum())
    return PricedStage(spent_us / through, table) if through and spent_us else None
