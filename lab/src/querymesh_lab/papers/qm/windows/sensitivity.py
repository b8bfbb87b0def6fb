"""How the gain of Figure 10a hangs on what the paper leaves open: the skew and the fan-out.

Probes a tuple, counted over tuples that training has not seen, the mean of all streams; the machine
enters only by the costs that training weighs. Where the judge of the training finds a saving
uncertain (a large fan-out has a long tail) or too small for what a further ruster costs, QM falls
back to one route and the gain is 1.
"""

from __future__ import annotations

from dataclasses import asdict, replace

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.qm.output_rate import seen_and_unseen
from querymesh_lab.papers.qm.rivals import QM, SAMPLE
from querymesh_lab.papers.qm.windows.stream_rivals import (
    StreamSubject,
    probes_a_tuple,
    train_stream_rivals,
)
from querymesh_lab.papers.qm.windows.ten_streams import TenStreams

SHIFTS = (2, 3, 4)
MATCHES = (1.25, 2.0, 3.0)
IN_WINDOW = 10_000
QUICK_IN_WINDOW = 1_000


def measure(bench: Bench, base: TenStreams) -> list[dict[str, float]]:
    """Every combination, each said as it is found; only the chosen one when quick."""
    base = replace(base, in_window=bench.rows(IN_WINDOW, QUICK_IN_WINDOW))
    found = []
    chosen = [(s, m) for s in SHIFTS for m in MATCHES]
    for shift, matches in [(base.shift, base.matches)] if bench.quick else chosen:
        one = _probes(bench, replace(base, shift=shift, matches=matches))
        found.append(one)
        bench.log(
            f"  shift {shift}, {matches:g} matches: {one['sp']:.2f} probes a tuple by SP, "
            f"{one['qm']:.2f} by QM, {one['oracle']:.2f} at best by partition: "
            f"{one['gain']:.2f} ×; {one['results']:.3g} results a tuple"
        )
    return found


def _probes(bench: Bench, design: TenStreams) -> dict[str, float]:
    subject = StreamSubject(design, 0)
    seen, unseen = seen_and_unseen(subject.profiles(2 * bench.rows(SAMPLE, 300)))
    meshes = train_stream_rivals(subject.join, seen)
    probes = probes_a_tuple(design, unseen, meshes)
    routes = sum(len(routes) for routes in meshes[QM].routes.values())
    return {
        "shift": design.shift,
        "matches": design.matches,
        **asdict(probes),
        "routes": routes / design.streams,
        "gain": probes.sp / probes.qm,
    }
