"""The optimization step of Content-Learns (CBR § 4.1): which attribute tells what an operator does.

Operators take turns. One is profiled until its sample is complete; if an attribute says enough
about it, the pair is tried, and kept if tuples then cost less to process::

    profile O1 ──> best attribute ──> try the pair ──> keep or drop ──> profile O2 ──> ...
     the pair of O1           │
     is not in use            └── none says enough ──────────────────>

Beyond the paper, each off in `PAPER`: several operators at once, and P, |R| and d that follow what
is found. While nothing changes for a whole round P is halved; a pair that failed its trial asks for
a larger sample; d grows with the values of the attributes in use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.classify.partitions import Attributes, Partitions
from querymesh.fabric.content_sample import Candidate, Sample, left_out
from querymesh.fabric.estimates import Estimates, Pair
from querymesh.fabric.routing import Routing

KEPT_EVENTS = 500
LEAST_PROBABILITY = 0.005
MOST_SAMPLE = 600
MOST_PARTITIONS = 96
CLEAR = 3.0
"""An operator whose merit is that many times better, or worse, than all others' keeps its place."""


@dataclass(frozen=True)
class Event:
    """What was found about an operator, after so many tuples.

    `gains` are of the best few attributes; `decision` is "kept", "dropped", "none" or "pruned".
    """

    rows: int
    operator: int
    decision: str
    attributes: Attributes = ()
    gains: tuple[Candidate, ...] = ()
    reason: str = ""


@dataclass
class Rate:
    """What tuples that are not profiled cost to process."""

    rows: int = 0
    work: float = 0.0

    @property
    def a_row(self) -> float:
        """On average."""
        return self.work / self.rows if self.rows else 0.0


@dataclass
class Learning:
    """Whose turn it is, and what was found so far."""

    operators: Sequence[int]
    attributes: Sequence[str]
    routing: Routing
    estimates: Estimates
    partitions: Partitions
    merit: Callable[[Any, int], Any]
    rows: int = 0
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))
    left_out: dict[str, str] = field(default_factory=dict)
    """Attributes that are not tried, and why."""
    pruned: dict[int, str] = field(default_factory=dict)
    """Operators that are not profiled in this round, and why."""

    def __post_init__(self) -> None:
        self.probability = self.routing.probability
        self.sample_size = self.routing.sample
        self.partition_count = self.routing.partitions
        self._turn = 0
        self._changed = True
        self._samples: dict[int, Sample] = {}
        self._trial: dict[int, Pair] = {}
        self._found: dict[int, tuple[Candidate, ...]] = {}
        self._before: dict[int, Attributes] = {}
        self._rate = Rate()
        self._usual = Rate()
        self._resume_at = 0
        self._next()

    @property
    def targets(self) -> list[int]:
        """The operators being profiled."""
        return [k for k, sample in self._samples.items() if sample.rows < self.sample_size]

    def wanted(self, index: int) -> int:
        """How many more tuples an operator's sample needs."""
        return max(0, self.sample_size - self._samples[index].rows)

    def sampled(self, index: int, batch: pa.RecordBatch, outcomes: Any) -> None:
        """Tuples went to an operator first, and this is what it made of them."""
        if index in self._samples:
            self._samples[index].add(batch, outcomes)

    def worked(self, work: float) -> None:
        """Something was done for tuples that are not profiled."""
        self._rate.work += work

    def advance(self, rows: int) -> None:
        """Before a chunk of so many tuples: is it the next one's turn?"""
        if self._trial and self._rate.rows >= self.routing.trial_rows:
            self._judge()
        elif self._samples and not self.targets:
            self._evaluate()
        elif not self._samples and not self._trial and self.rows >= self._resume_at:
            self._next()
        self.rows += rows

    def unprofiled(self, rows: int) -> None:
        """So many tuples of the chunk are not profiled."""
        self._rate.rows += rows

    def _next(self) -> None:
        """The turn of the next operators; their pairs are not used meanwhile."""
        chosen: list[int] = []
        for _ in self.operators:
            index = self.operators[self._turn % len(self.operators)]
            self._turn += 1
            if self._turn % len(self.operators) == 0:
                self._end_round()
            if self.routing.prune and (reason := self._settled(index)):
                if self.pruned.get(index) != reason:
                    self.events.append(Event(self.rows, index, "pruned", reason=reason))
                self.pruned[index] = reason
                continue
            self.pruned.pop(index, None)
            chosen.append(index)
            if len(chosen) == min(self.routing.at_once, len(self.operators)):
                break
        self._samples = {index: Sample() for index in chosen}
        self._before = {}
        for index in chosen:
            pair = self.estimates.pairs.get(index)
            if pair is not None:
                self._before[index] = pair.attributes
            if not self.routing.keep_pairs:
                self.estimates.pairs.pop(index, None)
        self._rate = Rate()
        self._resume_at = self.rows + round(self.sample_size / self.probability)

    def _evaluate(self) -> None:
        """The samples are complete: which attribute says most?"""
        self._usual, self._rate, self._trial = self._rate, Rate(), {}
        for index, sample in self._samples.items():
            names = self._tried(sample)
            self._widen(names, sample)
            found = sample.candidates(
                names, self.partition_count, self.partitions, self.routing.attribute_sets
            )
            self._found[index] = tuple(found[:3])
            if found and found[0].gain > self.routing.threshold:
                self._tag(index, sample, found[0])
            else:
                if index in self._before:
                    self._changed = True
                self.estimates.pairs.pop(index, None)
                self._note(index, "none")
        self._samples = {}
        if not self._trial:
            self._next()

    def _widen(self, names: Sequence[str], sample: Sample) -> None:
        """Ranges follow the values that were seen, and what is known by range follows them."""
        before = Partitions(dict(self.partitions.ranges))
        for name in names:
            self.partitions.see(name, sample.column(name))
        for pair in self.estimates.pairs.values():
            pair.selectivity = self.partitions.moved(before, pair.attributes, pair.selectivity)

    def _tried(self, sample: Sample) -> list[str]:
        """The attributes worth trying; the others are noted with the reason."""
        if not self.routing.prune:
            return [n for n in self.attributes if left_out(n, sample.column(n).slice(0, 1)) is None]
        for name in self.attributes:
            reason = left_out(name, sample.column(name))
            if reason is None:
                self.left_out.pop(name, None)
            else:
                self.left_out[name] = reason
        return [name for name in self.attributes if name not in self.left_out]

    def _tag(self, index: int, sample: Sample, best: Candidate) -> None:
        arrived, passed = sample.matrices(best.attributes, self.partition_count, self.partitions)
        column = self.estimates.column_of(index, arrived, passed)
        pair = Pair(best.attributes, self.partition_count, column, best.gain, on_trial=True)
        self.estimates.pairs[index] = pair
        self._trial[index] = pair
        if self.routing.tune:
            self._tune_partitions(sample, best.attributes)

    def _judge(self) -> None:
        """The trial is over: did tuples cost less with the pairs than before?"""
        helped = self._rate.a_row < self._usual.a_row or self._usual.rows == 0
        for index, pair in self._trial.items():
            pair.on_trial = False
            if helped:
                self._changed |= self._before.get(index) != pair.attributes
            else:
                self._changed |= index in self._before
                self.estimates.pairs.pop(index, None)
                if self.routing.tune:
                    self.sample_size = min(2 * self.sample_size, MOST_SAMPLE)
            self._note(index, "kept" if helped else "dropped", pair.attributes)
        self._trial = {}
        self._next()

    def _note(self, index: int, decision: str, attributes: Attributes = ()) -> None:
        reason = ""
        if decision in ("kept", "dropped"):
            reason = f"{self._rate.a_row:.4g} a tuple, {self._usual.a_row:.4g} without"
        gains = self._found.pop(index, ())
        self.events.append(Event(self.rows, index, decision, attributes, gains, reason))

    def _end_round(self) -> None:
        """Everybody had a turn: profile less where nothing changes, as at first where it does."""
        if self.routing.tune:
            base = self.routing.probability
            halved = max(self.probability / 2, min(LEAST_PROBABILITY, base))
            self.probability = base if self._changed else halved
        self._changed = False

    def _tune_partitions(self, sample: Sample, attributes: Attributes) -> None:
        """Twice the partitions for an attribute with more values, half for one with fewer."""
        values = pc.count_distinct(sample.column(attributes[0])).as_py()
        if values > 0.8 * self.partition_count:
            self.partition_count = min(2 * self.partition_count, MOST_PARTITIONS)
        elif values < self.partition_count // 4:
            self.partition_count = max(self.partition_count // 2, 2)

    def _settled(self, index: int) -> str | None:
        """Why an operator's place does not depend on the tuple, if it does not (CBR § 4.4)."""
        if any(self.estimates.seen.get(k, 0) < self.routing.sample for k in self.operators):
            return None
        if len(self.operators) < 2:
            return "the only operator"
        least, most = self._merits(index)
        others = [self._merits(k) for k in self.operators if k != index]
        if least > 0 and least > CLEAR * max(high for _, high in others):
            return "always first: far better than all others"
        if most < min(low for low, _ in others) / CLEAR and min(low for low, _ in others) > 0:
            return "always last: far worse than all others"
        return None

    def _merits(self, index: int) -> tuple[float, float]:
        """The least and greatest merit of an operator, over the partitions of its attribute."""
        pair = self.estimates.pairs.get(index)
        values = [self.estimates.selectivity(index)] if pair is None else pair.selectivity
        merits = np.asarray(self.merit(values, index))
        return float(merits.min()), float(merits.max())

    def to_json(self) -> dict[str, Any]:
        """All that a restart goes on with, samples and trials under way included."""
        return {
            "rows": self.rows,
            "probability": self.probability,
            "sample_size": self.sample_size,
            "partition_count": self.partition_count,
            "turn": self._turn,
            "changed": self._changed,
            "samples": {str(index): sample.to_json() for index, sample in self._samples.items()},
            "rate": [self._rate.rows, self._rate.work],
            "usual": [self._usual.rows, self._usual.work],
            "before": {str(index): list(names) for index, names in self._before.items()},
            "left_out": dict(self.left_out),
            "pruned": {str(index): reason for index, reason in self.pruned.items()},
        }

    def resume(self, stored: Mapping[str, Any]) -> None:
        """Go on from `to_json`; the estimates are given apart."""
        self.rows = int(stored["rows"])
        self.probability = float(stored["probability"])
        self.sample_size = int(stored["sample_size"])
        self.partition_count = int(stored["partition_count"])
        self._turn = int(stored["turn"])
        self._changed = bool(stored["changed"])
        self._samples = {int(k): Sample.from_json(each) for k, each in stored["samples"].items()}
        self._rate, self._usual = (
            Rate(int(stored[name][0]), float(stored[name][1])) for name in ("rate", "usual")
        )
        self._before = {int(k): tuple(names) for k, names in stored["before"].items()}
        self._trial = {k: pair for k, pair in self.estimates.pairs.items() if pair.on_trial}
        self._found = {}
        self.left_out = dict(stored["left_out"])
        self.pruned = {int(index): reason for index, reason in stored["pruned"].items()}
        self._resume_at = self.rows
