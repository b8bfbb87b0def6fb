"""The best index configuration for a number of bits, AMRI § 6, and the bits for each state.

§ 6.1 tries all configurations after EPrune has taken out the attributes that cannot pay. With ten
attributes and twenty bits that is ten million. `best_bits` finds the same optimum by branch and
bound. Where hashes are expensive, it first decides which attributes are indexed at all. Then bits
are decided, attribute by attribute, and a node is a choice of bits for the first ones::

    decided  [ 2 1 0 ]   undecided  [ ? ? ]   R bits are left for them

    cost of a completion x   =   Σ w_p · 2^-(bits of p in x)   +   hashes decided   +   hashes of x

w_p is what requests with undecided part p cost in comparisons after the bits decided. The sum is
convex in x, and the hash of an attribute with x_j <= R bits costs at least h_j · x_j / R. Any
tangent of a convex function lies below it, and over {x >= 0, Σ x <= R} a tangent is least at a
corner: no bits, or all of them for one attribute. That is the bound; `_toward` moves the point of
contact to where the tangent is high, and a node whose bound does not beat the best configuration
known is dropped. Nodes of one depth are worked on together, as rows of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from querymesh.arrays import Array, Floats, Ints
from querymesh.cost.index_cost import Prices, Workload, benefit, dependent_cost, hash_cost

TOLERANCE = 1e-10
"""Costs that differ by this part of themselves, or less, are equal."""

_ROUNDS = 6
"""How often the point of contact of a node's tangent is moved before the node is opened."""

_STEP = 0.7
"""The part of the way to the next point of contact that is gone: a whole step may overshoot."""

_TOGETHER = 256
"""Nodes worked on at once, so that the matrices stay small."""

_WORTH_DECIDING = 0.1
"""An attribute's hash is small if it is below this part of what the bound is off by."""

_OUT_OF_REACH = 1e3
"""What a hash costs that must not be paid, in costs of the best configuration known."""


class Selected(NamedTuple):
    """Bits by attribute, what they cost (eq. 1), and how many nodes or configurations were seen."""

    bits: tuple[int, ...]
    cost: float
    explored: int


def configuration_count(attributes: int, bits: int) -> int:
    """How many configurations use exactly `bits` bits: Σ_k C(N, k) · C(B - 1, k - 1) of § 6.1."""
    most = min(attributes, bits)
    return sum(math.comb(attributes, k) * math.comb(bits - 1, k - 1) for k in range(1, most + 1))


def all_bits(workload: Workload, prices: Prices, attributes: int, bits: int) -> Selected:
    """The best configuration of at most `bits` bits by trying all; of equals that of fewest bits,
    and of these the first in the order of tuples."""
    tried = [
        (dependent_cost(each, workload, prices), each)
        for each in product(range(bits + 1), repeat=attributes)
        if sum(each) <= bits
    ]
    limit = min(cost for cost, _ in tried) * (1 + TOLERANCE)
    best = min((sum(each), each, cost) for cost, each in tried if cost <= limit)
    return Selected(best[1], best[2], len(tried))


def best_bits(workload: Workload, prices: Prices, attributes: int, bits: int) -> Selected:
    """The best configuration of at most `bits` bits, as exact as `all_bits`.

    Attributes whose benefit (eq. 2) is not positive are taken out first. Of configurations that
    cost the same, the one that giving bit by bit leads to stands, where the first of the attributes
    that gain most gets the bit; otherwise the first found. Bits that save nothing are taken back,
    from the last attribute on.
    """
    worth = [
        attribute
        for attribute in range(attributes)
        if benefit(attribute, bits, workload, prices) > 0
    ]
    search = _Search(workload, prices, worth)
    found = [0] * attributes
    for attribute, count in zip(worth, search.best(bits), strict=True):
        found[attribute] = count
    chosen = _without_idle(found, workload, prices)
    return Selected(chosen, dependent_cost(chosen, workload, prices), search.explored)


def _without_idle(bits: list[int], workload: Workload, prices: Prices) -> tuple[int, ...]:
    """Without the bits that save nothing."""
    limit = dependent_cost(bits, workload, prices) * (1 + TOLERANCE)
    for attribute in reversed(range(len(bits))):
        while bits[attribute]:
            bits[attribute] -= 1
            if dependent_cost(bits, workload, prices) > limit:
                bits[attribute] += 1
                break
    return tuple(bits)


class _Depth(NamedTuple):
    """The access patterns as the attributes from one on see them: what is decided is cut off.

    `specified` has a row for each pattern and a column for each undecided attribute, 1 where the
    pattern specifies it. A pattern one deeper comes from two of this depth, one without and one
    with the attribute decided; `without` and `including` are their positions, the last + 1 if
    there is no such pattern.
    """

    specified: Floats
    without: Ints
    including: Ints


class _Nodes(NamedTuple):
    """Nodes of one depth, one a row.

    The bits decided, the bits left, the hashes paid, what the hash of each undecided attribute
    would still cost, the weight of each pattern, the point of contact, and the bound.
    """

    decided: Ints
    left: Ints
    paid_us: Floats
    hash_us: Floats
    weights_us: Floats
    contact: Floats
    bound_us: Floats

    def where(self, rows: Array | slice) -> _Nodes:
        """The nodes at these rows."""
        columns: list[Any] = [each[rows] for each in self]
        return _Nodes(*columns)


class _Incumbent(NamedTuple):
    """The best configuration found so far, and what it costs at most."""

    bits: list[int]
    cost_us: float


def _better(best: _Incumbent, other: _Incumbent) -> _Incumbent:
    """The cheaper of two; the first, if they cost the same."""
    return other if other.cost_us < best.cost_us * (1 - TOLERANCE) else best


class _Search:
    """Branch and bound over some attributes; the others have no bits."""

    def __init__(self, workload: Workload, prices: Prices, attributes: Sequence[int]) -> None:
        self.explored = 0
        self._count = len(attributes)
        self._hash_us = np.array([[hash_cost(each, workload, prices) for each in attributes]])
        scan_us = workload.requests * workload.stored * prices.compare_us
        weight_us: dict[int, float] = {}
        for pattern, frequency in workload.frequencies.items():
            mask = sum(1 << at for at, each in enumerate(attributes) if each in pattern)
            weight_us[mask] = weight_us.get(mask, 0.0) + frequency * scan_us
        masks = sorted(weight_us)
        self._weights_us = np.array([[weight_us[mask] for mask in masks]], np.float64)
        self._depths = list(_depths(masks, self._count))

    def best(self, bits: int) -> list[int]:
        """Bits of the attributes, at most so many in all."""
        if not self._count:
            return []
        root = self._root(bits)
        best = self._bit_by_bit(root)
        # First it is decided which attributes are indexed at all, then how many bits each has.
        waiting = [(0, root)]
        while waiting:
            step, nodes = waiting.pop()
            if step == self._count:
                best = _better(best, self._bit_by_bit(nodes.where(slice(-1, None))))
            limit = best.cost_us * (1 - TOLERANCE)
            nodes = nodes.where(nodes.bound_us < limit)
            nodes = _used_or_not(nodes, step, limit) if step < self._count else self._opened(nodes)
            self.explored += len(nodes.left)
            if step + 1 < 2 * self._count:
                waiting += ((step + 1, portion) for portion in self._promising(nodes, limit))
            elif len(nodes.left):
                costs_us = nodes.paid_us + nodes.weights_us.sum(axis=1)
                least = int(costs_us.argmin())
                best = _better(
                    best, _Incumbent(nodes.decided[least].tolist(), float(costs_us[least]))
                )
        return best.bits

    def _root(self, bits: int) -> _Nodes:
        """The node at which nothing is decided."""
        return _Nodes(
            np.zeros((1, 0), np.int64),
            np.array([bits]),
            np.zeros(1),
            self._hash_us,
            self._weights_us,
            np.full((1, self._count), bits / self._count),
            np.zeros(1),
        )

    def _bit_by_bit(self, node: _Nodes) -> _Incumbent:
        """Each bit to the attribute that gains most by it, and the best of the configurations on
        this way: a first bit may only pay when there is a second one."""
        specified = self._depths[0].specified
        weights_us = self._weights_us[0].copy()
        hash_us = node.hash_us[0].copy()
        chosen = [0] * self._count
        best = _Incumbent(chosen.copy(), float(node.paid_us[0] + weights_us.sum()))
        cost_us = best.cost_us
        for _ in range(int(node.left[0])):
            costs_us = cost_us - weights_us @ specified / 2 + hash_us
            attribute = int(np.argmax(costs_us <= costs_us.min() * (1 + TOLERANCE)))
            cost_us = float(costs_us[attribute])
            hash_us[attribute] = 0
            chosen[attribute] += 1
            weights_us[specified[:, attribute] > 0] /= 2
            best = _better(best, _Incumbent(chosen.copy(), cost_us))
        return best

    def _opened(self, nodes: _Nodes) -> _Nodes:
        """All choices of bits for the next attribute."""
        depth = self._depths[nodes.decided.shape[1]]
        last = nodes.hash_us.shape[1] == 1
        # The last attribute gets all that is left or nothing: what lies between costs more.
        choices = np.minimum(nodes.left, 1) + 1 if last else nodes.left + 1
        parent = np.repeat(np.arange(len(choices)), choices)
        bits = np.arange(len(parent)) - np.repeat(choices.cumsum() - choices, choices)
        if last:
            bits = bits * nodes.left[parent]
        padded = np.pad(nodes.weights_us, ((0, 0), (0, 1)))
        kept, cut = padded[:, depth.without], padded[:, depth.including]
        left = nodes.left[parent] - bits
        contact = nodes.contact[parent, 1:]
        room = contact.sum(axis=1)
        scale = np.divide(left, room, out=np.zeros(len(left)), where=room > 0)
        return _Nodes(
            np.column_stack((nodes.decided[parent], bits)),
            left,
            nodes.paid_us[parent] + np.where(bits > 0, nodes.hash_us[parent, 0], 0),
            nodes.hash_us[parent, 1:],
            kept[parent] + cut[parent] * (0.5**bits)[:, None],
            contact * scale[:, None],
            nodes.bound_us[parent],
        )

    def _promising(self, nodes: _Nodes, limit: float) -> Iterator[_Nodes]:
        """The nodes whose bound is below the limit, in portions, the best of them last."""
        specified = self._depths[nodes.decided.shape[1]].specified
        for _ in range(_ROUNDS):
            bound_us, gains = _tangent(nodes, specified)
            nodes = nodes._replace(bound_us=np.maximum(nodes.bound_us, bound_us))
            below = nodes.bound_us < limit
            nodes = nodes.where(below)
            nodes = nodes._replace(contact=_toward(nodes, gains[below]))
        nodes = nodes.where(np.argsort(-nodes.bound_us, kind="stable"))
        for begin in range(0, len(nodes.left), _TOGETHER):
            yield nodes.where(slice(begin, begin + _TOGETHER))


def _used_or_not(nodes: _Nodes, attribute: int, limit: float) -> _Nodes:
    """Nodes where an attribute is indexed, its hash paid, and such where it is too expensive to be.

    Only where its hash is not small against what the bound is off by.
    """
    price = nodes.hash_us[:, attribute]
    unsure = price > _WORTH_DECIDING * (limit - nodes.bound_us)
    undecided = nodes.where(~unsure)
    used, not_used = nodes.where(unsure), nodes.where(unsure)
    used.paid_us[:] += price[unsure]
    used.hash_us[:, attribute] = 0
    not_used.hash_us[:, attribute] = limit * _OUT_OF_REACH
    not_used.contact[:, attribute] = 0
    columns: list[Any] = [*map(np.concatenate, zip(undecided, used, not_used, strict=True))]
    return _Nodes(*columns)


def _depths(masks: list[int], attributes: int) -> Iterator[_Depth]:
    """What each depth sees of patterns given as bit sets, the attribute decided first lowest."""
    for undecided in range(attributes, 0, -1):
        position = {mask: at for at, mask in enumerate(masks)}
        deeper = sorted({mask >> 1 for mask in masks})
        yield _Depth(
            np.array([[mask >> at & 1 for at in range(undecided)] for mask in masks], np.float64),
            np.array([position.get(mask << 1, len(masks)) for mask in deeper]),
            np.array([position.get(mask << 1 | 1, len(masks)) for mask in deeper]),
        )
        masks = deeper


def _tangent(nodes: _Nodes, specified: Floats) -> tuple[Floats, Floats]:
    """The least value of the tangent at each node's point of contact, and how much one more bit
    would gain there for each attribute."""
    scanned = nodes.weights_us * np.exp2(-nodes.contact @ specified.T)
    per_bit = nodes.hash_us / np.maximum(nodes.left, 1)[:, None]
    gains = math.log(2) * (scanned @ specified) - per_bit
    at_contact = scanned.sum(axis=1) + (per_bit * nodes.contact).sum(axis=1)
    at_zero = at_contact + (gains * nodes.contact).sum(axis=1)
    corner = nodes.left * np.maximum(gains.max(axis=1), 0)
    return nodes.paid_us + at_zero - corner, gains


def _toward(nodes: _Nodes, gains: Floats) -> Floats:
    """A point of contact nearer to where all attributes gain the same: bits go from those that
    gain little to those that gain much, as if each bit halved its own attribute's gain."""
    most = gains.max(axis=1, keepdims=True)
    ratio = np.where(most > 0, gains, 1) / np.where(most > 0, most, 1)
    wanted = nodes.contact + _STEP * np.log2(np.maximum(ratio, 2.0**-60))
    # The nearest point of all those with left bits in sum: all are lowered alike, but not below 0.
    falling = -np.sort(-wanted, axis=1)
    excess = falling.cumsum(axis=1) - nodes.left[:, None]
    lowered = excess / np.arange(1, wanted.shape[1] + 1)
    above = np.maximum((falling > lowered).sum(axis=1), 1)
    return np.maximum(wanted - np.take_along_axis(lowered, above[:, None] - 1, axis=1), 0)


def split_bits(costs: Sequence[Sequence[float]], budget: int) -> tuple[int, ...]:
    """Bits for each state so that their costs add up to the least, § 6's division of bits.

    costs[s][b] is the best cost of state s with b bits. This is the multiple-choice knapsack
    problem: NP-hard in the length of the budget's digits, but easy in the budget itself, which is
    a few dozen bits. Of divisions that cost the same it takes one of fewest bits, and then fewer
    bits for the later states.
    """
    least = [0.0] + [math.inf] * budget
    taken: list[list[int]] = []
    for state in costs:
        choices: list[int] = []
        added: list[float] = []
        for used in range(budget + 1):
            cost, bits = _first_least(
                [least[used - own] + state[own] for own in range(min(used + 1, len(state)))]
            )
            added.append(cost)
            choices.append(bits)
        least = added
        taken.append(choices)
    used = _first_least(least)[1]
    division: list[int] = []
    for choices in reversed(taken):
        division.append(choices[used])
        used -= choices[used]
    return tuple(reversed(division))


def _first_least(costs: Sequence[float]) -> tuple[float, int]:
    """The least cost and the first position with it."""
    least = min(costs)
    limit = least + abs(least) * TOLERANCE
    return least, next(at for at, cost in enumerate(costs) if cost <= limit)
