"""What the Eddies of several shards have learned, as what a further one may begin with.

Each shard's router learns from its own tuples and goes on from its own state. One that has none
begins with what all know together: selectivities and costs as means weighted by tuples, classifier
attributes by a vote, ranges that hold everybody's. Samples and trials under way are their shards'
own: the merged state begins with the first operator's turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from querymesh.classify.partitions import Partitions, size_of
from querymesh.errors import QueryMeshError
from querymesh.fabric.routers.content import ContentRouter
from querymesh.fabric.routers.eddy import EddyRouter
from querymesh.fabric.routers.estimates import NO_CONTEXTS, Estimates
from querymesh.fabric.routers.merge_estimates import merge_estimates

RouterState = Mapping[str, Any]
"""What a router's `to_json` gives."""

_TUNED = ("probability", "sample_size", "partition_count")
_WRONG = (KeyError, TypeError, ValueError, IndexError, AttributeError)


def merge_states(fresh: EddyRouter, states: Sequence[RouterState]) -> dict[str, Any]:
    """The state of a router that knows what all of these know; `fresh` is a new router."""
    memory = fresh.routing.memory
    parts = [
        (Estimates.from_json(memory, state["estimates"]), _partitions(state)) for state in states
    ]
    widest = Partitions()
    for _, partitions in parts:
        widest = widest.widened(partitions)
    whole = {**fresh.to_json(), "estimates": merge_estimates(memory, parts, widest).to_json()}
    every = [state["learning"] for state in states if "learning" in state]
    if every:
        left_out: dict[str, str] = {}
        for learning in every:
            left_out |= learning["left_out"]
        tuned = {name: max(each[name] for each in every) for name in _TUNED}
        whole["ranges"] = {name: list(ends) for name, ends in widest.ranges.items()}
        whole["learning"] = {**whole["learning"], **tuned, "left_out": left_out}
    return whole


def beginning(fresh: EddyRouter, states: Sequence[RouterState]) -> dict[str, Any]:
    """The state that a further shard begins with: what all know, seen by a mean shard's tuples."""
    whole = merge_states(fresh, states)
    estimates = whole["estimates"]
    seen = {index: count // len(states) for index, count in estimates["seen"].items()}
    return {**whole, "estimates": {**estimates, "seen": seen}}


def restore(router: EddyRouter, stored: RouterState) -> None:
    """Let a new router go on from a stored state; a `QueryMeshError` says what is wrong with it.

    A router that has refused a state is no longer of use.
    """
    try:
        _check(router, stored)
        router.resume(stored)
    except _WRONG as problem:
        raise QueryMeshError(f"not the state of a router: {problem!r}") from problem


def _partitions(state: RouterState) -> Partitions:
    return Partitions({name: (ends[0], ends[1]) for name, ends in state.get("ranges", {}).items()})


def _check(router: EddyRouter, stored: RouterState) -> None:
    """Refuse a state that is whole as a file and yet would break the router later."""
    estimates = stored["estimates"]
    known = {str(index) for index in router.operators}
    for name in ("overall", "cost_us", "seen", "pairs"):
        if unknown := estimates[name].keys() - known:
            raise ValueError(f"{name} of operators {sorted(unknown)}")
    for name in ("overall", "cost_us"):
        if not all(math.isfinite(value) and value >= 0 for value in estimates[name].values()):
            raise ValueError(f"{name} has a number that cannot be")
    by_context = estimates.get("by_place", {})
    if unknown := by_context.keys() - known:
        raise ValueError(f"contexts of operators {sorted(unknown)}")
    if not all(rows >= 0 for rows in estimates.get("sizes", {}).values()):
        raise ValueError("a state has fewer rows than none")
    for contexts in by_context.values():
        if not all(math.isfinite(value) and value >= 0 for value, _ in contexts["held"].values()):
            raise ValueError("a context has a number that cannot be")
    if not isinstance(router, ContentRouter):
        return
    attributes = set(router.learning.attributes)
    pairs = [*estimates["pairs"].items(), *stored["learning"]["before"].items()]
    for index, pair in pairs:
        names = tuple(pair["attributes"])
        if not names or not attributes.issuperset(names):
            raise ValueError(f"operator {index} goes by {names}")
        by_context = [column for column, _ in pair.get("by_place", NO_CONTEXTS)["held"].values()]
        for column in (pair["selectivity"], *by_context):
            if len(column) != size_of(names, pair["count"]) or not all(map(math.isfinite, column)):
                raise ValueError(f"operator {index} has a column that does not fit")
    for name, (low, high) in stored["ranges"].items():
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"the range of {name}")
    for index in stored["learning"]["samples"]:
        if index not in known:
            raise ValueError(f"a sample of operator {index}")
