"""The profile: what every operator did with every tuple of a sample, and what it cost.

Selectivities are marginals and cannot rank correlated predicates. A profile keeps the outcomes
themselves, one row a tuple and one column an operator, so the share of any group of tuples that
survives any *set* of operators can be read off, joint distribution included::

              op 1   op 2   op 3 (look-up)
    tuple 0     1      0      1          passed, dropped, one match
    tuple 1     1      1      3          three matches: the tuple becomes three
    tuple 2     0      1      0

What survives a set S is the sum over tuples of the product of the columns in S. It depends on the
set and not on the order, which is why the best order is a dynamic program over sets
(`optimize/routes/dynamic_programming.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats, Ints

Route = tuple[int, ...]
"""An order of all operators, as indices from 1; 0 is the output and never part of a route."""


@dataclass(frozen=True)
class Profile:
    """Outcomes of `names` operators on the rows of `sample`.

    `outcomes[i, j]` is rows out per row in: 0 dropped, 1 passed, k a look-up's fan-out. An operator
    with precedence is only run on what its predecessors let through; elsewhere its outcome is 0,
    which no set that holds its predecessors can tell from the truth.

    An operator costs `drop_us` on a tuple it drops and `pass_us` on one it lets through: a regular
    expression that finds its match stops there, one that finds none has read the whole text.

    Where several queries share one pass, `serves` has a bit mask for each operator, of the queries
    it belongs to; it is empty for one query.
    """

    sample: pa.Table
    names: tuple[str, ...]
    after: tuple[frozenset[int], ...]
    outcomes: Floats
    drop_us: Floats
    pass_us: Floats
    serves: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        rows, operators = self.outcomes.shape
        if rows != self.sample.num_rows or operators != len(self.names):
            raise ValueError("outcomes must have one row a tuple and one column an operator")

    @property
    def rows(self) -> int:
        """How many tuples were profiled."""
        return int(self.outcomes.shape[0])

    @property
    def operators(self) -> int:
        """How many operators the query has."""
        return len(self.names)

    def take(self, rows: Ints) -> Profile:
        """The profile of some of the tuples."""
        return replace(self, sample=self.sample.take(pa.array(rows)), outcomes=self.outcomes[rows])

    @property
    def cost_us(self) -> Floats:
        """The mean cost of each operator on the tuples it may meet first."""
        passed = np.minimum(self.pass_rates(), 1.0)
        return np.asarray(self.drop_us + (self.pass_us - self.drop_us) * passed)

    def pass_rates(self) -> Floats:
        """Rows out per row in of each operator, over the tuples it may meet first."""
        rates = np.zeros(self.operators)
        for j, after in enumerate(self.after):
            before = np.prod(self.outcomes[:, [k - 1 for k in sorted(after)]], axis=1)
            met = float(before.sum())
            rates[j] = float((before * self.outcomes[:, j]).sum()) / met if met else 0.0
        return rates

    def arriving(self, route: Route) -> Floats:
        """For each tuple, how many rows of it reach each operator of the route, in route order.

        Of several queries in one pass an operator meets what the query that lets most through
        leaves: it is asked once a tuple, and not at all when none of its queries is left.
        """
        order = [k - 1 for k in route]
        if self.serves:
            return self._arriving_shared(order)
        rows = np.ones((self.rows, len(order)))
        if len(order) > 1:
            np.cumprod(self.outcomes[:, order[:-1]], axis=1, out=rows[:, 1:])
        return rows

    def _arriving_shared(self, order: list[int]) -> Floats:
        queries = max(self.serves, default=0).bit_length()
        alive = np.ones((queries, self.rows))
        rows = np.ones((self.rows, len(order)))
        for position, j in enumerate(order):
            mine = [q for q in range(queries) if self.serves[j] >> q & 1]
            rows[:, position] = alive[mine].max(axis=0)
            alive[mine] *= self.outcomes[:, j]
        return rows

    def realized_us(self, route: Route) -> Floats:
        """What each tuple costs on this route: each operator it meets, times what arrives there."""
        order = [k - 1 for k in route]
        passed = np.minimum(self.outcomes[:, order], 1.0)
        each = self.drop_us[order] + (self.pass_us - self.drop_us)[order] * passed
        return np.asarray((self.arriving(route) * each).sum(axis=1), dtype=np.float64)

    def clairvoyant_us(self) -> Floats:
        """The least that any order could cost each tuple.

        A dropped tuple pays its cheapest dropping operator (with what must precede it), a result
        pays every operator.

        Of several queries, all operators of those a tuple belongs to must be paid, and the cheapest
        way out of the dearest of the others.
        """
        if self.serves:
            return self._clairvoyant_shared_us()
        best = np.full(self.rows, np.inf)
        for j, after in enumerate(self.after):
            before = [k - 1 for k in sorted(after)]
            cost = float(self.pass_us[before].sum() + self.drop_us[j])
            dropped = self.outcomes[:, j] == 0
            best = np.where(dropped, np.minimum(best, cost), best)
        return np.where(np.isinf(best), float(self.pass_us.sum()), best)

    def _clairvoyant_shared_us(self) -> Floats:
        queries = max(self.serves, default=0).bit_length()
        paid = np.zeros((self.rows, self.operators), dtype=bool)
        way_out = np.zeros(self.rows)
        for query in range(queries):
            mine = [j for j in range(self.operators) if self.serves[j] >> query & 1]
            dropped = self.outcomes[:, mine] == 0
            least = np.where(dropped, self.drop_us[mine], np.inf).min(axis=1, initial=np.inf)
            way_out = np.maximum(way_out, np.where(np.isinf(least), 0.0, least))
            paid[np.ix_(np.isinf(least), mine)] = True
        return np.asarray((paid * self.pass_us).sum(axis=1) + way_out)


def survivors(outcomes: Floats, groups: Ints, count: int, *, chunk: int = 256) -> Floats:
    """For each of `count` groups and each set of operators (as a bit mask), the rows that survive.

    The table has 2^m columns, so callers use it up to `EXACT_LIMIT` operators. Of filters, the
    tuples that pass just one set of them are counted, and counts summed over supersets. Where
    look-ups multiply rows it is built a few tuples at a time, each by doubling, so memory stays at
    chunk * 2^m numbers.
    """
    rows, operators = outcomes.shape
    if ((outcomes == 0) | (outcomes == 1)).all():
        return _survivors_of_filters(outcomes.astype(np.int64), groups, count)
    total = np.zeros((count, 1 << operators))
    for start in range(0, rows, chunk):
        part = outcomes[start : start + chunk]
        products = np.ones((part.shape[0], 1 << operators))
        for j in range(operators):
            bit = 1 << j
            products[:, bit : 2 * bit] = products[:, :bit] * part[:, j : j + 1]
        np.add.at(total, groups[start : start + chunk], products)
    return total


def _survivors_of_filters(passed: Ints, groups: Ints, count: int) -> Floats:
    operators = passed.shape[1]
    masks = passed @ (1 << np.arange(operators))
    cells = groups.astype(np.int64) << operators | masks
    counted = np.bincount(cells, minlength=count << operators)
    total = counted.astype(np.float64).reshape(count, 1 << operators)
    for j in range(operators):
        halves = total.reshape(count, -1, 2, 1 << j)
        halves[:, :, 0] += halves[:, :, 1]
    return total


def meetings(
    outcomes: Floats, serves: Sequence[int], alive: Floats, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """For each operator and each set of operators done before it: rows it meets, rows it passes.

    `alive` has a row for each query: how many rows of each tuple it still has when the first of
    these operators begins. An operator meets what the query that lets most through leaves (see
    `Profile.arriving`). Both tables are operators * 2^operators.
    """
    rows, operators = outcomes.shape
    products = np.empty((len(alive), 1 << operators, rows))
    products[:, 0] = alive
    for j in range(operators):
        bit = 1 << j
        for query in range(len(alive)):
            factor = outcomes[:, j] if serves[j] >> query & 1 else 1.0
            products[query, bit : 2 * bit] = products[query, :bit] * factor
    met, passed = np.empty((2, operators, 1 << operators))
    for j in range(operators):
        mine = [query for query in range(len(alive)) if serves[j] >> query & 1]
        reaching = products[mine].max(axis=0) * (1.0 if weights is None else weights)
        met[j] = reaching.sum(axis=1)
        passed[j] = reaching @ np.minimum(outcomes[:, j], 1.0)
    return met, passed


def route_text(route: Route, names: Sequence[str] | None = None) -> str:
    """A route for people: `3 > 1 > 2`, or with the operators' names."""
    return " > ".join(names[k - 1] if names else str(k) for k in route)
