"""Tree induction: top-down, by information gain, on weighted tuples (QM § 4.4).

Attributes come as bins (`attributes.py`), so a split is judged from one histogram of bin by label
and costs the same however many thresholds it has. Growth is best-first: the leaf whose split gains
most is split next, until `max_leaves`. A node stops when its tuples share one label, when no split
is left that gains, keeps `min_weight` on both sides and is unlikely to be chance; the majority of
weight then labels the leaf.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from querymesh.classify.attributes import Attribute, Codes
from querymesh.classify.gain import chance_of_gain, information_gain
from querymesh.classify.tree import Leaf, Member, Missing, Split, Test, Threshold, Tree

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Growth:
    """When to stop. `chance` is the largest probability of a spurious split that is accepted."""

    max_leaves: int = 16
    min_weight: float = 1.0
    chance: float = 1.0


@dataclass(frozen=True)
class _Candidate:
    gain: float
    attribute: Attribute
    codes: Codes
    yes_bins: npt.NDArray[np.bool_]
    weight: Floats


@dataclass(order=True)
class _Open:
    """A leaf that could be split, in the order of what splitting it gains."""

    priority: float
    number: int
    rows: Any = field(compare=False)
    candidate: _Candidate = field(compare=False)


@dataclass
class _Node:
    label: int
    test: Test | None = None
    yes: _Node | None = None
    no: _Node | None = None


def induce(
    attributes: list[Attribute],
    codes: list[Codes],
    labels: npt.NDArray[np.int64],
    weights: Floats,
    growth: Growth,
) -> Tree:
    """The tree that tells the labels from the attributes; `codes[a]` are attribute a's bins."""
    kinds = int(labels.max()) + 1 if len(labels) else 1
    everything = np.arange(len(labels))
    root = _Node(_majority(labels, weights, kinds))
    waiting: list[_Open] = []
    nodes = {0: root}

    def consider(number: int, rows: npt.NDArray[np.int64]) -> None:
        candidate = _best_split(attributes, codes, labels, weights, kinds, rows, growth)
        if candidate is not None:
            heapq.heappush(waiting, _Open(-candidate.gain, number, rows, candidate))

    consider(0, everything)
    leaf_count = 1
    while waiting and leaf_count < growth.max_leaves:
        best = heapq.heappop(waiting)
        node = nodes[best.number]
        chosen = best.candidate
        yes = chosen.yes_bins[chosen.codes[best.rows]]
        node.test = _test(chosen)
        for side, rows in (("yes", best.rows[yes]), ("no", best.rows[~yes])):
            child = _Node(_majority(labels[rows], weights[rows], kinds))
            setattr(node, side, child)
            number = len(nodes)
            nodes[number] = child
            consider(number, rows)
        leaf_count += 1
    return _freeze(root)


def _freeze(node: _Node) -> Tree:
    if node.test is None or node.yes is None or node.no is None:
        return Leaf(node.label)
    return Split(node.test, _freeze(node.yes), _freeze(node.no))


def _majority(labels: npt.NDArray[np.int64], weights: Floats, kinds: int) -> int:
    return int(_weigh(labels, weights, kinds).argmax())


def _weigh(labels: npt.NDArray[np.int64], weights: Floats, kinds: int) -> Floats:
    return np.bincount(labels, weights, minlength=kinds).astype(np.float64)


def _best_split(
    attributes: list[Attribute],
    codes: list[Codes],
    labels: npt.NDArray[np.int64],
    weights: Floats,
    kinds: int,
    rows: npt.NDArray[np.int64],
    growth: Growth,
) -> _Candidate | None:
    here, weight = labels[rows], weights[rows]
    present = int(np.count_nonzero(_weigh(here, weight, kinds)))
    if present < 2:
        return None
    best: _Candidate | None = None
    trials = 0
    for attribute, column in zip(attributes, codes, strict=True):
        cells = column[rows] * kinds + here
        size = attribute.bins * kinds
        counts = _weigh(cells, weight, size).reshape(attribute.bins, kinds)
        for order in _orders(attribute, counts):
            gains, position = _scan(counts, order, growth.min_weight)
            trials += len(order)
            if position >= 0 and gains > (best.gain if best else 1e-9):
                yes_bins = np.zeros(attribute.bins, dtype=bool)
                yes_bins[order[: position + 1]] = True
                best = _Candidate(
                    gains, attribute, column, *_named_side(attribute, yes_bins, counts)
                )
    if best is None or chance_of_gain(best.gain, present - 1, trials) > growth.chance:
        return None
    return best


def _orders(attribute: Attribute, counts: Floats) -> list[npt.NDArray[np.int64]]:
    """The orders of bins whose prefixes are the candidate "yes" sides.

    Numeric bins keep their order, with NULL tried at either end. Categories are ordered along the
    first principal component of their label distributions, for two labels the exact optimum.
    """
    if attribute.numeric:
        ranges = np.arange(1, attribute.bins)
        if not counts[0].any():
            return [ranges]
        return [np.concatenate(([0], ranges)), np.concatenate((ranges, [0]))]
    filled = np.flatnonzero(counts.sum(axis=1) > 0)
    weight = counts[filled].sum(axis=1)
    shares = counts[filled] / weight[:, None]
    centred = shares - np.average(shares, axis=0, weights=weight)
    _, vectors = np.linalg.eigh((centred * weight[:, None]).T @ centred)
    along = centred @ vectors[:, -1]
    return [filled[np.argsort(along, kind="stable")]]


def _scan(counts: Floats, order: npt.NDArray[np.int64], min_weight: float) -> tuple[float, int]:
    """The best prefix of the order: its gain, and its last position (-1 if none is allowed)."""
    if len(order) < 2:
        return 0.0, -1
    left = np.cumsum(counts[order], axis=0)[:-1]
    right = counts[order].sum(axis=0) - left
    gains = information_gain(left, right)
    allowed = (left.sum(axis=1) >= min_weight) & (right.sum(axis=1) >= min_weight)
    gains = np.where(allowed, gains, -1.0)
    position = int(gains.argmax())
    return (float(gains[position]), position) if gains[position] > 0 else (0.0, -1)


def _named_side(
    attribute: Attribute, yes_bins: npt.NDArray[np.bool_], counts: Floats
) -> tuple[npt.NDArray[np.bool_], Floats]:
    """For categories, let "yes" be the side to list by value: the other side takes the rest.

    The rest are NULL and values without a bin where the sample had such, else the lighter side is
    listed, so that a value never seen goes where most tuples go.
    """
    weight = counts.sum(axis=1)
    if not attribute.numeric:
        rest_is_yes = (
            yes_bins[0] if weight[0] > 0 else weight[yes_bins].sum() > weight[~yes_bins].sum()
        )
        if rest_is_yes:
            yes_bins = ~yes_bins
    return yes_bins, weight


def _test(chosen: _Candidate) -> Test:
    """The chosen bins as a test; a NULL that the sample never had goes with the heavier side."""
    attribute, yes_bins, weight = chosen.attribute, chosen.yes_bins, chosen.weight
    if attribute.edges is None:
        listed = zip(attribute.values, yes_bins[1:] & (weight[1:] > 0), strict=True)
        return Member(attribute.name, tuple(value for value, is_in in listed if is_in))
    if not yes_bins[1:].any():
        return Missing(attribute.name)
    last = int(np.flatnonzero(yes_bins[1:]).max())
    heavier_yes = weight[yes_bins].sum() >= weight[~yes_bins].sum()
    null = bool(yes_bins[0]) if weight[0] > 0 else bool(heavier_yes)
    return Threshold(attribute.name, float(attribute.edges[last]), null)
