"""The cost of a query mesh, QM § 4.5 eq. 2.

    cost(QM) = Σ_r f_r · (c(r) + c(DT | r)) + (|R| - 1) · OVH

f_r is the share of tuples that reach leaf r, c(r) the time of its route per tuple, c(DT | r) the
time of telling that a tuple belongs there, OVH what one more leaf costs. The paper leaves OVH
abstract; here it is the measured time of making and moving one more ruster, spread over the tuples
of one classification window, because that is how often it is paid. The paper charges all |R|; the
first ruster is in the time of the routes, a single route's as well as a mesh's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WINDOW = 10_000
"""Tuples classified together (W^TC) unless told otherwise: Spark's default for an Arrow batch."""


@dataclass(frozen=True, slots=True)
class Overheads:
    """The two machine constants of eq. 2, as `fabric/profile/calibrate.py` measures them.

    `node_us` is one test of the classifier on one tuple; `ruster_us` is one ruster on its way
    through one operator; `window` is the number of tuples classified together (W^TC).
    """

    node_us: float
    ruster_us: float
    window: int

    def route_us(self, operators: int) -> float:
        """OVH per tuple: one more leaf makes one more ruster a window, at every operator."""
        return self.ruster_us * operators / self.window


@dataclass(frozen=True, slots=True)
class LeafCost:
    """One leaf of the classifier: the share of tuples, and what one of them costs on its route and
    in tests on the way to the leaf."""

    share: float
    route_us: float
    classify_us: float


def mesh_cost_us(leaves: Iterable[LeafCost], operators: int, overheads: Overheads) -> float:
    """Eq. 2, per tuple, in microseconds. A single leaf is a single route: no test, no more leaves.

    >>> free = Overheads(node_us=0.0, ruster_us=0.0, window=1000)
    >>> mesh_cost_us([LeafCost(0.25, 8.0, 0.5), LeafCost(0.75, 4.0, 0.5)], 3, free)
    5.5
    """
    leaves = list(leaves)
    cost = sum(leaf.share * (leaf.route_us + leaf.classify_us) for leaf in leaves)
    return cost + (len(leaves) - 1) * overheads.route_us(operators)
