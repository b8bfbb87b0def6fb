"""How the gain of Figure 10a hangs on what the paper leaves open: the skew and the fan-out.

Probes a tuple, counted over tuples that training has not seen; the machine enters only by the costs
that training weighs. Where the judge of the training finds a saving uncertain (a large fan-out has
a long tail), QM falls back to one route and the gain is 1.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np

from querymesh.bench.case import Bench
from querymesh.bench.limits import effort_of_mesh, limits
from querymesh.reproduce.rivals import QM, SAMPLE, SP, Subject, train_rivals
from querymesh.reproduce.ten_way import SOURCE, TenWay

SHIFTS = (1, 2, 3, 4)
MATCHES = (1.0, 1.25, 1.5)
UNSEEN = 6000


@dataclass(frozen=True)
class Probes:
    """Probes a tuple at one skew and fan-out: of SP, of QM, and of the best order by partition."""

    shift: int
    matches: float
    sp: float
    qm: float
    oracle: float
    routes: int

    @property
    def gain(self) -> float:
        """SP's probes over QM's."""
        return self.sp / self.qm


def measure(bench: Bench, base: TenWay) -> list[dict[str, float]]:
    """Every combination, each said as it is found; only the chosen one when quick."""
    chosen = [(base.shift, base.matches)]
    found = []
    for shift, matches in chosen if bench.quick else [(s, m) for s in SHIFTS for m in MATCHES]:
        one = _probes(replace(base, shift=shift, matches=matches))
        found.append({**asdict(one), "gain": one.gain})
        bench.log(
            f"  shift {shift}, {matches:g} matches: {one.sp:.2f} probes a tuple by SP, "
            f"{one.qm:.2f} by QM, {one.oracle:.2f} at best by partition: {one.gain:.2f} ×"
        )
    return found


def _probes(design: TenWay) -> Probes:
    table, partition = design.source(SAMPLE + UNSEEN)
    subject = Subject(design.query(), SOURCE, table, design.partner_tables())
    profile = subject.profile(table.num_rows)
    meshes = train_rivals(subject, profile)
    rows = np.arange(SAMPLE, profile.rows)
    unseen = profile.take(rows)
    oracle = limits(unseen, partition[rows]).oracle
    return Probes(
        design.shift,
        design.matches,
        effort_of_mesh(unseen, meshes[SP]).evaluations,
        effort_of_mesh(unseen, meshes[QM]).evaluations,
        oracle.evaluations if oracle else float("nan"),
        len(meshes[QM].routes),
    )
