"""QM Figure 13: the quality of the mesh that a search finds from each start solution.

The paper's measure is the output rate of the mesh found with k = 3 iterations. Here quality is the
rate by eq. 2 over tuples that no search has seen, the mean of several data sets: tuples a second of
operators, tests and rusters, which depends on the machine by the ratio of its costs only. As in the
paper the mesh runs as found; `train` would judge it first, and fall back to a single route. Beside
it stand the first walk alone (II's later walks set out elsewhere, whatever the start was), searches
cut short, and the start solutions as they are, where nothing mends a poor one.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

from querymesh.optimize.search.start import STARTS
from querymesh.optimize.search.stop import DEFAULT_STOP, Stop
from querymesh.optimize.train.describe import best_single, describe
from querymesh.optimize.train.train import find
from querymesh.optimize.train.training import Training
from querymesh.stats.profile import Profile
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.limits import effort_of_mesh
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.qm.rivals import LookUpSubject, overheads
from querymesh_lab.papers.qm.search_time import whole_problem
from querymesh_lab.papers.qm.ten_way import SOURCE, TenWay

BEST = "route-driven"
STATED = {"extreme-n": 1.06, "content-driven": 1.10, "random-pick": 1.12, "extreme-1": 1.19}
SAMPLE = 2000
UNSEEN = 10_000
TUPLES = 24
FEW_TUPLES = 10

FULL = "k = 3 iterations"
STOPS: dict[str, Stop] = {
    FULL: DEFAULT_STOP,
    "one walk": Stop(iterations=1, partitions=DEFAULT_STOP.partitions),
    "30 partitions": Stop(iterations=3, partitions=30),
    "start alone": Stop(iterations=1, partitions=1),
}


@dataclass(frozen=True)
class Quality:
    """Mean costs of the meshes found from one start, by stop condition."""

    start: str
    stop: str
    us: float
    probes: float
    routes: float


def measure(bench: Bench) -> list[Quality]:
    """Measure every start solution under every stop condition."""
    draws = [_draw(seed) for seed in range(bench.rounds(4, 1))]
    tuples = FEW_TUPLES if bench.quick else TUPLES
    found = []
    for stop in STOPS:
        for start in STARTS:
            found.append(_quality(start, stop, tuples, draws))
            last = found[-1]
            bench.log(f"  {start}, {stop}: {last.us:.3f} µs a tuple, {last.probes:.2f} probes")
    return found


def _draw(seed: int) -> tuple[TenWay, Profile, Profile]:
    """A data set, a profiled sample to learn from, and unseen tuples to judge by."""
    design = TenWay(seed=seed)
    table = design.source(SAMPLE + UNSEEN)[0]
    profile = LookUpSubject(design.query(), SOURCE, table, design.partner_tables()).profile(
        table.num_rows
    )
    return (
        design,
        profile.take(np.arange(SAMPLE)),
        profile.take(np.arange(SAMPLE, profile.rows)),
    )


def _quality(
    start: str, stop: str, tuples: int, draws: list[tuple[TenWay, Profile, Profile]]
) -> Quality:
    training = Training(start=start, stop=STOPS[stop])
    us, probes, routes = [], [], []
    for design, seen, unseen in draws:
        problem = whole_problem(seen, tuples)
        found = find(problem, training, np.random.default_rng(design.seed))
        mesh = describe(
            design.query(), unseen, found.tree, found.routes, best_single(unseen), (), overheads()
        )
        us.append(mesh.expected_us)
        probes.append(effort_of_mesh(unseen, mesh).evaluations)
        routes.append(len(mesh.routes))
    return Quality(
        start, stop, statistics.fmean(us), statistics.fmean(probes), statistics.fmean(routes)
    )


def results(found: list[Quality]) -> list[Result]:
    """Route-driven's rate over each other start's; the shorter searches are in the details."""
    cost = {(q.start, q.stop): q.us for q in found}
    made = []
    for start, stated in STATED.items():
        asked = Claim("qm", "13", f"output rate, {BEST} over {start} start", stated)
        if (start, FULL) not in cost:
            made.append(Result(asked, None, None, f"the {start} start is not there yet"))
            continue
        ratios = {stop: cost[start, stop] / cost[BEST, stop] for stop in STOPS}
        short = ", ".join(f"{stop}: {ratio:.2f} ×" for stop, ratio in ratios.items())
        made.append(
            Result(asked, ratios[FULL], None, short, {"ratios": ratios, "found": _rows(found)})
        )
    return made


def _rows(found: list[Quality]) -> list[dict[str, object]]:
    return [
        {"start": q.start, "stop": q.stop, "us": q.us, "probes": q.probes, "routes": q.routes}
        for q in found
    ]
