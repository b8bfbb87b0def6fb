"""QM Figure 13 on windowed streams: the output rate of meshes found from each start solution.

The join of ten streams with the paper's own parameters (`output_rate`), on the core by processor
time. As in the paper the mesh runs as found; `train` would judge it first.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

import numpy as np

from querymesh.classify.condense import condense
from querymesh.cost.route_time import Overheads
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.search.problem import Problem
from querymesh.optimize.search.start import STARTS
from querymesh.optimize.train.describe import best_single, describe
from querymesh.optimize.train.train import find
from querymesh.optimize.train.training import Training
from querymesh.query.model import Query
from querymesh.stats.profile import Profile
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import Timing
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.qm.output_rate import POISSON, WINDOWS
from querymesh_lab.papers.qm.rivals import SAMPLE
from querymesh_lab.papers.qm.starts import BEST, STATED
from querymesh_lab.papers.qm.windows.stream_rivals import (
    STEP,
    StreamSubject,
    on_meshes,
    quiet_overheads,
    race_core,
)

ROUNDS = 5
TUPLES = 10
"""Training tuples, after Table 1."""

FEW_TUPLES = 4


@dataclass(frozen=True)
class StartRates:
    """The race of meshes by their start, their probes a tuple and their leaves."""

    timing: Timing
    probes: dict[str, float]
    leaves: dict[str, float]


def measure(bench: Bench) -> StartRates:
    """Find a mesh for each stream from each start, and race them."""
    design = replace(POISSON, in_window=200, streams=4) if bench.quick else POISSON
    subject = StreamSubject(design, 2.0 if bench.quick else WINDOWS)
    join, profiles = subject.join, subject.profiles(300 if bench.quick else SAMPLE)
    overheads = quiet_overheads(STEP // len(join.aliases))
    tuples = FEW_TUPLES if bench.quick else TUPLES
    meshes = {}
    for start in (BEST, *(name for name in STARTS if name != BEST)):
        found = {
            alias: _mesh(join.query, profile, start, tuples, overheads)
            for alias, profile in profiles.items()
        }
        meshes[start] = JoinMesh(join.query, found)
    timing, last = race_core(subject, on_meshes(meshes), bench.rounds(ROUNDS, 1), bench.log)
    probes = {start: run.probes_a_tuple for start, run in last.items()}
    leaves = {
        start: statistics.fmean(len(mesh.leaf_routes) for mesh in of.meshes.values())
        for start, of in meshes.items()
    }
    return StartRates(timing, probes, leaves)


def _mesh(query: Query, profile: Profile, start: str, tuples: int, overheads: Overheads) -> Mesh:
    problem = Problem(condense(profile, tuples, chance=1.0), overheads)
    found = find(problem, Training.preset("table-1", start=start), np.random.default_rng(0))
    single = best_single(profile)
    return describe(query, profile, found.tree, found.routes, single, (), overheads)


def results(found: StartRates) -> list[Result]:
    """Route-driven's output rate over each other start's."""
    details = {"probes_a_tuple": found.probes, "leaves": found.leaves}
    note = "the join core by processor time, k = 3 iterations"
    return [
        Result(
            Claim("qm", "13", f"windows: output rate, {BEST} over {start} start", stated),
            found.timing.ratio(start, BEST), found.timing.a_a, note, details,
        )
        for start, stated in STATED.items()
    ]  # fmt: skip
