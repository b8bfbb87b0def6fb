"""A good placement of many operators, where there are too many for the exact search.

From a few starts, one operator at a time is moved to another stage as long as that is cheaper. What
a placement costs is looked up on the tuples, joint outcomes included, with the operators of each
stage by falling rank, (dropped share) / cost. The number of such lookups is bounded, so that fifty
operators are placed within a tenth of a second or so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

import numpy as np

from querymesh.mesh.route import written_route
from querymesh.mesh.stages import Stage
from querymesh.optimize.placement.costs import Costs, Placement, in_python
from querymesh.optimize.placement.exact import Crossing
from querymesh.optimize.routes.subset import After
from querymesh.stats.profile import Profile

MOST_LOOKUPS = 500
"""Placements, at most, that are costed from one start."""

LEAST_COST_US = 1e-12
"""A cost of 0 would leave no rank."""


def local_placement(
    profile: Profile, costs: Costs, crossing_us: Crossing
) -> tuple[Placement, int] | None:
    """A cheap placement, and how many were costed to find it; None where precedence leaves none."""
    room = stages_left(costs, profile.after)
    if room is None:
        return None
    sample = _Sample.of(profile, costs, crossing_us)
    best, best_us = None, np.inf
    for start in _starts(costs, room, profile.after):
        placement, cost_us = _improved(start, sample, room)
        if best is None or cost_us < best_us:
            best, best_us = placement, cost_us
    assert best is not None
    return best, sample.lookups


@dataclass(frozen=True)
class Room:
    """The stages that each operator may run in, wherever the others are."""

    stages: tuple[frozenset[Stage], ...]


def stages_left(costs: Costs, after: After) -> Room | None:
    """The stages that the engines and precedence leave each operator; None where one has none.

    What must come after a Python function cannot run before the Python stage, and so on.
    """
    can = []
    for catalyst, python in zip(costs.in_catalyst, costs.in_python, strict=True):
        stages = {Stage.BEFORE, Stage.AFTER} if catalyst else set()
        can.append(stages | ({Stage.PYTHON} if python else set()))
    order = written_route(after)
    for k in order:
        earliest = max((min(can[p - 1]) for p in after[k - 1]), default=Stage.BEFORE)
        can[k - 1] = {stage for stage in can[k - 1] if stage >= earliest}
        if not can[k - 1]:
            return None
    for k in reversed(order):
        for p in after[k - 1]:
            can[p - 1] = {stage for stage in can[p - 1] if stage <= max(can[k - 1])}
            if not can[p - 1]:
                return None
    return Room(tuple(map(frozenset, can)))


def _starts(costs: Costs, room: Room, after: After) -> Iterator[Placement]:
    """All that can be in Catalyst before; all that can be in Python; each where it is cheaper."""
    python_us = np.minimum(costs.python_drop_us, costs.python_pass_us)
    cheaper = costs.catalyst_us <= python_us
    wishes = (
        [Stage.BEFORE] * costs.operators,
        [Stage.PYTHON] * costs.operators,
        [Stage.BEFORE if native else Stage.PYTHON for native in cheaper],
    )
    for wish in wishes:
        placed = list(wish)
        for k in written_route(after):
            earliest = max((placed[p - 1] for p in after[k - 1]), default=Stage.BEFORE)
            allowed = [stage for stage in room.stages[k - 1] if stage >= earliest]
            # An operator that must wait is put off; `stages_left` keeps room for all behind it.
            placed[k - 1] = min(allowed, key=lambda stage: (abs(stage - wish[k - 1]), stage))
        yield tuple(placed)


def _improved(placement: Placement, sample: _Sample, room: Room) -> tuple[Placement, float]:
    """Move one operator at a time while that is cheaper, until a round of all changes nothing."""
    cost_us = sample.cost_us(placement)
    since, j, last = 0, 0, sample.lookups + MOST_LOOKUPS
    while since < len(placement) and sample.lookups < last:
        since += 1
        for stage in sorted(room.stages[j] - {placement[j]}):
            moved = (*placement[:j], stage, *placement[j + 1 :])
            if not sample.keeps_precedence(moved, j):
                continue
            moved_us = sample.cost_us(moved)
            if moved_us < cost_us * (1 - 1e-9):
                placement, cost_us, since = moved, moved_us, 0
        j = (j + 1) % len(placement)
    return placement, cost_us


@dataclass
class _Sample:
    """The tuples that each operator lets through, as the bits of one number: what survives a
    sequence of operators is an AND and a count of bits, whatever the sample's size."""

    passing: list[int]
    rows: int
    costs: Costs
    after: After
    crossing_us: Crossing
    lookups: int = 0

    @classmethod
    def of(cls, profile: Profile, costs: Costs, crossing_us: Crossing) -> _Sample:
        """Of a profile; rows that a look-up multiplies count once."""
        bits = np.packbits(profile.outcomes > 0, axis=0)
        passing = [int.from_bytes(column.tobytes(), "big") for column in bits.T]
        return cls(passing, profile.rows, costs, profile.after, crossing_us)

    @cached_property
    def _steps(self) -> tuple[list[_Step], list[_Step]]:
        """What each operator costs, and its rank, in Catalyst and in Python."""
        rates = [passed.bit_count() / max(self.rows, 1) for passed in self.passing]
        costs = self.costs
        return (
            [_Step.of(us, us, rate) for us, rate in zip(costs.catalyst_us, rates, strict=True)],
            [
                _Step.of(drop_us, pass_us, rate)
                for drop_us, pass_us, rate in zip(
                    costs.python_drop_us, costs.python_pass_us, rates, strict=True
                )
            ],
        )

    @cached_property
    def followers(self) -> list[list[int]]:
        """For each operator, those that must come after it, as positions."""
        found: list[list[int]] = [[] for _ in self.after]
        for j, before in enumerate(self.after):
            for k in before:
                found[k - 1].append(j)
        return found

    def keeps_precedence(self, placement: Placement, j: int) -> bool:
        """Whether operator number j + 1 is placed between what it waits for and what waits."""
        stage = placement[j]
        return all(placement[k - 1] <= stage for k in self.after[j]) and all(
            placement[k] >= stage for k in self.followers[j]
        )

    def cost_us(self, placement: Placement) -> float:
        """What all the tuples cost with this placement."""
        self.lookups += 1
        catalyst, python = self._steps
        steps = [
            python[j] if stage == Stage.PYTHON else catalyst[j] for j, stage in enumerate(placement)
        ]
        alive = (1 << 8 * -(-self.rows // 8)) - 1
        reached, total, crossed = self.rows, 0.0, False
        for j in self._order(placement, steps):
            if not crossed and placement[j] != Stage.BEFORE:
                crossed = True
                total += reached * self.crossing_us(in_python(placement))
            alive &= self.passing[j]
            passed = alive.bit_count()
            total += (reached - passed) * steps[j].drop_us + passed * steps[j].pass_us
            reached = passed
            if not reached:
                break
        if not crossed:
            total += reached * self.crossing_us(in_python(placement))
        return total

    def _order(self, placement: Placement, steps: list[_Step]) -> list[int]:
        """By stage, then by falling rank, as positions; what must wait comes when it may."""
        waiting = [len(before) for before in self.after]
        keys = [
            (stage, -step.rank, j)
            for j, (stage, step) in enumerate(zip(placement, steps, strict=True))
        ]
        ready = sorted(key for key, count in zip(keys, waiting, strict=True) if not count)
        if len(ready) == len(keys):
            return [j for _, _, j in ready]
        order = []
        while ready:
            _, _, j = heappop(ready)
            order.append(j)
            for k in self.followers[j]:
                waiting[k] -= 1
                if not waiting[k]:
                    heappush(ready, keys[k])
        return order


@dataclass(frozen=True, slots=True)
class _Step:
    """One operator on one engine: its costs, and its rank, (dropped share) / cost."""

    drop_us: float
    pass_us: float
    rank: float

    @classmethod
    def of(cls, drop_us: float, pass_us: float, rate: float) -> _Step:
        if not np.isfinite(drop_us):
            return cls(np.inf, np.inf, 0.0)
        cost_us = drop_us + (pass_us - drop_us) * rate
        return cls(float(drop_us), float(pass_us), (1.0 - rate) / max(cost_us, LEAST_COST_US))
