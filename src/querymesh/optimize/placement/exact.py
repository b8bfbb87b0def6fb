"""The cheapest placement and order, exactly, by what survives every set of operators.

What reaches an operator depends on the *set* of operators before it (`stats/profile.py`), so a
placement is two sets: B, which Catalyst evaluates before, and P, which Python evaluates::

    cost(B, P) =  first(B)                  cheapest order of B in Catalyst
                + survivors(B) · crossing(P)
                + python(B, P)              cheapest order of P in Python, on what B leaves
                + rest(B + P)               cheapest order of all others in Catalyst

`first` and `rest` are dynamic programs over sets, as `optimize/routes/dynamic_programming.py` has
one; `python` is one over pairs of sets:

    python(B, P) = min over j in P of python(B, P - j) + step of j when B + P - j are done

A pair is a number whose digit for an operator says whether it is in B, in P, or in neither; an
operator that only one engine can run has two digits instead of three. So there are up to 3^m.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.mesh.stages import Stage
from querymesh.optimize.placement.costs import Costs, Placement
from querymesh.optimize.routes.subset import After

MOST_PAIRS = 180_000
"""Pairs of sets, at most, that the exact search looks at: those of eleven operators that both
engines can run, or of more where some have one engine only. It takes a tenth of a second or so."""

SAME = 1e-12
"""Costs that differ by no more than this share are the same: then the fewest rows cross."""

Crossing = Callable[[frozenset[int]], float]
"""From the operators that run in Python to the microseconds that each crossing row costs."""


def is_exact(costs: Costs) -> bool:
    """Whether there are few enough pairs of sets to look at all of them."""
    digits = 1 + costs.in_catalyst.astype(int) + costs.in_python
    return float(np.prod(digits, dtype=np.float64)) <= MOST_PAIRS


def exact_placement(
    survivors: Floats, costs: Costs, after: After, crossing_us: Crossing
) -> tuple[Placement, float] | None:
    """The cheapest placement and what all tuples cost with it; None where precedence leaves none.

    `survivors` has for each set of operators, as a bit mask, how many rows survive it. With no
    operator in Python, all come before, and the survivors of all pay `crossing_us` of no operator.
    """
    steps = _Steps(survivors, costs, after)
    pairs = _pairs(costs)
    together = pairs.before | pairs.python
    total = steps.first()[pairs.before] + steps.rest()[together]
    total += _python_us(pairs, steps)
    nowhere = pairs.python == 0
    total[nowhere & (pairs.before != len(survivors) - 1)] = np.inf
    possible = np.flatnonzero(np.isfinite(total))
    if not len(possible):
        return None
    sets, which = np.unique(pairs.python[possible], return_inverse=True)
    each = np.array([crossing_us(_members(int(chosen))) for chosen in sets])
    total[possible] += survivors[pairs.before[possible]] * each[which]
    least = float(total.min())
    best = np.flatnonzero(total <= least + SAME * abs(least))
    # Of equals the one with the fewest operators in Python, then the most before it.
    chosen = min(best, key=lambda i: (pairs.size[i], -int(pairs.before[i]).bit_count(), i))
    return _placement(int(pairs.before[chosen]), int(pairs.python[chosen]), costs.operators), least


@dataclass(frozen=True)
class _Steps:
    """What one operator costs all tuples when a set of others came before it."""

    survivors: Floats
    costs: Costs
    after: After

    def catalyst_us(self, j: int, done: Ints) -> Floats:
        """In Catalyst; infinite where it may not come next."""
        return self._allowed(j, done, self.survivors[done] * self.costs.catalyst_us[j])

    def python_us(self, j: int, done: Ints) -> Floats:
        """In Python; infinite where it may not come next."""
        passed = self.survivors[done | 1 << j]
        dropped = self.survivors[done] - passed
        cost = passed * self.costs.python_pass_us[j] + dropped * self.costs.python_drop_us[j]
        return self._allowed(j, done, cost)

    def _allowed(self, j: int, done: Ints, cost: Floats) -> Floats:
        needed = sum(1 << (k - 1) for k in self.after[j])
        return np.where(done & needed == needed, cost, np.inf)

    def first(self) -> Floats:
        """For each set, its cheapest order in Catalyst from the start."""
        best = np.full(len(self.survivors), np.inf)
        best[0] = 0.0
        for sets in self._by_size()[1:]:
            for j, inside in self._catalyst(sets, member=True):
                done = inside ^ (1 << j)
                best[inside] = np.minimum(best[inside], best[done] + self.catalyst_us(j, done))
        return best

    def rest(self) -> Floats:
        """For each set that is done, the cheapest order in Catalyst of all the others."""
        best = np.full(len(self.survivors), np.inf)
        best[-1] = 0.0
        for sets in self._by_size()[-2::-1]:
            for j, done in self._catalyst(sets, member=False):
                onward = best[done | 1 << j] + self.catalyst_us(j, done)
                best[done] = np.minimum(best[done], onward)
        return best

    def _by_size(self) -> list[Ints]:
        every = np.arange(len(self.survivors))
        size = np.zeros(len(every), dtype=np.int64)
        for j in range(self.costs.operators):
            size += every >> j & 1
        return [every[size == count] for count in range(self.costs.operators + 1)]

    def _catalyst(self, sets: Ints, member: bool) -> list[tuple[int, Ints]]:
        """For each operator that Catalyst can run, the sets that hold it, or those that do not."""
        operators = np.flatnonzero(self.costs.in_catalyst)
        return [(int(j), sets[(sets >> j & 1) == member]) for j in operators]


@dataclass(frozen=True)
class _Pairs:
    """All pairs of disjoint sets: `before` and `python` as masks, `size` operators in Python.

    `stride[j]` is how far below a pair with operator j in Python the pair without it lies.
    """

    before: Ints
    python: Ints
    size: Ints
    stride: list[int]


def _pairs(costs: Costs) -> _Pairs:
    before, python, size = (np.zeros(1, dtype=np.int64) for _ in range(3))
    stride = []
    for j in range(costs.operators):
        bit, count = 1 << j, len(before)
        in_catalyst, in_python = bool(costs.in_catalyst[j]), bool(costs.in_python[j])
        stride.append(count * (1 + in_catalyst))
        digits = [(0, 0)] + [(bit, 0)] * in_catalyst + [(0, bit)] * in_python
        size = np.concatenate([size + (q > 0) for _, q in digits])
        before, python = (
            np.concatenate([before | b for b, _ in digits]),
            np.concatenate([python | q for _, q in digits]),
        )
    return _Pairs(before, python, size, stride)


def _python_us(pairs: _Pairs, steps: _Steps) -> Floats:
    best = np.where(pairs.size == 0, 0.0, np.inf)
    order = np.argsort(pairs.size, kind="stable")
    ends = np.cumsum(np.bincount(pairs.size))
    for level in range(1, len(ends)):
        here = order[ends[level - 1] : ends[level]]
        sets = pairs.python[here]
        for j, stride in enumerate(pairs.stride):
            inside = here[(sets >> j & 1) == 1]
            done = (pairs.before[inside] | pairs.python[inside]) ^ (1 << j)
            onward = best[inside - stride] + steps.python_us(j, done)
            best[inside] = np.minimum(best[inside], onward)
    return best


def _members(mask: int) -> frozenset[int]:
    return frozenset(j + 1 for j in range(mask.bit_length()) if mask >> j & 1)


def _placement(before: int, python: int, operators: int) -> Placement:
    def stage(bit: int) -> Stage:
        if before & bit:
            return Stage.BEFORE
        return Stage.PYTHON if python & bit else Stage.AFTER

    return tuple(stage(1 << j) for j in range(operators))
