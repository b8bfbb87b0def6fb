"""Tree induction: top-down, by information gain, on weighted tuples (QM § 4.4).

Attributes come as bins (`attributes.py`), so a split is judged from one histogram of bin by label
and costs the same however many thresholds it has. Growth is best-first: the leaf whose split gains
most is split next, until `max_leaves`. A node stops when its tuples share one label, when no split
is left that gains, keeps `min_weight` on both sides and is unlikely to be chance; the majority of
weight then labels the leaf.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from querymesh.arrays import Bools, Floats, Ints
from querymesh.classify.attributes import Attribute
from querymesh.classify.gain import chance_of_gain, entropy_bits
from querymesh.classify.principal import first_component
from querymesh.classify.tree import Leaf, Member, Missing, Split, Test, Threshold, Tree
from querymesh.deadline import NEVER, Deadline


@dataclass(frozen=True, slots=True)
class Growth:
    """When to stop. `chance` is the largest probability of a spurious split that is accepted."""

    max_leaves: int = 16
    min_weight: float = 1.0
    chance: float = 1.0


@dataclass(frozen=True)
class _Candidate:
    """The best split of a node's tuples: by an attribute, into the bins of a prefix and others."""

    gain: float
    rows: Ints
    attribute: Attribute
    codes: Ints
    prefix: Ints
    counts: Floats

    @cached_property
    def sides(self) -> tuple[Test, Ints, Ints]:
        """The test, the tuples that answer yes, and those that answer no."""
        yes_bins = np.zeros(self.attribute.bins, dtype=bool)
        yes_bins[self.prefix] = True
        weight = self.counts.sum(axis=1)
        yes_bins = _named_side(self.attribute, yes_bins, weight)
        yes = yes_bins[self.codes[self.rows]]
        return _test(self.attribute, yes_bins, weight), self.rows[yes], self.rows[~yes]


@dataclass(frozen=True)
class _Choice:
    """What a node can be: a leaf of the majority's label, or the candidate's split."""

    label: int
    candidate: _Candidate | None


Remembered = dict[tuple[bytes, bytes], _Choice]
"""Choices by (tuples of the node, their labels), for calls that differ in nothing but labels."""


@dataclass
class Node:
    """A node as grown: the tuples that reach it, their majority label, its test if it has one."""

    rows: Ints
    label: int
    test: Test | None = None
    yes: Node | None = None
    no: Node | None = None

    def frozen(self) -> Tree:
        """The tree below this node, without its tuples."""
        if self.test is None or self.yes is None or self.no is None:
            return Leaf(self.label)
        return Split(self.test, self.yes.frozen(), self.no.frozen())


def induce(
    attributes: list[Attribute],
    codes: list[Ints],
    labels: Ints,
    weights: Floats,
    growth: Growth,
    deadline: Deadline = NEVER,
) -> Tree:
    """The tree that tells the labels from the attributes; `codes[a]` are attribute a's bins.

    At the deadline it is what has grown so far.
    """
    return grow(attributes, codes, labels, weights, growth, deadline=deadline).frozen()


def grow(
    attributes: list[Attribute],
    codes: list[Ints],
    labels: Ints,
    weights: Floats,
    growth: Growth,
    remembered: Remembered | None = None,
    deadline: Deadline = NEVER,
) -> Node:
    """As `induce`, with the tuples of each node kept.

    The best test of a node depends on its tuples and their labels alone, so calls that share
    attributes, weights and growth may share `remembered`: a part of the data whose labels are those
    of an earlier call is not judged again.
    """
    remembered = {} if remembered is None else remembered
    columns = _Columns.of(attributes, codes)
    waiting: list[tuple[float, int, Node, _Candidate]] = []
    count = 0

    def node_of(rows: Ints) -> Node:
        nonlocal count
        here = labels[rows]
        key = (rows.tobytes(), here.tobytes())
        choice = remembered.get(key)
        if choice is None:
            choice = _choose(columns, here, weights[rows], rows, growth)
            remembered[key] = choice
        node = Node(rows, choice.label)
        if choice.candidate is not None:
            heapq.heappush(waiting, (-choice.candidate.gain, count, node, choice.candidate))
        count += 1
        return node

    root = node_of(np.arange(len(labels)))
    leaf_count = 1
    while waiting and leaf_count < growth.max_leaves and not deadline.over:
        _, _, node, candidate = heapq.heappop(waiting)
        node.test, yes, no = candidate.sides
        node.yes, node.no = node_of(yes), node_of(no)
        leaf_count += 1
    return root


@dataclass(frozen=True)
class _Columns:
    """The attributes with their bins; those of categories also as one array, to be judged at once:
    a node is small, and one call of numpy for all of them costs about what one for each does."""

    attributes: list[Attribute]
    codes: list[Ints]
    categories: list[int]
    bins: int
    stacked: Ints

    @staticmethod
    def of(attributes: list[Attribute], codes: list[Ints]) -> _Columns:
        chosen = [k for k, attribute in enumerate(attributes) if not attribute.numeric]
        bins = max((attributes[k].bins for k in chosen), default=0)
        stacked = np.array([codes[k] + row * bins for row, k in enumerate(chosen)], np.int64)
        return _Columns(attributes, codes, chosen, bins, stacked)


def _choose(
    columns: _Columns, labels: Ints, weights: Floats, rows: Ints, growth: Growth
) -> _Choice:
    """The majority's label and the best split of these rows, whose labels and weights are given."""
    totals = _weigh(labels, weights, 1)
    label = int(totals.argmax())
    present = np.flatnonzero(totals)
    kinds = len(present)
    if kinds < 2:
        return _Choice(label, None)
    number = np.zeros(len(totals), dtype=np.int64)
    number[present] = np.arange(kinds)
    compact = number[labels]
    whole_bits = float(entropy_bits(totals[present]))
    judged = _judge_categories(columns, compact, kinds, weights, rows, whole_bits, growth)
    best_gain = 1e-9
    best: _Candidate | None = None
    trials = 0
    for k, (attribute, column) in enumerate(zip(columns.attributes, columns.codes, strict=True)):
        if k in judged:
            gain, yes, counts, filled = judged[k]
            trials += filled
            if gain > best_gain:
                best_gain, best = gain, _Candidate(gain, rows, attribute, column, yes, counts)
            continue
        cells = column[rows] * kinds + compact
        counts = _weigh(cells, weights, attribute.bins * kinds).reshape(attribute.bins, kinds)
        there = np.flatnonzero(counts.any(axis=1))
        for order, last in _orders(there):
            gain, position = _scan(counts[order], last, whole_bits, growth.min_weight)
            if gain > best_gain:
                best_gain = gain
                best = _Candidate(gain, rows, attribute, column, order[: position + 1], counts)
        trials += 2 * attribute.bins if there[0] == 0 else attribute.bins - 1
    if best is None or chance_of_gain(best_gain, kinds - 1, trials) > growth.chance:
        return _Choice(label, None)
    return _Choice(label, best)


def _judge_categories(
    columns: _Columns,
    labels: Ints,
    kinds: int,
    weights: Floats,
    rows: Ints,
    whole_bits: float,
    growth: Growth,
) -> dict[int, tuple[float, Ints, Floats, int]]:
    """For each attribute of categories: its best gain, the bins of that split's one side, the label
    counts of its bins, and how many bins are filled.

    Bins are ordered along the first principal component of their label distributions
    (`principal.py`); for two labels, by the share of one, which is the exact optimum. The candidate
    sides are the prefixes of that order; empty bins come last.
    """
    many, bins = len(columns.categories), columns.bins
    if not many:
        return {}
    cells = columns.stacked[:, rows] * kinds + labels
    counts = _weigh(cells.ravel(), np.tile(weights, many), many * bins * kinds)
    counts = counts.reshape(many, bins, kinds)
    weight = counts.sum(axis=2)
    filled = weight > 0
    shares = counts / np.where(filled, weight, 1.0)[:, :, None]
    if kinds == 2:
        along = shares[:, :, 0]
    else:
        everyone = counts[0].sum(axis=0)
        root = np.sqrt(weight)
        scaled = (shares - everyone / everyone.sum()) * root[:, :, None]
        along = first_component(scaled) / np.where(filled, root, 1.0)
    order = np.where(filled, along, np.inf).argsort(axis=1, kind="stable")
    upto = np.take_along_axis(counts, order[:, :, None], axis=1).cumsum(axis=1)
    rest = upto[:, -1:] - upto
    gains = whole_bits - entropy_bits(upto) - entropy_bits(rest)
    light = np.minimum(upto.sum(axis=2), rest.sum(axis=2)) < growth.min_weight
    gains[light] = -1.0
    position = gains.argmax(axis=1)
    return {
        k: (
            float(gains[row, position[row]]),
            order[row, : position[row] + 1],
            counts[row, : columns.attributes[k].bins],
            int(filled[row].sum()),
        )
        for row, k in enumerate(columns.categories)
    }


def _weigh(numbers: Ints, weights: Floats, size: int) -> Floats:
    """The weight of each number, from 0 to `size` at least."""
    return np.bincount(numbers, weights, minlength=size).astype(np.float64, copy=False)


def _orders(filled: Ints) -> list[tuple[Ints, int]]:
    """The orders of a numeric attribute's filled bins whose prefixes are the candidate "yes" sides,
    and how many may be.

    Bins keep their order, with NULL tried at either end; all numbers against NULL is then one
    prefix of the first order, and left out of the second.
    """
    if filled[0] != 0:
        return [(filled, len(filled) - 1)]
    return [(filled, len(filled) - 1), (np.roll(filled, -1), len(filled) - 2)]


def _scan(counts: Floats, last: int, whole_bits: float, min_weight: float) -> tuple[float, int]:
    """The best of the first `last` prefixes of ordered bins: its gain and last position, or -1."""
    if last < 1:
        return 0.0, -1
    upto = counts.cumsum(axis=0)
    sides = np.concatenate((upto[:last], upto[-1] - upto[:last]))
    bits = entropy_bits(sides)
    gains = whole_bits - bits[:last] - bits[last:]
    light = sides.sum(axis=1) < min_weight
    gains[light[:last] | light[last:]] = -1.0
    position = int(gains.argmax())
    return float(gains[position]), position


def _named_side(attribute: Attribute, yes_bins: Bools, weight: Floats) -> Bools:
    """For categories, let "yes" be the side to list by value: the other side takes the rest.

    The rest are NULL and values without a bin where the sample had such, else the lighter side is
    listed, so that a value never seen goes where most tuples go.
    """
    if attribute.numeric:
        return yes_bins
    rest_is_yes = yes_bins[0] if weight[0] > 0 else weight[yes_bins].sum() > weight[~yes_bins].sum()
    return ~yes_bins if rest_is_yes else yes_bins


def _test(attribute: Attribute, yes_bins: Bools, weight: Floats) -> Test:
    """The chosen bins as a test; a NULL that the sample never had goes with the heavier side."""
    if attribute.edges is None:
        listed = zip(attribute.values, yes_bins[1:] & (weight[1:] > 0), strict=True)
        return Member(attribute.name, tuple(value for value, is_in in listed if is_in))
    if not yes_bins[1:].any():
        return Missing(attribute.name)
    last = int(np.flatnonzero(yes_bins[1:]).max())
    heavier_yes = weight[yes_bins].sum() >= weight[~yes_bins].sum()
    null = bool(yes_bins[0]) if weight[0] > 0 else bool(heavier_yes)
    return Threshold(attribute.name, float(attribute.edges[last]), null)
