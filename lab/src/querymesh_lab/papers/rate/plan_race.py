"""Plans of one query, predicted and run, in the paper's seconds and the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from querymesh.cost.plan_tree import PlanTree, join_shape
from querymesh.errors import QueryError
from querymesh.optimize.rate.curves import Curve, crossings, predicted
from querymesh.optimize.rate.stream_query import RateQuery
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.parse.query import query as parsed
from querymesh.spark.joins.join_tree import join_tree
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import RivalsDisagreeError
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.rate.paper_plans import Scale
from querymesh_lab.papers.rate.poisson_rows import TIME, DrawnPlan
from querymesh_lab.papers.rate.threaded_run import StopRule, run_plan

AGAIN = "A/A control"


@dataclass
class PlanRace:
    """What was predicted of each plan and what was measured, both as the paper would have it."""

    scale: Scale
    expected: dict[str, Curve] = field(default_factory=dict)
    measured: dict[str, Curve] = field(default_factory=dict)
    control: str = ""

    def times(self, slow: str, fast: str, results: float) -> tuple[float | None, float | None]:
        """How many times as long the first takes for so many results: predicted, measured.

        Where a run was cut off before, the time of the cut stands for it: it is a lower bound.
        """
        at = [_reached_s(self.expected[name], results) for name in (slow, fast)]
        guessed = at[0] / at[1] if at[0] is not None and at[1] else None
        quick_s = _reached_s(self.measured[fast], results)
        if not quick_s:
            return guessed, None
        slow_s = _reached_s(self.measured[slow], results)
        return guessed, (slow_s or float(self.measured[slow].times_s[-1])) / quick_s

    def a_a(self, results: float) -> float | None:
        """One plan's time for so many results by its time in the other run."""
        seconds = [_reached_s(self.measured[name], results) for name in (self.control, AGAIN)]
        return seconds[1] / seconds[0] if seconds[0] and seconds[1] else None

    def pair(
        self, figures: tuple[str, str], slow: str, fast: str, results: float,
        paper: float | None = None, what: str = "", fitted: str = "",
    ) -> list[Result]:  # fmt: skip
        """Two rows, predicted and measured: how much sooner the second plan has so many results.

        `fitted` says what of the measured runs was chosen with their results in view.
        """
        guessed, seen = self.times(slow, fast, results)
        what = what or f"for {results:,.0f} results"
        called = f"time of {slow} over {fast} {what}"
        note = f"measured runs: {self.scale}"
        if seen is None:
            note += "; not reached in the time of the run"
        elif _reached_s(self.measured[slow], results) is None:
            note += f"; {slow} was stopped before, so this is a lower bound"
        return [
            Result(Claim("rate", figures[0], f"predicted {called}", paper), guessed),
            Result(
                Claim("rate", figures[1], f"measured {called}", paper), seen,
                self.a_a(results), note, self.details(), fitted=fitted,
            ),
        ]  # fmt: skip

    def overtaken(self, leader: str, other: str, measured: bool) -> float | None:
        """How many results there are when the other plan takes the lead and keeps it."""
        curves = self.measured if measured else self.expected
        until_s = min(float(self.measured[name].times_s[-1]) for name in (leader, other))
        found = takes_the_lead(curves[leader], curves[other], until_s)
        return None if found is None else found[1]

    def worst_a_a(self, counts: Sequence[float]) -> float | None:
        """The control furthest from 1 among those for these results."""
        known = [a_a for results in counts if (a_a := self.a_a(results)) is not None]
        return max(known, key=lambda a_a: abs(a_a - 1), default=None)

    def furthest(self, counts: Sequence[float]) -> float | None:
        """The largest quotient, either way, of measured and predicted time for these results."""
        found = []
        for name, curve in self.measured.items():
            for results in counts if name in self.expected else ():
                seen, guessed = (_reached_s(c, results) for c in (curve, self.expected[name]))
                if seen and guessed:
                    found.append(max(seen / guessed, guessed / seen))
        return max(found, default=None)

    def details(self) -> dict[str, Any]:
        """What stands behind the rows: seconds for some numbers of results, plan by plan."""
        counts = (500, 1_000, 2_000, 5_000, 20_000, 90_000, 1_000_000, 10_000_000)
        return {
            "scale": str(self.scale),
            "seconds": {
                kind: {
                    name: {str(n): s for n in counts if (s := _reached_s(curve, n)) is not None}
                    for name, curve in curves.items()
                }
                for kind, curves in (("predicted", self.expected), ("measured", self.measured))
            },
        }


def takes_the_lead(
    leader: Curve, other: Curve, until_s: float | None = None
) -> tuple[float, float] | None:
    """When the other plan takes the lead and keeps it, and how many results both have then.

    None if it is not ahead at `until_s`; if not given, that is where the first of the two ends.
    """
    if until_s is None:
        until_s = min(float(each.times_s[-1]) for each in (leader, other))
    before = [met for met in crossings(leader, other) if met[0] <= until_s]
    return before[-1] if before and other.outputs(until_s) > leader.outputs(until_s) else None


def race(
    bench: Bench, query: RateQuery, trees: Mapping[str, PlanTree], scale: Scale, until: StopRule,
    control: str,
) -> PlanRace:  # fmt: skip
    """Run each plan once, and the control once more; what it is compared with comes beforehand."""
    found = PlanRace(scale, control=control)
    for name, tree in trees.items():
        curve = predicted(tree)
        found.expected[name] = _as_paper(curve, scale)
    for name, tree in (*trees.items(), (AGAIN, trees[control])):
        ran = run_plan(bench.session, query, tree, until)
        found.measured[name] = _as_paper(ran.curve(), scale)
        bench.log(
            f"  {name}: {ran.made[-1]:,} results in {ran.times_s[-1]:.0f} s, "
            f"{ran.batches} micro-batches"
        )
    return found


def agreed(bench: Bench, query: RateQuery, trees: Mapping[str, PlanTree], found: PlanRace) -> int:
    """The number of results of plans run to their end, which must be that of the whole tree.

    Each plan is also one join tree in a batch, in its shape, over the same rows.
    """
    counted = {name: whole_tree_count(bench.session, query, tree) for name, tree in trees.items()}
    for name, curve in found.measured.items():
        if curve.ends:
            counted[f"{name}, streamed"] = round(float(curve.made[-1]) / found.scale.fewer)
    if len(set(counted.values())) > 1:
        raise RivalsDisagreeError(f"plans of one query gave different results: {counted}")
    return next(iter(counted.values()))


def whole_tree_count(session: SparkSession, query: RateQuery, tree: PlanTree, seed: int = 0) -> int:
    """The results of a plan as one tree of Spark's joins, over all rows of its streams."""
    plan = DrawnPlan(query, tree, float("inf"), seed)
    tables = {source.name: plan.rows_of(source).table for source in query.streams}
    names = ", ".join(f"{name} {name} [RANGE 365 DAYS]" for name in tables)
    equal = [f"{p.left}.{p.left}{p.right} = {p.right}.{p.left}{p.right}" for p in query.predicates]
    sql = f"SELECT A.{TIME} FROM {names} WHERE {' AND '.join(equal)}"
    join = bind_join(parsed(sql, time=TIME), {n: t.schema for n, t in tables.items()})
    frames = {name: session.createDataFrame(table) for name, table in tables.items()}
    return int(join_tree(join, frames, join_shape(tree), "0 seconds").count())


def _as_paper(curve: Curve, scale: Scale) -> Curve:
    return Curve(curve.times_s * scale.time, curve.made * scale.fewer, curve.ends)


def _reached_s(curve: Curve, results: float) -> float | None:
    try:
        return curve.time_of(results)
    except QueryError:
        return None
