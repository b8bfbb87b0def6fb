"""The optimization step of Content-Learns (CBR § 4.1): which attribute tells what an operator does.

Operators take turns. One is profiled until its sample is complete; if an attribute says enough
about it, the pair is tried, and kept if tuples then cost less to process::

    profile O1 ──> best attribute ──> try the pair ──> keep or drop ──> profile O2 ──> ...
     the pair of O1           │
     is not in use            └── none says enough ──────────────────>

Beyond the paper, each off in `PAPER`: several operators at once, and P, |R| and d that follow what
is found. While nothing changes for a whole round P is halved; an operator whose pair failed, or for
which none was found, asks for a larger sample; d grows with the values of the attributes in use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import thread_time
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats
from querymesh.classify.partitions import Attributes, Partitions
from querymesh.fabric.routers import content_limits as limits
from querymesh.fabric.routers.content_record import (
    Event,
    RoutedWork,
    gains_from_json,
    gains_to_json,
)
from querymesh.fabric.routers.content_sample import Candidate, Sample, left_out, tuned
from querymesh.fabric.routers.estimates import Estimates, Pair
from querymesh.fabric.routers.routing import Routing


@dataclass
class Learning:
    """Which operators are being profiled, and what was found about each so far."""

    operators: Sequence[int]
    attributes: Sequence[str]
    routing: Routing
    estimates: Estimates
    partitions: Partitions
    merit: Callable[[Floats, int], Floats]
    rows: int = 0
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=limits.KEPT_EVENTS))
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
        self._before: dict[int, Pair] = {}
        self._alike: set[int] = set()
        """Operators whose last sample found no attribute that says enough."""
        self._rate = RoutedWork()
        self._usual = RoutedWork()
        self._began = 0
        self._sizes: dict[int, int] = {}
        """The rows of probed states when the turn began."""
        self._debt_us = 0.0
        """What the last evaluation took, while it is not earned yet."""
        self._next()

    @property
    def targets(self) -> list[int]:
        """The operators being profiled."""
        return [k for k, sample in self._samples.items() if sample.rows < self.sample_size]

    @property
    def profiled(self) -> list[int]:
        """The operators of this turn, while any of them is being profiled."""
        return list(self._samples) if self.targets else []

    @property
    def turns(self) -> bool:
        """Whether a trial, a sample or a rest is over when the next chunk begins."""
        if self._trial:
            return self._rate.rows >= self.routing.trial_rows
        if self._samples:
            return not self.targets or self._waited > limits.PATIENCE
        return self._is_due()

    @property
    def rows_left(self) -> int:
        """So many tuples, at least one, can come before their number alone ends a turn or a rest;
        of a rest that may be earned before, a few."""
        if self._trial:
            return limits.MOST_AT_ONCE
        longest = limits.PATIENCE if self._samples else limits.LONGEST_REST if self._debt_us else 1
        earning = self._debt_us and not self._samples
        left = int(longest * self.sample_size / self.probability) - (self.rows - self._began) - 2
        return max(1, min(left, limits.EARNING_ROWS if earning else limits.MOST_AT_ONCE))

    @property
    def plain_rows_left(self) -> int:
        """So many tuples that profile nothing can come before a trial is over."""
        left = max(1, self.routing.trial_rows - self._rate.rows)
        return left if self._trial else limits.MOST_AT_ONCE

    @property
    def rests(self) -> bool:
        """Whether nothing is being profiled or tried."""
        return not self._samples and not self._trial

    def wanted(self, index: int) -> int:
        """How many more tuples an operator's sample needs."""
        return max(0, self.sample_size - self._samples[index].rows)

    def sampled(self, index: int, batch: pa.RecordBatch, outcomes: Any) -> None:
        """Add tuples that went to an operator first, and how many rows came out for each."""
        if index in self._samples:
            self._samples[index].add(batch, outcomes)

    def worked(self, us: float) -> None:
        """Add the time it took to route tuples that do not profile, where trials go by cost."""
        if self.routing.trial_by == "cost":
            self._rate.work += us

    def visited(self, index: int, rows: int) -> None:
        """Count tuples that do not profile and went through an operator."""
        self._rate.visits[index] += rows

    def _visit_cost(self, index: int) -> float:
        return self.estimates.cost(index) if self.routing.trial_by == "cost" else 1.0

    def advance(self, rows: int) -> None:
        """Begin a chunk of so many tuples: end a trial, a sample or a turn that is complete."""
        if self.turns:
            ending = self._judge if self._trial else self._evaluate if self._samples else self._next
            ending()
        self.rows += rows

    def _is_due(self) -> bool:
        """Whether a rest is over: its debt is earned, or operators are to be looked at again."""
        if not self._debt_us:
            return self._waited >= 1
        earned_us = limits.LEARNING_SHARE * self._rate.total(self._visit_cost)
        return earned_us >= self._debt_us or self._waited >= limits.LONGEST_REST

    def _rest(self) -> None:
        """Go on with the next operators, once what this turn took is earned."""
        if not self._debt_us:
            self._next()
        self._rate = RoutedWork()
        self._began = self.rows

    @property
    def _waited(self) -> float:
        """How long the turn has lasted, in times that a sample takes if all its tuples arrive."""
        least = self.routing.chunk if self.routing.one_route_per_chunk else 1
        return (self.rows - self._began) * self.probability / max(self.sample_size, least)

    def set_out(self, rows: int) -> None:
        """Count tuples that do not profile and met their first operator."""
        self._rate.rows += rows

    def _next(self) -> None:
        """Begin to profile the next operators; their pairs rest meanwhile unless `keep_pairs`."""
        self._debt_us = 0.0
        chosen: list[int] = []
        affordable = int(self.routing.budget / self.probability + 1e-9)
        at_once = min(self.routing.at_once, max(affordable, 1))
        if self.routing.all_at_first and self._turn == 0:
            at_once = len(self.operators)  # nothing is known yet: no order is worth keeping
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
            if len(chosen) == min(at_once, len(self.operators)):
                break
        self._samples = {index: Sample() for index in chosen}
        self._sizes = dict(self.estimates.sizes)
        self._before = {}
        for index in chosen:
            pair = self.estimates.pairs.get(index)
            if pair is not None:
                self._before[index] = pair
            if not self.routing.keep_pairs:
                self.estimates.pairs.pop(index, None)
        self._rate = RoutedWork()
        self._began = self.rows

    def _evaluate(self) -> None:
        """Find the attribute that says most by each sample, and begin a trial of the pairs."""
        started = thread_time()
        self._usual, self._rate, self._trial = self._rate, RoutedWork(), {}
        for index, sample in self._samples.items():
            if sample.rows < self.sample_size:
                self._note(index, "none", reason="too few tuples get there")
                continue
            names = self._tried(sample)
            self._widen(names, sample)
            found = sample.candidates(
                names,
                self.partition_count,
                self.partitions,
                self.routing.attribute_sets,
                self.routing.evidence,
            )
            self._found[index] = tuple(found[:3])
            if found and found[0].gain > self.routing.threshold:
                self._tag(index, sample, found[0])
            else:
                if index in self._before:
                    self._changed = True
                self.estimates.pairs.pop(index, None)
                self._alike.add(index)
                if sample.outcome().var() > 0:
                    self._ask_more()
                self._note(index, "none")
        if self.routing.trial_by == "cost":
            self._debt_us += 1e6 * (thread_time() - started)
        if self._was_early():
            self._turn, self._debt_us = 0, 0.0
        self._samples = {}
        if not self._trial:
            self._rest()

    def _was_early(self) -> bool:
        """Whether all operators were looked at and nothing was found, and windows that are probed
        have filled since: it was too early to tell."""
        if self._trial or len(self._samples) < len(self.operators):
            return False
        return self._filled_by(2.0)

    def _filled_by(self, factor: float) -> bool:
        """Whether a window that is probed has grown by such a factor since the turn began."""
        now = self.estimates.sizes
        return any(rows > factor * self._sizes.get(k, 0) for k, rows in now.items())

    def _ask_more(self) -> None:
        """Double the sample, where `tune` is set: the last told too little, or something wrong."""
        if self.routing.tune:
            self.sample_size = min(2 * self.sample_size, limits.MOST_SAMPLE)

    def _widen(self, names: Sequence[str], sample: Sample) -> None:
        """Widen ranges by the values of a sample, and move the columns of S along with them."""
        before = Partitions(dict(self.partitions.ranges))
        for name in names:
            self.partitions.see(name, sample.column(name))
        for pair in self.estimates.pairs.values():
            pair.move(self.partitions, before)
        for index, pair in self._before.items():
            if pair is not self.estimates.pairs.get(index):
                pair.move(self.partitions, before)

    def _tried(self, sample: Sample) -> list[str]:
        """The attributes worth trying; the others are noted with the reason."""
        if not self.routing.prune:
            return [n for n in sample.names if left_out(n, sample.column(n).slice(0, 1)) is None]
        reasons = ((name, left_out(name, sample.column(name))) for name in sample.names)
        self.left_out = {name: reason for name, reason in reasons if reason is not None}
        return [name for name in sample.names if name not in self.left_out]

    def _tag(self, index: int, sample: Sample, best: Candidate) -> None:
        self._alike.discard(index)
        arrived, passed = sample.matrices(best.attributes, self.partition_count, self.partitions)
        column = self.estimates.column_of(index, arrived, passed)
        pair = Pair(best.attributes, self.partition_count, column, best.gain, on_trial=True)
        former = self.estimates.pairs.get(index)
        if former is not None and former.attributes == best.attributes:
            # Kept in use while profiled: there is nothing else to compare it with.
            former.gain = best.gain
            self._note(index, "kept", best.attributes, "as before")
        else:
            self.estimates.pairs[index] = pair
            self._trial[index] = pair
        if self.routing.tune:
            self.partition_count = tuned(self.partition_count, sample, best.attributes)

    def _judge(self) -> None:
        """End a trial: keep the pairs if tuples cost less with them than before, else drop them."""
        now, usual = (rate.a_row(self._visit_cost) for rate in (self._rate, self._usual))
        compared = self._usual.rows > 0 and not self._filled_by(limits.COMPARABLE)
        noise = self.routing.trial_noise * self._rate.by_chance(self._usual)
        helped = not compared or now < usual * (1 + noise)
        for index, pair in self._trial.items():
            pair.on_trial = False
            former = self._before.get(index)
            if helped:
                self._changed |= former is None or former.attributes != pair.attributes
            else:
                self._changed |= former is not None
                self.estimates.pairs.pop(index, None)
                if former is not None and self.routing.keep_pairs:
                    self.estimates.pairs[index] = former
                self._ask_more()
            rates = f"{now:.4g} a tuple, {usual:.4g} without"
            self._note(index, "kept" if helped else "dropped", pair.attributes, rates)
        self._trial = {}
        self._rest()

    def _note(
        self, index: int, decision: str, attributes: Attributes = (), reason: str = ""
    ) -> None:
        gains = self._found.pop(index, ())
        self.events.append(Event(self.rows, index, decision, attributes, gains, reason))

    def _end_round(self) -> None:
        """End a round of turns: profile half as much if nothing changed, as at first if it did."""
        if self.routing.tune:
            base = self.routing.probability
            halved = max(self.probability / 2, min(limits.LEAST_PROBABILITY, base))
            self.probability = base if self._changed else halved
        self._changed = False

    def _settled(self, index: int) -> str | None:
        """Why an operator's place does not depend on the tuple, if it does not (CBR § 4.4)."""
        if any(self.estimates.seen.get(k, 0) < self.routing.sample for k in self.operators):
            return None
        if index not in self.estimates.pairs and index not in self._alike:
            return None  # its overall selectivity may be the mean of very different ones
        least, most = self._merits(index)
        others = [self._merits(k) for k in self.operators if k != index]
        if least > 0 and least > limits.CLEAR * max(high for _, high in others):
            return "always first: far better than all others"
        if (
            most < min(low for low, _ in others) / limits.CLEAR
            and min(low for low, _ in others) > 0
        ):
            return "always last: far worse than all others"
        return None

    def _merits(self, index: int) -> tuple[float, float]:
        """The least and greatest merit of an operator, over the partitions of its attribute."""
        pair = self.estimates.pairs.get(index)
        overall = np.full(1, self.estimates.selectivity(index))
        merits = self.merit(overall if pair is None else pair.selectivity, index)
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
            "rate": self._rate.to_json(),
            "usual": self._usual.to_json(),
            "began": self._began,
            "debt_us": self._debt_us,
            "before": {str(index): pair.to_json() for index, pair in self._before.items()},
            "found": {str(index): gains_to_json(found) for index, found in self._found.items()},
            "events": [event.to_json() for event in list(self.events)[-limits.STORED_EVENTS :]],
            "alike": sorted(self._alike),
            "left_out": dict(self.left_out),
            "pruned": {str(index): reason for index, reason in self.pruned.items()},
        }

    def resume(self, stored: Mapping[str, Any]) -> None:
        """Go on from `to_json`; the estimates are given apart."""
        self.rows = int(stored["rows"])
        if self.routing.tune:  # else they are as the settings have them now
            self.probability = float(stored["probability"])
            self.sample_size = int(stored["sample_size"])
            self.partition_count = int(stored["partition_count"])
        self._turn = int(stored["turn"])
        self._changed = bool(stored["changed"])
        self._samples = {int(k): Sample.from_json(each) for k, each in stored["samples"].items()}
        self._rate, self._usual = (RoutedWork.from_json(stored[name]) for name in ("rate", "usual"))
        self._began = int(stored["began"])
        self._debt_us = float(stored.get("debt_us", 0.0))  # none before there was one
        self._sizes = dict(self.estimates.sizes)
        self._before = {int(k): Pair.from_json(pair) for k, pair in stored["before"].items()}
        for index, pair in self.estimates.pairs.items():
            if index in self._before and not pair.on_trial:
                self._before[index] = pair  # still in use, and learning
        self._trial = {k: pair for k, pair in self.estimates.pairs.items() if pair.on_trial}
        self._found = {int(k): gains_from_json(each) for k, each in stored["found"].items()}
        self.events.clear()
        self.events.extend(Event.from_json(each) for each in stored["events"])
        self._alike = {int(index) for index in stored["alike"]}
        self.left_out = dict(stored["left_out"])
        self.pruned = {int(index): reason for index, reason in stored["pruned"].items()}
