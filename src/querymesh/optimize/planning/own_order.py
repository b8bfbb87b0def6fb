"""The order of a stream's own conditions, where a planner orders only the probes.

By falling rank, (1 - share that passes) / cost, as `routes/rank.py` has it, on decayed counts of
what rounds profiled: a profile asks every condition about every tuple, so the share of one does not
depend on which came before it. Conditions that must come after others do.

Another order is taken if it is expected to save a tenth: a query must not go to and fro between
orders that are nearly equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from querymesh.mesh.route import by_precedence
from querymesh.optimize.planning.planner import ConditionStats, Round
from querymesh.query.join import JoinQuery

DECAY = 0.9
"""What the counts of a round still weigh in the next."""

LEAST_ASKED = 50
"""Tuples that a condition must have been asked about before it is ordered."""

LEAST_GAIN = 0.1
LEAST_COST_S = 1e-12


@dataclass
class OwnOrder:
    """The statistics of the conditions of a join's streams, and the orders they lead to.

    `orders` has the operators' numbers, by stream; a stream that is not there is as written.
    """

    join: JoinQuery
    orders: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _stats: dict[str, dict[int, ConditionStats]] = field(default_factory=dict)

    def observe(self, shown: Round) -> set[str]:
        """Take in a round; the streams whose conditions have another order from now on."""
        for (alias, index), newest in shown.conditions.items():
            stats = self._stats.setdefault(alias, {})
            stats[index] = newest if index not in stats else _together(stats[index], newest)
        streams = {alias for alias, _ in shown.conditions}
        return {alias for alias in streams if self._reorder(alias)}

    def _reorder(self, alias: str) -> bool:
        stats = self._stats[alias]
        if len(stats) < 2 or any(condition.asked < LEAST_ASKED for condition in stats.values()):
            return False
        ranks = {index: rank(condition) for index, condition in stats.items()}
        after = self.join.views[alias].precedence
        written = _own(after, dict.fromkeys(stats, 0.0))
        running = tuple(dict.fromkeys([*self.orders.get(alias, ()), *written]))
        found = _own(after, ranks)
        if expected_s(found, stats) > (1 - LEAST_GAIN) * expected_s(running, stats):
            return False
        self.orders[alias] = found
        return found != running


def rank(condition: ConditionStats) -> float:
    """Tuples that a condition drops in a second of its own."""
    return (1 - condition.passed / condition.asked) / max(condition.cost_s, LEAST_COST_S)


def expected_s(order: Iterable[int], stats: Mapping[int, ConditionStats]) -> float:
    """What a tuple costs if its conditions come in this order and are independent.

    >>> stats = {1: ConditionStats(100, 50, 2.0), 2: ConditionStats(100, 10, 1.0)}
    >>> expected_s((1, 2), stats), expected_s((2, 1), stats)
    (2.5, 1.2)
    """
    reached, total_s = 1.0, 0.0
    for index in order:
        total_s += reached * stats[index].cost_s
        reached *= stats[index].passed / stats[index].asked
    return total_s


def _own(after: tuple[frozenset[int], ...], ranks: Mapping[int, float]) -> tuple[int, ...]:
    """The ranked conditions as precedence allows; of equal ones, the first written."""
    route = by_precedence(
        after, lambda ready: max(ready, key=lambda index: ranks.get(index, -math.inf))
    )
    return tuple(index for index in route if index in ranks)


def _together(before: ConditionStats, now: ConditionStats) -> ConditionStats:
    """Counts add up, older ones less; costs are the mean by what was asked."""
    kept = DECAY * before.asked
    asked = kept + now.asked
    cost_s = (kept * before.cost_s + now.asked * now.cost_s) / asked
    return ConditionStats(asked, DECAY * before.passed + now.passed, cost_s)
