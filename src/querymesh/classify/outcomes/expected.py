"""What routes are expected to cost a row, by the probabilities that operators let it pass.

A row's operators are taken to be independent of each other once its probabilities are known. Then
the best order is by rank, cost / (1 - p), among the operators that wait for no other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.stats.profile import Route

LEAST_COST_US = 1e-12
"""A cost of 0 would leave no rank."""


def expected_us(
    passes: Floats, routes: Sequence[Route], drop_us: Floats, pass_us: Floats
) -> Floats:
    """For each row and route; `passes` has a column for each operator."""
    each = drop_us + (pass_us - drop_us) * np.minimum(passes, 1.0)
    total = np.zeros((len(passes), len(routes)))
    for number, route in enumerate(routes):
        alive = np.ones(len(passes))
        for operator in route:
            total[:, number] += alive * each[:, operator - 1]
            alive = alive * passes[:, operator - 1]
    return total


def orders_by_rank(
    passes: Floats, after: Sequence[frozenset[int]], drop_us: Floats, pass_us: Floats
) -> Ints:
    """The best order of each row: rows × operators, by their numbers from 1."""
    rows, operators = passes.shape
    each = np.maximum(drop_us + (pass_us - drop_us) * np.minimum(passes, 1.0), LEAST_COST_US)
    rank = (1.0 - passes) / each
    done = np.zeros((rows, operators), dtype=bool)
    order = np.empty((rows, operators), dtype=np.int64)
    for place in range(operators):
        waits = done.copy()
        for j, before in enumerate(after):
            if before:
                waits[:, j] |= ~done[:, [k - 1 for k in sorted(before)]].all(axis=1)
        chosen = np.where(waits, -np.inf, rank).argmax(axis=1)
        done[np.arange(rows), chosen] = True
        order[:, place] = chosen + 1
    return order
