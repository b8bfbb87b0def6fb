"""What a plan costs a traditional optimizer, which RBO §§ 1 and 5.4 compare with.

Every operator pays for each row that it ever gets, and all rows are thought to be there from the
start. When they come does not count, and of a stream without an end every plan costs the same:
infinitely much.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from querymesh.cost.plan_tree import Join, PlanTree, Source


class Handled(NamedTuple):
    """The rows that a plan gives out in the end, their width, and the cost of making them."""

    rows: float
    row_bytes: float
    cost_s: float


def cardinality_cost(tree: PlanTree, byte_s: float = 0.0) -> float:
    """Σ over operators of rows in · cost of a row, § 1's |I| · c_1 + |I| · f_1 · c_2, in seconds.

    A join pays for both inputs, |L| · C_l + |R| · C_r, and by nested loops for each pair once.
    `byte_s` is what reading a byte of an operator's input takes, the page cost of such optimizers;
    it counts only for sources whose row_bytes are known. Joined rows are as wide as both together.
    """
    return handled(tree, byte_s).cost_s


def handled(tree: PlanTree, byte_s: float = 0.0) -> Handled:
    """The rows, their width and the cost of a plan; see `cardinality_cost`."""
    match tree:
        case Source():
            return Handled(tree.size, tree.row_bytes, 0.0)
        case Join(left, right):
            first, second = handled(left, byte_s), handled(right, byte_s)
            pairs = _product(first.rows, second.rows)
            paid_s = _product(pairs, tree.costs.pair_s)
            for side, row_s in zip((first, second), tree.costs.row_s, strict=True):
                paid_s += side.cost_s + _product(side.rows, row_s + side.row_bytes * byte_s)
            row_bytes = first.row_bytes + second.row_bytes
            return Handled(_product(pairs, tree.passes), row_bytes, paid_s)
        case _:
            rows, row_bytes, before_s = handled(tree.child, byte_s)
            paid_s = _product(rows, tree.cost_s + row_bytes * byte_s)
            return Handled(_product(rows, tree.passes), row_bytes, before_s + paid_s)


def expected_total(tree: PlanTree) -> float:
    """How many rows a tree gives out in the end if no window cuts them off."""
    return handled(tree).rows


def _product(*factors: float) -> float:
    """A product where nothing of infinitely much is nothing."""
    return math.prod(factors) if all(factors) else 0.0
