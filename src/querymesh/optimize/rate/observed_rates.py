"""What rounds tell of a join's streams, as a query for rate-based optimization (RBO Tables 2 to 5).

Everything is a decayed mean over the last rounds (`stats.round_estimates`):

- the rate of a stream is tuples a second of the streams' own time, not of the clock: a backlog that
  is worked off in a hurry has the rates it had when it came;
- the selection on a stream is what its own conditions pass, and costs what they and the storing of
  a tuple take. Both come before anything else, whatever the plan, since a state holds only what can
  be in a result;
- the selectivity of a join predicate is found / (asked · stored), over both directions. Where
  nothing was found, half a match is thought to have been;
- a probe takes asked · probe_s + found · move_s, fitted over all pairs of relations with neither
  below zero: a row that is found is moved to the next probe;
- a static table is a stream that ends at once, and is kept for ever.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from querymesh.cost.plan_tree import Source
from querymesh.cost.rates import JoinCosts
from querymesh.optimize.planning.planner import PairStats, Round
from querymesh.optimize.rate.stream_query import (
    JoinPredicate,
    RateQuery,
    Selection,
    with_assumed_rates,
)
from querymesh.query.join import JoinQuery
from querymesh.query.model import Probe
from querymesh.stats.round_estimates import RoundEstimates

LEAST_RATE = 1e-6
"""Rows a second of a stream that has fallen silent."""

AT_ONCE_S = 1e-3
"""By then all rows of a static table are there."""

Pair = tuple[str, str]


@dataclass
class RateStatistics:
    """Decayed means of all that rounds show of a join. `sizes`: the rows of streams that end."""

    join: JoinQuery
    sizes: Mapping[str, int] = field(default_factory=dict)
    rates: RoundEstimates = field(default_factory=lambda: RoundEstimates("arrival rate"))
    passing: RoundEstimates = field(default_factory=lambda: RoundEstimates("selectivity"))
    own_s: RoundEstimates = field(default_factory=lambda: RoundEstimates("cost of conditions"))
    storing_s: RoundEstimates = field(default_factory=lambda: RoundEstimates("cost of storing"))
    matching: RoundEstimates = field(default_factory=lambda: RoundEstimates("join selectivity"))
    costs: RoundEstimates = field(default_factory=lambda: RoundEstimates("cost of probing"))
    table_rows: dict[str, float] = field(default_factory=dict)
    rounds: int = 0

    def __post_init__(self) -> None:
        self.pairs = {_named(*pair): pair for pair in linked_pairs(self.join)}
        self.groups = _groups(self.join)
        self._statics = {relation.alias for relation in self.join.statics}

    def observe(self, shown: Round) -> None:
        """Move all means by what a round has shown."""
        self.rounds += 1
        for alias in self.join.aliases:
            arrived = shown.arrived.get(alias, 0)
            if shown.seconds > 0:
                self.rates.observe(alias, arrived / shown.seconds)
            if arrived:
                self.passing.observe(alias, min(1.0, shown.passed.get(alias, 0) / arrived))
                self.own_s.observe(alias, shown.own_seconds.get(alias, 0.0) / arrived)
        if stored := sum(shown.passed.values()):
            self.storing_s.observe("a tuple", shown.storing_seconds / stored)
        for name, pair in self.pairs.items():
            self.matching.observe(name, _selectivity(shown.met, pair))
        for (_, relation), met in shown.met.items():
            if relation in self._statics:
                self.table_rows[relation] = met.stored
        if (fitted := _fitted([*shown.met.values()])) is not None:
            for name, cost_s in zip(("probe", "move"), fitted, strict=True):
                self.costs.observe(name, cost_s)

    @property
    def unknown(self) -> list[str]:
        """The pairs of relations of which no round has shown how often they match."""
        return [name for name in self.pairs if self.matching.get(name) is None]

    def query(self, stores_trees: bool = False) -> tuple[RateQuery, list[str]]:
        """The query as the optimizer sees it, and what was assumed because nobody knows.

        `stores_trees`: whether the rows that joins hand on are stored too, as Spark's own joins do.
        """
        streams, notes = with_assumed_rates([*self._sources()])
        notes = (*notes, *self.rates.assumptions)
        known = [s for name in self.pairs if (s := self.matching.get(name)) is not None]
        assumed = math.exp(float(np.mean(np.log(known)))) if known else 1.0
        predicates, said = [], []
        for name, (left, right) in self.pairs.items():
            selectivity = self.matching.get(name)
            if selectivity is None:
                why = "the geometric mean of the known ones" if known else "since none is known"
                said.append(
                    f"how often {name} match is not known: assumed {assumed:.3g} of the pairs, "
                    f"{why}"
                )
                selectivity = assumed
            predicates.append(
                JoinPredicate(left, right, min(1.0, selectivity), group=self.groups.get(name))
            )
        storing_s = self.storing_s.get("a tuple", 0.0)
        steps = tuple(
            Selection(
                alias,
                passes := self.passing.get(alias, 1.0),
                self.own_s.get(alias, 0.0) + (0.0 if stores_trees else passes * storing_s),
                f"σ{alias}",
            )
            for alias in self.join.aliases
        )
        costs = JoinCosts(
            move_s=self.costs.get("move", 0.0),
            hash_s=storing_s if stores_trees else 0.0,
            probe_s=self.costs.get("probe", 0.0),
        )
        return RateQuery(streams, tuple(predicates), steps, costs), [*notes, *said]

    def _sources(self) -> Iterator[Source]:
        for stream in self.join.streams:
            rate = self.rates.get(stream.alias)
            rate = None if rate is None else max(rate, LEAST_RATE)
            window_s = math.inf
            if stream.window is not None and stream.window.kind == "range":
                window_s = stream.window.size / 1e6
            elif stream.window is not None and rate is not None:
                window_s = stream.window.size / rate
            size = float(self.sizes.get(stream.alias, math.inf))
            yield Source(stream.alias, rate, max(size, 1.0), window_s)
        for relation in self.join.statics:
            rows = max(1.0, self.table_rows.get(relation.alias, 1.0))
            yield Source(relation.alias, rows / AT_ONCE_S, rows)


def linked_pairs(join: JoinQuery) -> list[Pair]:
    """The relations that a condition joins: those that a view probes by its source alone, and what
    a static table leads to."""
    statics = {relation.alias for relation in join.statics}
    found: dict[frozenset[str], Pair] = {}
    for alias, view in join.views.items():
        for operator in view.operators:
            if isinstance(operator, Probe):
                (parent,) = operator.links - {alias} or {alias}
                if parent == alias or parent in statics:
                    pair = parent, operator.relation
                    found.setdefault(frozenset(pair), pair)
    return [*found.values()]


def _groups(join: JoinQuery) -> dict[str, str]:
    """By pair, the key class that three relations or more share: its predicates imply each
    other."""
    found: dict[str, str] = {}
    for each in join.classes:
        if len(each.members) > 2:
            for one, other in combinations(each.members, 2):
                for name in (_named(one, other), _named(other, one)):
                    found.setdefault(name, each.name)
    return found


def _named(one: str, other: str) -> str:
    return f"{one} ⋈ {other}"


def _selectivity(met: Mapping[Pair, PairStats], pair: Pair) -> float | None:
    both = [met[key] for key in (pair, pair[::-1]) if key in met]
    pairs = sum(each.asked * each.stored for each in both)
    if pairs <= 0:
        return None
    found = sum(each.found for each in both)
    return min(1.0, max(found, 0.5) / pairs)


def _fitted(met: list[PairStats]) -> tuple[float, float] | None:
    """The least squares of seconds = asked · probe_s + found · move_s, neither below 0.

    No probe is free: where the fit says so, asking takes what a row that is found takes.
    """
    timed = [each for each in met if each.asked > 0 and each.seconds > 0]
    if not timed:
        return None
    asked, found, seconds = (
        np.array([getattr(each, name) for each in timed], np.float64)
        for name in ("asked", "found", "seconds")
    )
    both = np.stack([asked, found], axis=1)
    if np.linalg.matrix_rank(both) == 2:
        probe_s, move_s = np.linalg.lstsq(both, seconds, rcond=None)[0]
        if probe_s > 0 and move_s >= 0:
            return float(probe_s), float(move_s)
        if probe_s <= 0:
            rows = asked + found
            return (float(rows @ seconds / (rows @ rows)),) * 2
    return float(asked @ seconds / (asked @ asked)), 0.0
