"""QM Figure 12: what a search takes, by the size of the training set and by the operators.

Problems are generated (`generated`), so that there are exactly as many training tuples as the
figure asks for. Times are processor time. Those of one machine say little; how they grow says more,
and is stated as the slope of a straight line through the logarithms (1 is linear, 2 quadratic).
Beside it stands the growth of the partitions costed, which no machine changes. The searches stop as
in the paper's Table 1, after k = 3 iterations; training by default also stops after 600 partitions.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from querymesh.classify.condense import condense
from querymesh.optimize.search.problem import Problem
from querymesh.optimize.search.searches import SEARCHES
from querymesh.optimize.search.stop import DEFAULT_STOP, Stop
from querymesh.optimize.train.train import find
from querymesh.optimize.train.training import Training
from querymesh.stats.profile import Profile
from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.qm.generated import SearchTime, time_search
from querymesh_lab.papers.qm.rivals import LookUpSubject, overheads
from querymesh_lab.papers.qm.ten_way import SOURCE, TenWay

TUPLES = (8, 16, 25, 50, 75, 100)
OPERATORS = (2, 4, 6, 8, 10, 12)
TEN = 10
BY_OPERATORS_TUPLES = 24
REPEATS = 3
SAMPLE = 2000

AS_IN_TABLE_1 = Stop(iterations=3)

II = "iterative-improvement"
SHORT = {II: "II", "simulated-annealing": "SA"}


@dataclass(frozen=True)
class SearchTimes:
    """The points of both halves of the figure, and II's seconds as training bounds it: on a
    generated problem, and on the ten-way join itself."""

    by_tuples: list[SearchTime]
    by_operators: list[SearchTime]
    default_seconds: float
    ten_way_seconds: float
    a_a: float | None = None
    """The control: II as training bounds it, timed again."""


def measure(bench: Bench) -> SearchTimes:
    """Time every heuristic there is; the optimal search is no heuristic, and takes for ever."""
    searches = [name for name in SHORT if name in SEARCHES]
    sizes = (8, 25) if bench.quick else TUPLES
    operators = (2, TEN) if bench.quick else OPERATORS
    by_tuples = [_median(bench, name, size, TEN) for name in searches for size in sizes]
    by_operators = [
        _median(bench, name, BY_OPERATORS_TUPLES, many) for name in searches for many in operators
    ]
    default, again = (_median(bench, II, sizes[-1], TEN, DEFAULT_STOP).seconds for _ in range(2))
    on_ten_way = _on_ten_way(bench, sizes[-1])
    return SearchTimes(by_tuples, by_operators, default, on_ten_way, again / default)


def _median(
    bench: Bench, search: str, tuples: int, operators: int, stop: Stop = AS_IN_TABLE_1
) -> SearchTime:
    seeds = range(1 if bench.quick else REPEATS)
    runs = [time_search(tuples, operators, search=search, stop=stop, seed=seed) for seed in seeds]
    middle = sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]
    bench.log(
        f"  {SHORT[search]}, {tuples} training tuples, {operators} operators: "
        f"{middle.seconds:.2f} s, {middle.partitions:,} partitions; {middle.stopped}"
    )
    return middle


def _on_ten_way(bench: Bench, tuples: int) -> float:
    """II on a sample of the data with static partners, whose six attributes make costlier trees."""
    design = TenWay()
    subject = LookUpSubject(
        design.query(), SOURCE, design.source(SAMPLE)[0], design.partner_tables()
    )
    profile = subject.profile(SAMPLE)
    taken = []
    for seed in range(1 if bench.quick else 3):
        started = process_time()
        find(whole_problem(profile, tuples), Training(), np.random.default_rng(seed))
        taken.append(process_time() - started)
    return statistics.median(taken)


def whole_problem(profile: Profile, tuples: int) -> Problem:
    """A search problem of just so many training tuples, whether they behave differently or not.

    `train` stops condensing where tuples behave alike; the paper's condensing does not.
    """
    return Problem(condense(profile, tuples, chance=1.0), overheads())


def growth(sizes: Sequence[float], measured: Iterable[float]) -> float:
    """The exponent of the power that something grows by.

    >>> round(growth([1, 2, 4], [3.0, 12.0, 48.0]), 6)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(list(measured)), 1)[0])


def results(times: SearchTimes) -> list[Result]:
    """The claims of Figure 12, and the project's own bound."""
    found = []
    for search, short in SHORT.items():
        for what, points, size in (
            ("training tuples", times.by_tuples, "tuples"),
            ("operators", times.by_operators, "operators"),
        ):
            own = [point for point in points if point.search == search]
            asked = Claim(
                "qm", "12", f"{short}: growth of search time with {what}", None, "exponent",
                neutral=0.0, whose="paper" if size == "tuples" else "project",
            )  # fmt: skip
            if own:
                found.append(_growth(asked, what, [getattr(p, size) for p in own], own))
            else:
                found.append(Result(asked, None, None, f"{search} is not there yet"))
    largest = max((p for p in times.by_tuples if p.search == II), key=lambda p: p.tuples)
    bound = f"II on {largest.tuples} training tuples and ten operators"
    for claim, seconds in (
        (bound, times.default_seconds),
        (f"{bound}, the data with static partners", times.ten_way_seconds),
        (f"{bound}, k = 3 iterations and no bound of partitions", largest.seconds),
    ):
        asked = Claim("qm", "12", claim, 5.0, "s", "at most", whose="project")
        found.append(Result(asked, seconds, times.a_a))
    return found


def _growth(asked: Claim, what: str, sizes: list[int], points: list[SearchTime]) -> Result:
    seconds = [point.seconds for point in points]
    details = {
        "sizes": sizes,
        "seconds": [round(taken, 4) for taken in seconds],
        "partitions": [point.partitions for point in points],
        "growth_of_partitions": growth(sizes, [point.partitions for point in points]),
    }
    note = f"{sizes[0]} to {sizes[-1]} {what}: {seconds[0]:.2f} s to {seconds[-1]:.2f} s"
    return Result(asked, growth(sizes, seconds), None, note, details)
