"""What rounds of a running join have shown, as OM's charts need it (§ 4.3).

    arrival rates and selectivities of selections   decayed means, `RoundEstimates`
    selectivity of the conditions between streams   kept until rounds show that it is off
    processing rates                                tuples that asked, by the second that took

What two streams' tuples found in each other's states is counted for all conditions between them
together. Where the values of join attributes are at hand, histograms tell the conditions apart;
else each is taken to have the same part in it. A histogram of a sample is a guess, and pairs that
were found are a count: once there are enough of them the count decides how selective all are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from querymesh.arrays import Ints
from querymesh.optimize.chart.plan_shape import Condition, Pair
from querymesh.optimize.planning.planner import Round
from querymesh.stats.histogram import Histogram, join_selectivity

ENOUGH_FOUND = 100
"""Pairs that must have been found for their count to overrule histograms: 10 % of error."""

KEPT_VALUES = 4096
"""Values of a join attribute that a histogram is made from."""

ASSUMED_SELECTIVITY = 0.01
"""Of conditions that no round has shown, where nothing else is known either."""

_SURE = 4.0
"""Standard deviations by which a count must be off beside the threshold; the estimate, which was
a count as well, is off by chance too."""


@dataclass
class PairSelectivity:
    """How selective the conditions between two streams are, all together and each.

    `found` of `pairs` are counted with decay. `estimate` is what charts reckon with, None before
    anything is known; `by` says where it is from.
    """

    conditions: tuple[Condition, ...]
    threshold: float
    decay: float
    found: float = 0.0
    pairs: float = 0.0
    asked: float = 0.0
    seconds: float = 0.0
    estimate: float | None = None
    estimated: int = 0
    by: str = "assumed"
    shares: dict[str, float] = field(default_factory=dict)

    def see(self, found: float, pairs: float, asked: float, seconds: float) -> None:
        """Count what a round has shown; nothing is counted if no tuple probed."""
        if asked <= 0:
            return
        kept = math.exp(-self.decay)
        self.found = self.found * kept + found
        self.pairs = self.pairs * kept + pairs
        self.asked = self.asked * kept + asked
        self.seconds = self.seconds * kept + seconds

    @property
    def observed(self) -> float | None:
        """The share of pairs that fit, as counted."""
        return min(1.0, self.found / self.pairs) if self.pairs else None

    @property
    def tpr(self) -> float | None:
        """Tuples a second that can probe."""
        return self.asked / self.seconds if self.asked and self.seconds > 0 else None

    def estimate_anew(self, values: Mapping[tuple[str, int], Ints]) -> bool:
        """Whether the estimate has changed: at first, and when what is counted is off by more than
        the threshold and more than chance (§ 4.3)."""
        observed = self.observed
        if self.estimate is not None and (observed is None or not self._is_off(observed)):
            return False
        histograms = self._histograms(values)
        enough = observed is not None and self.found >= ENOUGH_FOUND
        if histograms and len(histograms) == len(self.conditions) and not enough:
            together, self.by = math.prod(histograms.values()), "histograms"
        elif observed is not None:
            together, self.by = self._above_zero(observed), "counted"
        else:
            return False
        changed = self.estimate is None or self._differs(together, self.estimate)
        self.estimate = together
        self._divide(histograms)
        self.estimated += changed
        return changed

    def _above_zero(self, observed: float) -> float:
        """Where none of some pairs was found, the next may be the first."""
        return max(observed, 1 / (self.pairs + 2))

    def _is_off(self, observed: float) -> bool:
        assert self.estimate is not None
        chance = _SURE * math.sqrt(self.estimate / self.pairs)
        off = abs(observed - self.estimate)
        return off > self.threshold * self.estimate and off > chance

    def _differs(self, one: float, other: float) -> bool:
        return abs(one - other) > self.threshold * other

    def _histograms(self, values: Mapping[tuple[str, int], Ints]) -> dict[str, float]:
        """The selectivity of each equality whose values are at hand on both sides."""
        found = {}
        for each in self.conditions:
            if each.number is None:
                continue
            sides = [values.get((alias, each.number)) for alias in each.pair]
            if all(side is not None and len(side) for side in sides):
                one, other = (Histogram.of(side) for side in sides if side is not None)
                found[each.name] = max(join_selectivity(one, other), 1 / (one.total * other.total))
        return found

    def _divide(self, histograms: Mapping[str, float]) -> None:
        """Divide the estimate among the conditions, so that their product is the whole."""
        assert self.estimate is not None
        known = math.prod(histograms.values())
        rest = (self.estimate / known) ** (1 / len(self.conditions))
        self.shares = {c.name: histograms.get(c.name, 1.0) * rest for c in self.conditions}


class Observed:
    """All that the rounds so far have shown of the joins of a query."""

    def __init__(self, conditions: list[Condition], threshold: float, decay: float) -> None:
        by_pair: dict[Pair, list[Condition]] = {}
        for each in conditions:
            by_pair.setdefault(each.pair, []).append(each)
        self.pairs = {
            pair: PairSelectivity(tuple(some), threshold, decay) for pair, some in by_pair.items()
        }
        self.own_seconds: dict[str, float] = {}
        self.own_asked: dict[str, float] = {}
        self._decay = decay
        self._looked_up: dict[tuple[str, str], tuple[float, float]] = {}
        self._values: dict[tuple[str, int], Ints] = {}

    def see(self, shown: Round) -> None:
        """Count what a round has shown of every pair of streams."""
        kept = math.exp(-self._decay)
        for (source, relation), met in shown.met.items():
            before = self._looked_up.get((source, relation), (0.0, 0.0))
            self._looked_up[source, relation] = (
                before[0] * kept + met.asked,
                before[1] * kept + met.found,
            )
        for (one, other), pair in self.pairs.items():
            ways = [shown.met.get(way) for way in ((one, other), (other, one))]
            some = [met for met in ways if met is not None]
            pair.see(
                sum(met.found for met in some),
                sum(met.asked * met.stored for met in some),
                sum(met.asked for met in some),
                sum(met.seconds for met in some),
            )
        for alias, seconds in shown.own_seconds.items():
            self.own_seconds[alias] = self.own_seconds.get(alias, 0.0) * kept + seconds
            asked = self.own_asked.get(alias, 0.0) * kept
            self.own_asked[alias] = asked + shown.arrived.get(alias, 0)
        for place, values in shown.keys.items():
            before_values = self._values.get(place, np.zeros(0, np.int64))
            self._values[place] = np.concatenate((before_values, values))[-KEPT_VALUES:]

    def estimate_anew(self) -> list[Pair]:
        """Estimate the selectivities that are off; returns the pairs whose estimate has changed."""
        return [pair for pair, each in self.pairs.items() if each.estimate_anew(self._values)]

    @property
    def fan_out(self) -> dict[tuple[str, str], float]:
        """Rows that a tuple of a stream finds in another relation, by (stream, relation)."""
        return {key: found / asked for key, (asked, found) in self._looked_up.items() if asked}

    @property
    def selection_tpr(self) -> dict[str, float]:
        """Tuples a second that a stream's own conditions can be asked of."""
        return {
            alias: self.own_asked[alias] / seconds
            for alias, seconds in self.own_seconds.items()
            if seconds > 0 and self.own_asked[alias] > 0
        }

    @property
    def pair_tpr(self) -> dict[Pair, float]:
        """Tuples a second that can probe, by the pair of streams."""
        return {pair: each.tpr for pair, each in self.pairs.items() if each.tpr is not None}

    @property
    def assumed(self) -> float:
        """The selectivity of what no round has shown: the mean, by ratio, of what others have."""
        known = [each.estimate for each in self.pairs.values() if each.estimate]
        return math.exp(sum(map(math.log, known)) / len(known)) if known else ASSUMED_SELECTIVITY

    def selectivities(self, spans: Mapping[Pair, float]) -> dict[str, float]:
        """By condition, as the cost model takes it; `spans` is the part of the model's one window
        for which two streams' tuples are together in theirs."""
        found: dict[str, float] = {}
        for pair, each in self.pairs.items():
            shares = each.shares
            if each.estimate is None:
                even = self.assumed ** (1 / len(each.conditions))
                shares = {condition.name: even for condition in each.conditions}
            span = spans[pair] ** (1 / len(each.conditions))
            found |= {name: min(1.0, share * span) for name, share in shares.items()}
        return found

    @property
    def assumptions(self) -> list[str]:
        """What is assumed of joins because no round has shown it, a line each."""
        lines = []
        for (one, other), each in self.pairs.items():
            if each.estimate is None:
                lines.append(
                    f"selectivity between {one} and {other}: no tuple has probed for it yet, "
                    f"assumed to be {self.assumed:.3g}"
                )
            if each.tpr is None:
                lines.append(
                    f"processing rate between {one} and {other}: not measured yet, assumed to be "
                    "the paper's"
                )
        return lines
