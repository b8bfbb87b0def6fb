"""Where a mesh gains: QM's Figure 10 over a grid that is fixed here, every cell timed and reported.

The join of ten windowed streams (`ten_streams`, Poisson), QM against SP, on the core, through the
join step that a task takes, by processor time. Both learn from 4,000 tuples of other streams of the
same kind. Four things vary:

- kinds of tuples: with one of them one order is best for all, and there is nothing to gain; three
  are the paper's partitions; nine are hard to tell apart by six values that overlap;
- matches of a probe among streams that are shifted alike: how much a wrong order multiplies;
- tuples of a stream in its window;
- tuples of all streams in a step: what is classified and sent on its way together.

The cell with the paper's own parameters is `PAPER_CELL`; it prints neither matches nor windows, and
`output_rate` says how they were read.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from querymesh.mesh.mesh import Mesh
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.measure import Timing
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.qm.output_rate import seen_and_unseen
from querymesh_lab.papers.qm.rivals import QM, SAMPLE, SP
from querymesh_lab.papers.qm.windows.stream_rivals import (
    Profiles,
    StreamSubject,
    on_meshes,
    probes_a_tuple,
    race_core,
    race_jobs,
    train_stream_rivals,
)
from querymesh_lab.papers.qm.windows.ten_streams import TenStreams

KINDS = (1, 3, 9)
MATCHES = (1.25, 3.0, 4.0)
WINDOW_ROWS = (1_000, 3_000, 10_000)
STEP_ROWS = (1_000, 10_000, 100_000)
ROWS = 200_000
"""Tuples of all streams in a run: two of the longest windows, two of the longest steps."""

ROUNDS = 3
KEPT = 0.978
"""Of SP's output rate the paper's QM kept this where there was nothing to gain."""


@dataclass(frozen=True)
class Cell:
    """One cell of the grid."""

    kinds: int
    matches: float
    window_rows: int
    step_rows: int

    @property
    def name(self) -> str:
        """The cell in reports."""
        own = " (the paper's own)" if self == PAPER_CELL else ""
        kinds = "one kind" if self.kinds == 1 else f"{self.kinds} kinds"
        return (
            f"{kinds}, {self.matches:g} matches, windows of {self.window_rows:,}, "
            f"steps of {self.step_rows:,}{own}"
        )

    @property
    def design(self) -> TenStreams:
        """The streams, which are the same whatever the step."""
        return TenStreams(
            "poisson", matches=self.matches, in_window=self.window_rows, kinds=self.kinds
        )

    def claim(self, what: str = "") -> Claim:
        """With several kinds QM gains, the paper says; with one it keeps what SP has."""
        name = f"{self.name}: output rate, QM over SP{what}"
        if self.kinds == 1:
            return Claim("qm", "10 grid", name, KEPT, sense="at least")
        return Claim("qm", "10 grid", name, None)


PAPER_CELL = Cell(3, 3.0, 1_000, 10_000)
SPARK_CELLS = tuple(Cell(kinds, 3.0, WINDOW_ROWS[-1], ROWS) for kinds in KINDS)
"""Cells that are also timed as whole Spark jobs, in one batch of all rows."""

QUICK_CELL = Cell(3, 3.0, 200, 1_000)
QUICK_ROWS = 4_000


def cells(window_rows: int) -> list[Cell]:
    """All cells with such windows, a third of the grid."""
    return [Cell(k, m, window_rows, s) for k, m, s in product(KINDS, MATCHES, STEP_ROWS)]


def measure(bench: Bench, chosen: Sequence[Cell]) -> list[Result]:
    """Race QM against SP in each cell; when quick in one small cell alone."""
    _warm_up()
    return [_core(bench, cell) for cell in ((QUICK_CELL,) if bench.quick else chosen)]


def measure_jobs(bench: Bench) -> list[Result]:
    """The same as whole Spark jobs, by the clock."""
    found = []
    for cell in (QUICK_CELL,) if bench.quick else SPARK_CELLS:
        subject, seen, _ = _prepared(cell, bench.quick)
        meshes = train_stream_rivals(subject.join, seen, cell.step_rows)
        timing = race_jobs(bench, subject, meshes, bench.rounds(ROUNDS, 1))
        seconds = timing.median_seconds()
        details = {"cell": {
            "kinds": cell.kinds, "matches": cell.matches, "window": cell.window_rows,
            "SP, s": seconds[SP], "QM, s": seconds[QM], "QM over SP": timing.ratio(SP, QM),
            "A/A": timing.a_a, "leaves": _leaves(meshes[QM].meshes.values()),
        }}  # fmt: skip
        claim = cell.claim(", whole Spark job")
        found.append(Result(claim, timing.ratio(SP, QM), timing.a_a, "", details))
        bench.log(f"  {found[-1].claim.claim}: {found[-1].our_value:.2f} ×, A/A {timing.a_a:.2f}")
    return found


@cache
def _warm_up() -> None:
    """Compile what the core needs, so that no cell is timed with it."""
    subject, seen, _ = _prepared(QUICK_CELL, True)
    meshes = train_stream_rivals(subject.join, seen, QUICK_CELL.step_rows)
    race_core(subject, on_meshes(meshes), 1, step=QUICK_CELL.step_rows)


def _prepared(cell: Cell, quick: bool) -> tuple[StreamSubject, Profiles, Profiles]:
    """The streams, and profiles to learn from and to count on."""
    rows, sampled = (QUICK_ROWS, 300) if quick else (ROWS, SAMPLE)
    return _profiled(cell.design, rows, sampled)


@cache
def _profiled(
    design: TenStreams, rows: int, sampled: int
) -> tuple[StreamSubject, Profiles, Profiles]:
    subject = StreamSubject(design, rows / (design.streams * design.in_window))
    return subject, *seen_and_unseen(subject.profiles(2 * sampled))


def _core(bench: Bench, cell: Cell) -> Result:
    subject, seen, unseen = _prepared(cell, bench.quick)
    meshes = train_stream_rivals(subject.join, seen, cell.step_rows)
    timing, last = race_core(
        subject, on_meshes(meshes), bench.rounds(ROUNDS, 1), step=cell.step_rows, warm_ups=0
    )
    rows = last[QM].metrics.rows_in
    at_best = probes_a_tuple(cell.design, unseen, meshes).oracle
    details = {
        "cell": {
            "kinds": cell.kinds,
            "matches": cell.matches,
            "window": cell.window_rows,
            "step": cell.step_rows,
            "SP, µs a tuple": _us_a_tuple(timing, SP, rows),
            "QM, µs a tuple": _us_a_tuple(timing, QM, rows),
            "QM over SP": timing.ratio(SP, QM),
            "A/A": timing.a_a,
            "probes a tuple, SP": last[SP].probes_a_tuple,
            "QM": last[QM].probes_a_tuple,
            "at best by kind": at_best,
            "leaves": _leaves(meshes[QM].meshes.values()),
            "results a tuple": last[QM].metrics.rows_out / rows,
        },
        "classify_us_a_tuple": 1e6 * last[QM].metrics.classify_seconds / rows,
        "rounds": timing.rounds,
        "rows": rows,
    }
    found = Result(cell.claim(), timing.ratio(SP, QM), timing.a_a, "", details)
    bench.log(f"  {cell.name}: {found.our_value:.2f} ×, A/A {timing.a_a:.2f}, {found.verdict}")
    return found


def _us_a_tuple(timing: Timing, name: str, rows: int) -> float:
    return 1e6 * timing.median_seconds()[name] / rows


def _leaves(meshes: Iterable[Mesh]) -> float:
    """Leaves of a stream's mesh, on average over the streams."""
    return statistics.fmean(len(mesh.leaf_routes) for mesh in meshes)
