"""Planners of a join that runs: what a round has shown, and the order they choose for the next.

A round is a micro-batch (OM § 3.1). Policies "rate" and "chart" have a planner each; the driver
tells it every round, and hands the orders it names to the tasks::

    tasks of round r ──> Round ──> Planner.observe ──> orders ──> tasks of a later round

An order is the relations that the tuples of one stream probe, first to last. Which conditions run
in between follows from it: each as soon as all it reads is there. A stream's own conditions are
ordered apart (`own_order.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from querymesh.arrays import Ints

Orders = Mapping[str, tuple[str, ...]]
"""By the stream that a tuple arrives on, the relations it probes."""


class PairStats(NamedTuple):
    """What tuples of one stream met in another relation's state: rows that asked, rows they found
    in the window by their links to the source alone, rows that were stored, and the time."""

    asked: int
    found: int
    stored: float
    seconds: float


class ConditionStats(NamedTuple):
    """What one of a stream's own conditions did with tuples that were profiled: those it was asked
    about, by itself or behind what it must come after, those that passed, and seconds for each."""

    asked: float
    passed: float
    cost_s: float


@dataclass(frozen=True)
class Waiting:
    """What waited at the source of a stream when a micro-batch began, OM's input queue (§ 1.2).

    `taken` are the rows that the batch took, `left` those that it left behind, None where the
    source does not tell. `arriving` and `processed` are rows a second, by the clock; if more arrive
    than are processed, the queue grows. `told` is what the source says beside, in its own words.
    """

    batch: int
    taken: int
    left: int | None
    arriving: float
    processed: float
    told: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The queue when the batch began; at least so many, if `left` is not told."""
        return self.taken + (self.left or 0)


@dataclass(frozen=True)
class Round:
    """What one micro-batch has shown, over all shards.

    `seconds` is the time of the streams that it covers: how much later its newest tuples are than
    those of the round before. `busy_seconds` is what its tasks took. `arrived` are tuples by
    stream, `passed` those that its own conditions let through, `own_seconds` the time these took,
    and `storing_seconds` what reading and writing states took.
    `met` is by (source, relation), from what was profiled and from probes that came first. `stored`
    are the rows of each state after the round. `keys` has a sample of the codes of join attributes,
    by stream and key class, if the planner `wants_keys`. `conditions` is by stream and operator, of
    its own conditions.
    """

    number: int
    seconds: float
    busy_seconds: float
    arrived: Mapping[str, int]
    passed: Mapping[str, int]
    own_seconds: Mapping[str, float]
    met: Mapping[tuple[str, str], PairStats]
    stored: Mapping[str, int]
    results: int = 0
    keys: Mapping[tuple[str, int], Ints] = field(default_factory=dict)
    storing_seconds: float = 0.0
    conditions: Mapping[tuple[str, int], ConditionStats] = field(default_factory=dict)


class Decision(NamedTuple):
    """The orders for the next round, and why these."""

    orders: Orders
    reason: str


class Planner(Protocol):
    """Chooses the orders of a running join's tuples, round by round. Used from one thread."""

    wants_keys: bool

    def observe(self, shown: Round) -> Decision | None:
        """Take in a round; the orders from now on, or None while they stay as they are."""

    def explain(self, html: str | os.PathLike[str] | None = None) -> str:
        """What is known, what was chosen and when, for people; `html` is a file for a page of it,
        where there is one."""
