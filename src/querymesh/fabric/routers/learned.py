"""What the Eddies of a run have learned, put together to be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from querymesh.classify.partitions import Attributes
from querymesh.explained import Explained
from querymesh.fabric.routers.content_record import Event
from querymesh.fabric.routers.eddy import EddyRouter
from querymesh.fabric.routers.estimates import Estimates
from querymesh.fabric.routers.merge_routers import RouterState, merge_states


@dataclass(frozen=True)
class ShardEvent:
    """An event of one shard's learning."""

    shard: str
    event: Event


@dataclass(frozen=True)
class Learned(Explained):
    """A copy of what is known now, of all shards together.

    `operators` are names by index, from 1. `events` are in the order of the tuples that their
    shards had seen; `profiling` are operators under way with the shards that do; `pruned` and
    `left_out` operators and attributes with the reason; `routing` the routing calls so far, by
    operator and by what they went by.
    """

    policy: str
    operators: Mapping[int, str]
    shards: int
    estimates: Estimates
    profiling: Mapping[int, int]
    pruned: Mapping[int, str]
    left_out: Mapping[str, str]
    events: tuple[ShardEvent, ...]
    routing: Mapping[tuple[int, str], int]
    state: RouterState

    @property
    def attributes(self) -> dict[str, Attributes]:
        """The classifier attributes in use, by operator."""
        return {self.operators[k]: pair.attributes for k, pair in self.estimates.pairs.items()}

    @property
    def routing_calls(self) -> dict[str, int]:
        """How many routing calls went by what."""
        calls: dict[str, int] = {}
        for (_, went_by), count in self.routing.items():
            calls[went_by] = calls.get(went_by, 0) + count
        return calls


def learned(
    policy: str,
    operators: Mapping[int, str],
    fresh: EddyRouter,
    states: Mapping[str, RouterState],
    calls: Mapping[tuple[int, str], int],
) -> Learned:
    """What the routers of these shards know; `fresh` is a new one."""
    whole = merge_states(fresh, list(states.values()))
    profiling: dict[int, int] = {}
    pruned: dict[int, str] = {}
    left_out: dict[str, str] = {}
    events: list[ShardEvent] = []
    for shard, state in sorted(states.items()):
        learning = state.get("learning", {})
        for index in learning.get("samples", ()):
            profiling[int(index)] = profiling.get(int(index), 0) + 1
        pruned |= {int(index): reason for index, reason in learning.get("pruned", {}).items()}
        left_out |= learning.get("left_out", {})
        events += [ShardEvent(shard, Event.from_json(each)) for each in learning.get("events", ())]
    return Learned(
        policy,
        dict(operators),
        len(states),
        Estimates.from_json(fresh.routing.memory, whole["estimates"]),
        profiling,
        pruned,
        left_out,
        tuple(sorted(events, key=lambda found: found.event.rows)),
        dict(calls),
        whole,
    )
