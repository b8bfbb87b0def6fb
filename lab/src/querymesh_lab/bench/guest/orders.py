"""The best and the worst single order of a case's conditions, for plain Spark.

Every condition is evaluated on every row of a table of some size, together, so that the joint
outcomes are known and not only how many rows each keeps; each is also timed alone. All orders of up
to seven conditions are ranked by these, of more one is built step by step. The best few are run,
and beside them the one that is best if conditions of the same sort cost the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from time import perf_counter

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from querymesh.arrays import Bools, Floats
from querymesh_lab.bench.guest.condition import Condition, Order, Sql, as_written, column, in_order
from querymesh_lab.bench.measure import interleave

RANKED = 7
ALL_TRIED = 3
"""All orders of up to so many conditions are run."""

BEST_TRIED = 3
LEAST_US = 0.001


@dataclass(frozen=True)
class Outcomes:
    """What each condition says of each kind of row, how many rows there are, and costs alone."""

    passes: Bools
    counts: Floats
    cost_us: Floats

    @property
    def conditions(self) -> int:
        """How many conditions there are."""
        return int(self.passes.shape[1])

    def selectivities(self) -> Floats:
        """The share of rows that each condition keeps."""
        return np.asarray(self.counts @ self.passes / self.counts.sum())

    def cost_of(self, order: Order) -> float:
        """Microseconds of conditions for a row on average, in this order."""
        left, total = self.counts.copy(), 0.0
        for index in order:
            total += float(left.sum()) * float(self.cost_us[index])
            left = left * self.passes[:, index]
        return total / float(self.counts.sum())


def outcomes_of(df: DataFrame, conditions: Sequence[Condition], way: str) -> Outcomes:
    """Evaluate every condition on every row, and time each alone."""
    names = [f"b{k}" for k in range(len(conditions))]
    judged = df.select(
        *(
            F.coalesce(column(condition, way), F.lit(False)).alias(name)
            for name, condition in zip(names, conditions, strict=True)
        )
    )
    groups = judged.groupBy(*names).count().collect()
    passes = np.array([[bool(row[name]) for name in names] for row in groups]).reshape(
        len(groups), len(names)
    )
    counts = np.array([float(row["count"]) for row in groups])
    rows = max(float(counts.sum()), 1.0)
    bare = _least_seconds(df)
    alone = [_least_seconds(as_written(df, [condition], way)) for condition in conditions]
    cost_us = np.maximum(LEAST_US, 1e6 * (np.array(alone) - bare) / rows)
    return Outcomes(passes, counts, cost_us)


def _least_seconds(df: DataFrame) -> float:
    seconds = []
    for _ in range(2):
        started = perf_counter()
        df.count()
        seconds.append(perf_counter() - started)
    return min(seconds)


def levelled(outcomes: Outcomes, conditions: Sequence[Condition]) -> Outcomes:
    """The same with one cost for all conditions of a sort: comparisons, expressions, functions.

    What each costs alone is measured, and may be off; how many rows it keeps is exact.
    """
    sorts = np.array([_sort(condition) for condition in conditions])
    cost_us = outcomes.cost_us.copy()
    for sort in set(sorts.tolist()):
        cost_us[sorts == sort] = np.median(cost_us[sorts == sort])
    return replace(outcomes, cost_us=cost_us)


def _sort(condition: Condition) -> str:
    if not isinstance(condition, Sql):
        return "function"
    return "expression" if condition.regex else "comparison"


def best_orders(outcomes: Outcomes, count: int) -> list[Order]:
    """The cheapest orders by the outcomes."""
    if outcomes.conditions > RANKED:
        return [_step_by_step(outcomes, worst=False)]
    return sorted(permutations(range(outcomes.conditions)), key=outcomes.cost_of)[:count]


def worst_order(outcomes: Outcomes) -> Order:
    """The most expensive order by the outcomes."""
    if outcomes.conditions > RANKED:
        return _step_by_step(outcomes, worst=True)
    return max(permutations(range(outcomes.conditions)), key=outcomes.cost_of)


def _step_by_step(outcomes: Outcomes, *, worst: bool) -> Order:
    """Next is always what drops most (or least) of the rows still there for its cost."""
    left, order = outcomes.counts.copy(), list[int]()
    while len(order) < outcomes.conditions:
        there = max(float(left.sum()), 1e-9)
        kept = left @ outcomes.passes / there
        gain = (1 - kept) / outcomes.cost_us
        rest = [k for k in range(outcomes.conditions) if k not in order]
        chosen = min(rest, key=gain.__getitem__) if worst else max(rest, key=gain.__getitem__)
        order.append(chosen)
        left = left * outcomes.passes[:, chosen]
    return tuple(order)


def fastest_order(
    df: DataFrame, conditions: Sequence[Condition], way: str, outcomes: Outcomes, rounds: int
) -> tuple[Order, dict[str, float]]:
    """Of the best orders the one that runs fastest; also the seconds of all that were run."""
    every = len(conditions) <= ALL_TRIED
    measured = best_orders(outcomes, 6 if every else BEST_TRIED)
    candidates = list(dict.fromkeys([*measured, *best_orders(levelled(outcomes, conditions), 1)]))
    if len(candidates) == 1:
        return candidates[0], {}

    def attempt(order: Order) -> Callable[[], int]:
        return lambda: in_order(df, conditions, order, way).count()

    by_text = {order_text(order): order for order in candidates}
    timing = interleave({text: attempt(o) for text, o in by_text.items()}, rounds, warm_ups=0)
    medians = timing.median_seconds()
    best = timing.fastest(list(by_text))
    return by_text[best], {text: round(medians[text], 4) for text in by_text}


def order_text(order: Order) -> str:
    """An order as people count, from 1.

    >>> order_text((2, 0, 1))
    '3, 1, 2'
    """
    return ", ".join(str(index + 1) for index in order)
