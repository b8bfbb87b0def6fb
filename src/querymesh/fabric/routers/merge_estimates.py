"""The estimates of several shards as one: means weighted by the tuples each shard has seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from querymesh.arrays import Floats
from querymesh.classify.partitions import Attributes, Partitions
from querymesh.fabric.routers.estimates import Estimates, Pair
from querymesh.fabric.routers.visit_context import ByContext, merge_contexts

Parts = Sequence[tuple[Estimates, Partitions]]
"""The estimates of each shard, and the partitions that its columns of S go by."""


def merge_estimates(memory: float, parts: Parts, partitions: Partitions) -> Estimates:
    """The estimates of all parts together; columns of S go by `partitions`.

    Where shards have different classifier attributes for an operator, the one that most of its
    tuples were routed by is taken.
    """
    whole = Estimates(memory)
    for index in sorted({k for part, _ in parts for k in part.seen}):
        weights = np.array([part.seen.get(index, 0) for part, _ in parts], np.float64)
        total = float(weights.sum())
        if total == 0:
            continue
        share = weights / total
        whole.seen[index] = int(total)
        whole.overall[index] = float(share @ [part.selectivity(index) for part, _ in parts])
        whole.cost_us[index] = float(share @ [part.cost(index) for part, _ in parts])
        sized = [part.sizes[index] for part, _ in parts if index in part.sizes]
        if sized:
            whole.sizes[index] = sum(sized) // len(sized)
        contexts = [part.by_context[index] for part, _ in parts if index in part.by_context]
        if contexts:
            whole.by_context[index] = merge_contexts(contexts)
        pair = _merge_pairs(index, parts, weights, partitions)
        if pair is not None:
            whole.pairs[index] = pair
    return whole


def _merge_pairs(index: int, parts: Parts, weights: Floats, partitions: Partitions) -> Pair | None:
    """The pair of an operator that shards have voted for; None if most tuples went by none."""
    settled = [_settled_pair(part, index) for part, _ in parts]
    votes: dict[tuple[Attributes, int] | None, float] = {}
    for pair, weight in zip(settled, weights, strict=True):
        choice = None if pair is None else (pair.attributes, pair.count)
        votes[choice] = votes.get(choice, 0.0) + weight
    winner = max(votes, key=lambda choice: votes[choice])
    if winner is None:
        return None
    attributes, count = winner
    agreeing = [
        (pair, own, weight)
        for pair, (_, own), weight in zip(settled, parts, weights, strict=True)
        if pair is not None and (pair.attributes, pair.count) == winner
    ]
    total = sum(weight for *_, weight in agreeing)
    column = sum(
        partitions.moved(own, attributes, pair.selectivity) * (weight / total)
        for pair, own, weight in agreeing
    )
    gain = sum(pair.gain * weight for pair, _, weight in agreeing) / total
    contexts = [_moved_contexts(pair, own, partitions) for pair, own, _ in agreeing]
    return Pair(
        attributes,
        count,
        np.asarray(column, np.float64),
        float(gain),
        by_context=merge_contexts(contexts),
    )


def _settled_pair(part: Estimates, index: int) -> Pair | None:
    """A shard's pair for an operator, unless it is still on trial."""
    pair = part.pairs.get(index)
    return None if pair is None or pair.on_trial else pair


def _moved_contexts(pair: Pair, own: Partitions, partitions: Partitions) -> ByContext[Floats]:
    """A shard's columns by visit context, translated to the partitions of all shards."""
    contexts = ByContext(pair.by_context.seen, pair.by_context.numbers)
    contexts.change(lambda column: partitions.moved(own, pair.attributes, column))
    return contexts
