"""Rivals of the AMRI experiments: the same join of the same streams, with other indices.

Each starts with the indices that are best for the beginning of a training stream, which is run
first and not counted (AMRI § 9.1), and goes the same ways (`fixed_router`), so that all make the
same search requests. A run ends with its stream, or when it has taken too many times what the
training took. What two rivals produced in a fixed time is compared when the faster one was done::

    results  |        __--  one      the ratio is taken here: one / other
             |     __-- .   other
             |__---_____.---
             +----------|--------- processor time
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any

import numpy as np

from querymesh.cost.index_cost import Prices
from querymesh.fabric.join.indices import Indices, attributes_of, repeats_of
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.index.store.index_plan import IndexPlan
from querymesh.index.tune.indexing import Indexing
from querymesh.index.tune.prices import IndexPrices
from querymesh.index.tune.tuner import Load, Tuner
from querymesh.query.join import JoinQuery
from querymesh.runtime.join_step import JoinSteps
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.joins.core_run import Streams, steps, take_step
from querymesh_lab.bench.measure import CONTROL, RivalsDisagreeError
from querymesh_lab.papers.amri.fixed_router import by_orders

MOST_TIMES = 2.5
"""A run is cut off after so many times what the training took."""

PRICES = IndexPrices(Prices(0.0008, 0.0008), 0.012, 0.010, 0.021, 0.043, 0.0046)
"""What one machine takes, written down: indices are chosen by it, and so are the same anywhere."""


@dataclass(frozen=True)
class IndexRival:
    """A way to index the states; `foreseen`, if it starts with what is best for all phases."""

    name: str
    kind: str
    settings: Indexing
    foreseen: bool = False


@dataclass
class IndexRun:
    """What one run did; after each step, `curve` has (processor seconds, results), `looked`
    (probes, comparisons), and `state_bytes` what all states together took. `index_bytes` is the
    most that their indices did."""

    curve: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])
    looked: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    complete: bool = True
    tuples: int = 0
    state_bytes: list[int] = field(default_factory=lambda: [0])
    index_bytes: int = 0
    tuning_seconds: float = 0.0
    changes: int = 0
    moved: int = 0

    @property
    def cpu_seconds(self) -> float:
        """Processor seconds of the whole run."""
        return self.curve[-1][0]

    @property
    def probes(self) -> int:
        """How many search requests the run made."""
        return self.looked[-1][0]

    def compared(self, steps: int | None = None) -> float:
        """Comparisons per probe, in so many steps or all."""
        probes, comparisons = self.looked[-1 if steps is None else steps]
        return comparisons / max(probes, 1)

    def results_at(self, seconds: float) -> float:
        """Results made in the first so many processor seconds."""
        times, results = zip(*self.curve, strict=True)
        return float(np.interp(seconds, times, results))

    def details(self) -> dict[str, Any]:
        """The figures of the run, as `--json` writes them."""
        return {
            "results": self.curve[-1][1],
            "cpu_seconds": round(self.cpu_seconds, 3),
            "complete": self.complete,
            "probes_per_tuple": round(self.probes / max(self.tuples, 1), 2),
            "comparisons_per_probe": round(self.compared(), 2),
            "state_bytes": max(self.state_bytes),
            "index_bytes": self.index_bytes,
            "tuning_percent": round(100 * self.tuning_seconds / max(self.cpu_seconds, 1e-9), 2),
            "changes": self.changes,
            "moved_rows": self.moved,
        }


@dataclass(frozen=True)
class IndexCourse:
    """A join and its streams, with the requests of the beginning of another stream like it, and
    those of the whole of that."""

    name: str
    join: JoinQuery
    streams: Streams
    step_rows: int
    beginning: dict[str, Load]
    whole: dict[str, Load]
    limit_seconds: float

    def plans(self, contender: IndexRival) -> dict[str, IndexPlan]:
        """The best indices for the training stream, of the contender's kind."""
        settings = replace(contender.settings, first=1, steps=1, assessment="sria")
        tuner = Tuner(contender.kind, attributes_of(self.join), settings, lambda: PRICES)
        tuner.see(self.whole if contender.foreseen else self.beginning)
        return tuner.plans

    def run(self, contender: IndexRival) -> IndexRun:
        """Run one rival over the whole stream."""
        own = contender.settings
        tuner = Tuner(contender.kind, attributes_of(self.join), own, lambda: PRICES)
        for alias, plan in self.plans(contender).items():
            tuner.start_with(alias, plan)
        fabric = JoinFabric(self.join)
        return _run(fabric, self.streams, self.step_rows, tuner, self.limit_seconds)


def course(
    name: str, join: JoinQuery, training: Streams, streams: Streams, rows: int, first: int
) -> IndexCourse:
    """Train, on the `first` tuples of each stream; and on all, which takes as long as it takes."""
    beginning = {alias: batch.slice(0, first) for alias, batch in training.items()}
    loads, _ = _trained(join, beginning, rows)
    whole, run = _trained(join, training, rows)
    return IndexCourse(name, join, streams, rows, loads, whole, MOST_TIMES * run.cpu_seconds)


def _trained(join: JoinQuery, streams: Streams, rows: int) -> tuple[dict[str, Load], IndexRun]:
    fabric = JoinFabric(join)
    run = _run(fabric, streams, rows, Tuner("hash", attributes_of(join)))
    loads = {}
    for alias, stem in fabric.streams.items():
        largest = max(map(len, stem.partitions))
        came = streams[alias].num_rows
        loads[alias] = Load(stem.requests, came, stem.rows, largest, repeats_of(stem))
    return loads, run


def _run(
    fabric: JoinFabric, streams: Streams, rows: int, tuner: Tuner, limit: float = float("inf")
) -> IndexRun:
    run, seconds = IndexRun(), 0.0
    indices = Indices(fabric, tuner)
    core = JoinSteps(fabric, by_orders(fabric), indices, tunes=True)
    for step in steps(fabric.join, streams, rows):
        if seconds > limit:
            run.complete = False
            break
        started = process_time()
        horizon = take_step(core, step)
        seconds += process_time() - started
        results = sum(view.metrics.rows_out for view in fabric.views.values())
        run.curve.append((seconds, results))
        stems = fabric.streams.values()
        run.looked.append((sum(s.probes for s in stems), sum(s.comparisons for s in stems)))
        run.tuples += sum(batch.num_rows for batch in step.values())
        run.state_bytes.append(sum(stem.nbytes for stem in stems))
        run.index_bytes = max(run.index_bytes, sum(stem.index_bytes for stem in stems))
        started = process_time()
        core.forget(horizon)
        seconds += process_time() - started
    run.tuning_seconds, run.changes = tuner.seconds, len(tuner.changes)
    run.moved = indices.moved
    return run


@dataclass(frozen=True)
class IndexRace:
    """The runs of some contenders, one each a round; the first ran twice, as the control."""

    course: IndexCourse
    runs: dict[str, list[IndexRun]]

    def ratio(self, one: str, other: str) -> float:
        """Results of one over those of another, when the faster of them was done."""
        return statistics.median(
            results_ratio(a, b) for a, b in zip(self.runs[one], self.runs[other], strict=True)
        )

    @property
    def a_a(self) -> float:
        """The A/A control: the ratio of the first rival to itself."""
        return self.ratio(CONTROL, next(iter(self.runs)))

    def best(self, names: Sequence[str]) -> str:
        """The one of these that produced most in the time of the fastest of them."""
        return max(names, key=lambda name: min(self.ratio(name, other) for other in names))

    def fewer(self, one: str, other: str) -> float:
        """Comparisons per probe of another by those of one, as far as both came."""
        a, b, steps = self._both(one, other)
        return b.compared(steps) / max(a.compared(steps), 1e-9)

    def state(self, one: str, other: str) -> float:
        """Peak state bytes of one by those of another, as far as both came."""
        a, b, steps = self._both(one, other)
        return max(a.state_bytes[: steps + 1]) / max(b.state_bytes[: steps + 1])

    def _both(self, one: str, other: str) -> tuple[IndexRun, IndexRun, int]:
        a, b = self.runs[one][-1], self.runs[other][-1]
        return a, b, min(len(a.looked), len(b.looked)) - 1

    def details(self) -> dict[str, Any]:
        """The figures of every rival."""
        names = [name for name in self.runs if name != CONTROL]
        last = {name: self.runs[name][-1].details() for name in names}
        return {"streams": self.course.name, "rounds": len(self.runs[names[0]]), "rivals": last}


def results_ratio(one: IndexRun, other: IndexRun) -> float:
    """What one produced by what the other did, when the faster of them was done."""
    seconds = min(one.cpu_seconds, other.cpu_seconds)
    return max(one.results_at(seconds), 1.0) / max(other.results_at(seconds), 1.0)


def race(bench: Bench, on: IndexCourse, contenders: Sequence[IndexRival]) -> IndexRace:
    """Run them in rounds, each round beginning with another; all must make the same requests."""
    control = replace(contenders[0], name=CONTROL)
    turns = [*contenders, control]
    runs: dict[str, list[IndexRun]] = {each.name: [] for each in turns}
    for number in range(bench.rounds(2, 1)):
        for each in turns[number:] + turns[:number]:
            gc.collect()
            runs[each.name].append(on.run(each))
            bench.log(f"  {on.name}, round {number + 1}: {_said(each.name, runs[each.name][-1])}")
    _same_requests(runs)
    return IndexRace(on, runs)


def _said(name: str, run: IndexRun) -> str:
    cut = "" if run.complete else " (cut off)"
    return f"{name} {run.cpu_seconds:.2f} s{cut}, {run.compared():.1f} comparisons per probe"


def _same_requests(runs: dict[str, list[IndexRun]]) -> None:
    whole = {name: of[-1] for name, of in runs.items() if of[-1].complete}
    seen = {(run.probes, run.curve[-1][1]) for run in whole.values()}
    if len(seen) > 1:
        made = {name: (run.probes, run.curve[-1][1]) for name, run in whole.items()}
        raise RivalsDisagreeError(f"rivals differ in requests and results: {made}")
