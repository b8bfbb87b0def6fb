"""How fast operators give out what comes in, RBO § 3: rates in rows a second, costs in seconds.

An operator that takes less time for a row than passes between two of them keeps pace. One that
takes longer gives out a row whenever it has finished one (Figure 2)::

    projection  r_o = min(r_i, 1 / C_π)                       selection  r_o = f · min(r_i, 1 / C_σ)

    join        r_o = f · r_l · r_r · t / max(1, r_l · C_l + r_r · C_r)                     (eq. 2)

A join's rate grows with time, since each row meets all that came before it on the other side. Eq. 2
is eq. 1, outputs over the time for making them: the mean rate of everything up to t, not the rate
at t, which without overload is twice that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from querymesh.arrays import Floats
from querymesh.errors import QueryError, QueryMeshError, did_you_mean

Amount = TypeVar("Amount", float, Floats)
"""A number, or an array of them over time."""


def check_cost(cost_s: float, what: str) -> None:
    """Costs are finite and not below zero."""
    if not 0 <= cost_s < math.inf:
        raise QueryError(f"{what} costs {cost_s} s: write a number of seconds from 0 on")


def check_selectivity(selectivity: float, what: str) -> None:
    """Selectivities lie between 0 and 1."""
    if not 0 <= selectivity <= 1:
        raise QueryError(
            f"{what} has selectivity {selectivity}: write the share of rows, or of pairs of rows, "
            "that pass, from 0 to 1"
        )


@dataclass(frozen=True)
class JoinCosts:
    """What a join takes for one arriving row, Tables 2 and 3.

    `move_s` brings the row into memory, `comp_s` compares it with another, `hash_s` puts it into a
    hash table, `probe_s` asks the other side's table. `handling_s` comes on top for an expensive
    predicate, as in Table 5.

    >>> JoinCosts("nested loops", move_s=1, comp_s=0.5).arrival_s(partner_rows=10.0)
    6.0
    """

    algorithm: str = "symmetric hash"
    move_s: float = 0.0
    comp_s: float = 0.0
    hash_s: float = 0.0
    probe_s: float = 0.0
    handling_s: float = 0.0

    def __post_init__(self) -> None:
        if self.algorithm not in _ROW_AND_PAIR_S:
            raise QueryError(
                f"no join algorithm is called {self.algorithm!r}; "
                + did_you_mean(self.algorithm, _ROW_AND_PAIR_S)
            )
        for each in fields(self)[1:]:
            check_cost(getattr(self, each.name), f"{each.name} of a join")

    def arrival_s(self, partner_rows: Amount) -> Amount:
        """C_l or C_r: the cost of one row when the other side holds so many."""
        return self.row_s[0] + self.pair_s * partner_rows

    @property
    def row_s(self) -> tuple[float, float]:
        """What is paid for a row from the left, and from the right, before it is compared."""
        row_s = _ROW_AND_PAIR_S[self.algorithm](self)[0] + self.handling_s
        return row_s, row_s

    @property
    def pair_s(self) -> float:
        """What is paid for each row that an arriving one is compared with."""
        return _ROW_AND_PAIR_S[self.algorithm](self)[1]

    def busy(self, left: Amount, right: Amount, lefts: Amount, rights: Amount) -> Amount:
        """r_l · C_l + r_r · C_r: seconds of work that a second brings at these rates, when the
        sides hold so many rows."""
        return left * self.arrival_s(rights) + right * self.arrival_s(lefts)

    def work_s(self, lefts: Amount, rights: Amount, pairs: Amount) -> Amount:
        """The seconds that so many rows from either side and so many pairs of them take."""
        return self.row_s[0] * (lefts + rights) + self.pair_s * pairs


_ROW_AND_PAIR_S: Mapping[str, Callable[[JoinCosts], tuple[float, float]]] = {
    "nested loops": lambda costs: (costs.move_s, costs.comp_s),
    "symmetric hash": lambda costs: (costs.move_s + costs.hash_s + costs.probe_s, 0.0),
}


FREE = JoinCosts()
"""A join that takes no time."""


@dataclass(frozen=True, slots=True)
class TupleRates:
    """What a join takes for one arriving row as OM § 3 has it: the tuples a second that it can
    process from its left, 1 / C_L, and from its right."""

    left_tpr: float
    right_tpr: float

    def __post_init__(self) -> None:
        check_tpr("join", self.left_tpr)
        check_tpr("join", self.right_tpr)

    @property
    def row_s(self) -> tuple[float, float]:
        """What is paid for a row from the left, and from the right."""
        return 1 / self.left_tpr, 1 / self.right_tpr

    @property
    def pair_s(self) -> float:
        """A row takes the same however many it meets."""
        return 0.0

    def busy(self, left: Amount, right: Amount, lefts: Amount, rights: Amount) -> Amount:
        """C_L · λ_L + C_R · λ_R: seconds of work that a second brings at these rates."""
        return left / self.left_tpr + right / self.right_tpr

    def work_s(self, lefts: Amount, rights: Amount, pairs: Amount) -> Amount:
        """The seconds that so many rows from either side take."""
        return lefts / self.left_tpr + rights / self.right_tpr


ArrivalCosts = JoinCosts | TupleRates


def check_tpr(what: str, tpr: float) -> None:
    """A processing rate is finite and above 0."""
    if not (math.isfinite(tpr) and tpr > 0):
        raise QueryMeshError(f"a {what} processes more than 0 tuples a second, not {tpr}")


def cost_at(what: str, tpr: float) -> float:
    """The seconds that a row takes of an operator that processes so many in a second."""
    check_tpr(what, tpr)
    return 1 / tpr


def tpr_at(cost_s: float) -> float:
    """OM's tuple processing rate of an operator of which a row takes so long."""
    return 1 / cost_s if cost_s else math.inf


def projection_rate(rate: float, cost_s: float) -> float:
    """§ 3.1: what a projection gives out.

    >>> projection_rate(500, 0.001), projection_rate(500, 0.01)
    (500, 100.0)
    """
    check_cost(cost_s, "a projection")
    return min(rate, 1 / cost_s) if cost_s else rate


def selection_rate(rate: float, selectivity: float, cost_s: float) -> float:
    """§ 3.2: what a selection gives out.

    >>> selection_rate(500, 0.1, 0.02)
    5.0
    """
    check_cost(cost_s, "a selection")
    check_selectivity(selectivity, "a selection")
    return selectivity * projection_rate(rate, cost_s)


def join_rate(
    left: float,
    right: float,
    selectivity: float,
    at_s: float,
    costs: ArrivalCosts,
    windows_s: tuple[float, float] = (math.inf, math.inf),
) -> float:
    """Eq. 2, with the costs of Table 3 as they are at time t.

    A window holds what its length brings, so that t becomes the smaller of t and the window; of two
    different windows the mean, since half of the results come from arrivals on either side.

    >>> join_rate(50, 500, 0.002, at_s=1, costs=JoinCosts(hash_s=0.001))    # keeps pace
    50.0
    >>> join_rate(50, 500, 0.002, at_s=1, costs=JoinCosts(hash_s=0.004))    # works 2.2 s a second
    22.727272727272727
    """
    check_selectivity(selectivity, "a join")
    held_left_s, held_right_s = (min(at_s, window_s) for window_s in windows_s)
    work = costs.busy(left, right, left * held_left_s, right * held_right_s)
    held_s = (held_left_s + held_right_s) / 2
    return selectivity * left * right * held_s / max(1.0, work)


def product_rate(
    left: float,
    right: float,
    at_s: float,
    costs: ArrivalCosts,
    windows_s: tuple[float, float] = (math.inf, math.inf),
) -> float:
    """§ 3.3: a Cartesian product is a join of selectivity 1."""
    return join_rate(left, right, 1.0, at_s, costs, windows_s)
