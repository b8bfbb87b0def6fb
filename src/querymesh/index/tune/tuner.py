"""Tuning the indices of a join's states while it runs (AMRI § 5 to 7): count, choose, hand out.

    requests by access pattern ──> assessment ──> selection ──> plan of the state's new partitions
                 └── λ_r of each state ──> schedule: whose assessment, and when

The first choice of a state is made after `Indexing.first` requests, from exact counts; those after
it by the assessment and the schedule that are set. A tuner knows nothing of where the states are:
on Spark one for each shard, and one for all of them, sits on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import thread_time
from typing import NamedTuple

from querymesh.cost.index_cost import Workload, dependent_cost, split_ranges
from querymesh.index.store.configuration import MOST_BITS, Configuration, evenly, in_sequence
from querymesh.index.store.index_plan import BitPlan, HashPlan, IndexPlan
from querymesh.index.store.request import Pattern
from querymesh.index.tune.assessment import ASSESSMENTS, Assessment, Sria
from querymesh.index.tune.configure import best_configuration, visits_us
from querymesh.index.tune.indexing import Indexing
from querymesh.index.tune.prices import IndexPrices, machine_prices
from querymesh.index.tune.schedule import Schedule, make_schedule
from querymesh.index.tune.selection import best_bits, split_bits

ONE_SIDED = 0.5
"""The share of an attribute's cells that a comparison is taken to leave."""


SAME = 0.02
"""Access patterns whose shares differ by less than this in all are the same."""

ALIKE = 1.25
"""And states whose sizes differ by a smaller factor."""


class Attributes(NamedTuple):
    """How many join attributes of a state are compared for equality, and how many by order."""

    keys: int
    orders: int

    @property
    def all(self) -> int:
        """How many join attributes there are."""
        return self.keys + self.orders


class Load(NamedTuple):
    """What a state did since it was last told of: requests by access pattern, arrivals; and what it
    holds now: all rows, those of its largest partition, and by attribute how often two rows have
    the same value."""

    requests: Mapping[Pattern, int]
    arrived: int
    stored: int
    largest: int
    repeats: Mapping[int, float] = {}


@dataclass(frozen=True)
class Change:
    """A state got another index: after how many requests of all states, which, and why."""

    requests: int
    state: str
    old: IndexPlan
    new: IndexPlan
    why: str
    frequencies: Mapping[Pattern, float]


@dataclass
class _AssessedState:
    """A state as the tuner knows it; the counts are those of the assessment that runs."""

    attributes: Attributes
    first: Sria | None
    assessment: Assessment
    arrived: int = 0
    stored: int = 0
    largest: int = 0
    repeats: Mapping[int, float] = field(default_factory=dict)
    workload: Workload | None = None


@dataclass
class Tuner:
    """The plans of some states, and how they come about.

    `seconds` is the time that counting and choosing took.
    """

    kind: str
    attributes: Mapping[str, Attributes]
    settings: Indexing = field(default_factory=Indexing)
    prices: Callable[[], IndexPrices] = machine_prices

    def __post_init__(self) -> None:
        self.plans: dict[str, IndexPlan] = {
            name: self._first_plan(each) for name, each in self.attributes.items()
        }
        self.frequencies: dict[str, Mapping[Pattern, float]] = {}
        self.changes: list[Change] = []
        self.requests = 0
        self.steps = 0
        self.seconds = 0.0

    @cached_property
    def _states(self) -> dict[str, _AssessedState]:
        settings, make = self.settings, ASSESSMENTS[self.settings.assessment]
        return {
            name: _AssessedState(
                each, Sria(), make(settings.threshold, settings.error, settings.seed)
            )
            for name, each in self.attributes.items()
        }

    @cached_property
    def _schedule(self) -> Schedule:
        settings = self.settings
        adapts = self.kind in ("amri", "auto") or (self.kind == "hash" and settings.adaptive)
        schedule = settings.schedule if adapts else "never"
        return make_schedule(schedule, list(self.attributes), settings.window, settings.every)

    @property
    def chooses(self) -> bool:
        """Whether there is anything to choose: one hash index a pattern needs no choice."""
        return self.kind != "hash" or self.settings.hashes is not None

    def _first_plan(self, attributes: Attributes) -> IndexPlan:
        if self.kind in ("hash", "auto"):
            return HashPlan() if self.settings.hashes is None else HashPlan(())
        bits = MOST_BITS if self.settings.bits is None else self.settings.bits
        return BitPlan(evenly(bits, attributes.all, attributes.keys))

    def see(self, loads: Mapping[str, Load]) -> list[Change]:
        """Take in what states did; return the changes of their plans."""
        if not self.chooses:
            return []
        started = thread_time()
        assessed = self._schedule.assessing
        served: dict[str, int] = {}
        for name, load in loads.items():
            state = self._states[name]
            served[name] = sum(load.requests.values())
            state.stored, state.largest, state.repeats = load.stored, load.largest, load.repeats
            for counting in (state.first, state.assessment if name in assessed else None):
                for pattern, count in load.requests.items():
                    if counting is not None:
                        counting.see(pattern, count)
            if state.first is not None or name in assessed:
                state.arrived += load.arrived
        self.requests += sum(served.values())
        self.steps += 1
        changes = []
        for name, state in self._states.items():
            first = state.first
            if first is None or self.steps < self.settings.steps:
                continue
            if first.requests >= self.settings.first:
                changes += self._choose(name, first, "the first choice")
                state.first = None
                state.assessment.reset()
                state.arrived = 0
        for name in self._schedule.see(self._as_of_steps(served)):
            state = self._states[name]
            if state.first is None and state.assessment.requests:
                changes += self._choose(name, state.assessment, self._schedule.reason[name])
            state.assessment.reset()
            state.arrived = 0
        self.changes += changes
        self.seconds += thread_time() - started
        return changes

    def _as_of_steps(self, served: Mapping[str, int]) -> dict[str, int]:
        """Requests by state, of which one step counts for no more than its part of a window."""
        most = self.settings.window / self.settings.steps
        part = min(1.0, most / max(sum(served.values()), 1))
        return {name: round(part * count) for name, count in served.items()}

    def start_with(self, name: str, plan: IndexPlan) -> None:
        """Go on from a plan that was chosen earlier."""
        self.plans[name] = plan
        self._states[name].first = None

    def stored(self, name: str) -> int:
        """The rows of a state when it was last told of."""
        return self._states[name].stored

    def _choose(self, name: str, counted: Assessment, why: str) -> list[Change]:
        """Choose a state's plan anew; with a budget, bits may move to it from other states."""
        state = self._states[name]
        seen = _blended(self.frequencies.get(name), counted.result(), self.settings.memory)
        if state.workload is not None and self._is_the_same(state, self.frequencies[name], seen):
            return []
        self.frequencies[name] = seen
        arrived = max(state.arrived, 1)
        state.workload = Workload(
            arrived, counted.requests, state.stored / arrived, self._spread(name)
        )
        budget = None if self.kind == "hash" else self.settings.budget
        if budget is None:
            new = {name: self._plan(name, self._bits(state))}
        else:
            new = self._within_budget(budget)
        if not self._are_worth_it(new, budget):
            return []
        changes = []
        for each, plan in new.items():
            if plan != self.plans[each]:
                asked = self.frequencies[each]
                changes.append(Change(self.requests, each, self.plans[each], plan, why, asked))
                self.plans[each] = plan
        return changes

    def _is_the_same(
        self, state: _AssessedState, had: Mapping[Pattern, float], has: Mapping[Pattern, float]
    ) -> bool:
        """Whether a state is asked as before and is as large, so that its plan can stay."""
        assert state.workload is not None
        moved = sum(abs(had.get(p, 0.0) - has.get(p, 0.0)) for p in {*had, *has})
        grown = state.stored / max(state.workload.stored, 1.0)
        return moved < SAME and 1 / ALIKE < grown < ALIKE

    def _are_worth_it(self, new: Mapping[str, IndexPlan], budget: int | None) -> bool:
        """Whether plans are better than those there are by the share that a change must save.

        What one state of a budget gains another one loses, so all are judged together; and what
        there is must be changed if it has more bits than the budget, or than rows.
        """
        bits = had_us = has_us = 0.0
        for name, plan in new.items():
            old, state = self.plans[name], self._states[name]
            if not (isinstance(old, BitPlan) and isinstance(plan, BitPlan)):
                if plan != old:
                    return True
                continue
            if old.configuration.total > self._bits(state):
                return True
            bits += old.configuration.total
            had_us += self._cells_us(state, old)
            has_us += self._cells_us(state, plan)
        if budget is not None and bits > budget:
            return True
        return has_us < (1 - self.settings.worth) * had_us

    def _spread(self, name: str) -> dict[Pattern, float]:
        """Frequencies for eq. 1, which knows equality alone, and values that never repeat.

        With n bits for an attribute of which two rows have the same value with the chance c, a
        request looks at c + (1 - c) · 2^-n of the rows: the same form as of a comparison.
        """
        keys, _ = self.attributes[name]
        compared = {j for pattern in self.frequencies[name] for j in pattern if j >= keys}
        left = {**self._states[name].repeats, **dict.fromkeys(compared, ONE_SIDED)}
        return split_ranges(self.frequencies[name], left)

    def _bits(self, state: _AssessedState) -> int:
        rows = max(state.largest.bit_length() - 1, 0)
        return min(rows, MOST_BITS if self.settings.bits is None else self.settings.bits)

    def _within_budget(self, budget: int) -> dict[str, IndexPlan]:
        """The bits of all states that have a workload, divided where they save most (§ 6)."""
        known = {name: state for name, state in self._states.items() if state.workload}
        costs = []
        for state in known.values():
            assert state.workload is not None
            most = min(self._bits(state), budget)
            eq1, count = self.prices().eq1, state.attributes.all
            costs.append(
                [best_bits(state.workload, eq1, count, bits).cost for bits in range(most + 1)]
            )
        divided = split_bits(costs, budget)
        return {name: self._plan(name, bits) for name, bits in zip(known, divided, strict=True)}

    def _plan(self, name: str, bits: int) -> IndexPlan:
        state, frequencies = self._states[name], self.frequencies[name]
        assert state.workload is not None
        by_share = sorted((p for p in frequencies if p), key=lambda p: (-frequencies[p], p))
        equality = [p for p in by_share if p[-1] < state.attributes.keys]
        layout = equality[0] if equality else ()
        if self.kind == "hash":
            chosen = equality[: self.settings.hashes]
            return HashPlan(tuple(sorted(chosen)), layout if layout in chosen else ())
        plan = BitPlan(self._configuration(state, bits, frequencies))
        if self.kind != "auto":
            return plan
        by_hash = self._hash_us(state, len(equality))
        return HashPlan() if by_hash < self._cells_us(state, plan) else plan

    def _configuration(
        self, state: _AssessedState, bits: int, frequencies: Mapping[Pattern, float]
    ) -> Configuration:
        work, prices, (keys, orders) = state.workload, self.prices(), state.attributes
        assert work is not None
        if not self.settings.visits:
            best = best_bits(work, prices.eq1, keys + orders, bits)
            return in_sequence(best.bits, keys, frequencies)
        visit_us = prices.visit * self._partitions(state)
        return best_configuration(work, prices.eq1, keys, keys + orders, bits, visit_us)

    def _hash_us(self, state: _AssessedState, patterns: int) -> float:
        """What a hash index for each pattern costs in the time of the assessment."""
        prices, work = self.prices(), state.workload
        assert work is not None
        looked = work.requests * self._partitions(state) * prices.hash_probe
        return work.arrivals * patterns * prices.build + looked

    def _cells_us(self, state: _AssessedState, plan: BitPlan) -> float:
        """What a bit-address index costs in the time of the assessment."""
        prices, work = self.prices(), state.workload
        assert work is not None
        partitions = self._partitions(state)
        looked = work.requests * partitions * prices.cell_probe
        visits = visits_us(plan.configuration, work, prices.visit * partitions)
        laid_out = work.arrivals * prices.move
        return (
            dependent_cost(plan.configuration.bits, work, prices.eq1) + looked + visits + laid_out
        )

    def _partitions(self, state: _AssessedState) -> float:
        return state.stored / state.largest if state.largest else 1.0


def _blended(
    before: Mapping[Pattern, float] | None, now: Mapping[Pattern, float], memory: float
) -> Mapping[Pattern, float]:
    """The mean of the former frequencies, by weight `memory`, and of those now."""
    if not before or not memory:
        return now
    return {
        p: memory * before.get(p, 0.0) + (1 - memory) * now.get(p, 0.0) for p in {**now, **before}
    }
