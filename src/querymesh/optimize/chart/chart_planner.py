"""Policy "chart": the planner of a running join by OM's charts.

    round r ──> rates, selectivities ──> decayed estimates ──> region of the λ-λ chart ──> order
                                                                   probes of round r + 1 <──┘

The first rounds are only observed: they say how fast operators are, how selective joins are, and
how far the charts must reach. Then the charts are built, and each round is a look-up (Algorithm 2).
The λ-λ chart is built again, between rounds, when

- a join selectivity has turned out to be off by more than the threshold (§ 4.3), or
- the rates have stayed beyond the chart, or all in its lowest partitions, for `patience` rounds:
  the paper takes the least and greatest rate to be known, and a running query does not know them.

The model has one window W, the longest by time. Two streams with the windows v and w meet for v + w
of the 2 · W that the model would have them meet, and the selectivity between them is lowered by
that. A window of n rows is taken to last n / λ seconds at the rates of when the chart was built.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from querymesh.cost.plan_tree import left_deep_shape, shape_text
from querymesh.explained import Drawn
from querymesh.optimize.chart.candidates import Order
from querymesh.optimize.chart.chart import PlanChart
from querymesh.optimize.chart.charting import MODELS, Charting
from querymesh.optimize.chart.observed import Observed
from querymesh.optimize.chart.plan_shape import (
    Pair,
    conditions_of,
    own_filters,
    probe_orders,
    shape_of,
)
from querymesh.optimize.chart.query_charts import ChartedQuery, Range
from querymesh.optimize.chart.scheduling import QueryRounds
from querymesh.optimize.planning.planner import Decision, Orders, Round, Waiting
from querymesh.query.join import JoinQuery
from querymesh.stats.round_estimates import RoundEstimates

KEPT_STEPS = 1000


class PathPoint(NamedTuple):
    """Where the estimates stood before a round, and what was chosen for it.

    `point` is in the λ-λ chart: the rates at which streams come to the joins. `rebuilt` is why the
    chart is another than a step before.
    """

    after_round: int
    point: tuple[float, ...]
    order: Order
    moved: bool
    switched: bool
    rebuilt: str = ""


class ChartPlanner(Drawn):
    """Chooses the orders of a running join by charts; see `querymesh.policies.Charting`.

    `rounds` is None until the charts are built. `steps` is the path of the point, the newest last;
    `buffered` what Spark last told of rows that wait at the streams' sources.
    """

    wants_keys = True

    def __init__(self, join: JoinQuery, charting: Charting | None = None) -> None:
        self.join = join
        self.charting = charting or Charting()
        settings = self.charting
        self.conditions = conditions_of(join)
        self.observed = Observed(self.conditions, settings.threshold, settings.decay)
        self.rates = RoundEstimates("arrival rate", None, settings.rounds, settings.decay)
        self.selected = [alias for alias in join.aliases if own_filters(join, alias)]
        self.selectivities = RoundEstimates(
            "selectivity", dict.fromkeys(self.selected, 1.0), settings.rounds, settings.decay
        )
        self.rounds: QueryRounds | None = None
        self.steps: deque[PathPoint] = deque(maxlen=KEPT_STEPS)
        self.buffered: Mapping[str, Waiting] = {}
        self.outside = self.built = self.seen = 0
        self.results = 0
        self.orders: Orders = {}
        self._highest: dict[str, deque[float]] = {}
        self._misfits = 0
        self._waiting: list[Round] = []
        self.window_s = 0.0
        self._lock = threading.RLock()

    def observe(self, shown: Round) -> Decision | None:
        """Learn from a round; the orders for the next ones, or None if they stay as they are."""
        with self._lock:
            return self._observe(shown)

    def _observe(self, shown: Round) -> Decision | None:
        self.observed.see(shown)
        self.results += shown.results
        # Tuples that move no stream's time belong to the time of a later round.
        self._waiting.append(shown)
        seconds = sum(each.seconds for each in self._waiting)
        if not (math.isfinite(seconds) and seconds > 0):
            return None
        rounds, self._waiting = self._waiting, []
        self.seen += 1
        rates, shares = self._figures(rounds, seconds)
        if self.rounds is None:
            for alias, rate in rates.items():
                self.rates.observe(alias, rate)
            for alias, share in shares.items():
                self.selectivities.observe(alias, share)
        else:
            self.rounds.end(rates, shares)
        changed = self.observed.estimate_anew()
        for alias, rate in rates.items():
            self._highest.setdefault(alias, deque(maxlen=self.charting.rounds)).append(rate)
        if self.seen < self.charting.settle:
            return None
        return self._decide(shown.number, self._up_to_date(changed))

    def _figures(
        self, rounds: list[Round], seconds: float
    ) -> tuple[dict[str, float], dict[str, float | None]]:
        """Arrival rates, and the selectivity of each stream's own conditions."""

        def count(name: str, alias: str) -> int:
            return sum(getattr(each, name).get(alias, 0) for each in rounds)

        arrived = {alias: count("arrived", alias) for alias in self.join.aliases}
        rates = {alias: tuples / seconds for alias, tuples in arrived.items()}
        shares = {
            alias: min(1.0, count("passed", alias) / arrived[alias]) if arrived[alias] else None
            for alias in self.selected
        }
        return rates, shares

    def _up_to_date(self, changed: list[Pair]) -> str:
        """Build the charts if there are none, or none that fit; returns why, "" if they stay."""
        if self.rounds is None:
            self.rounds = QueryRounds(
                self._charted(), self.rates, self.selectivities, orders_alone=True
            )
            self.built += 1
            return "the charts are built"
        if self._misfits >= self.charting.patience:
            self._misfits = 0
            self.rounds.charts_changed(self._charted())
            self.built += 1
            return "the charts are built for the rates of the last rounds"
        if changed:
            self.rounds.joins_changed(self.observed.selectivities(self._spans(self.window_s)))
            self.built += 1
            pairs = ", ".join(" and ".join(pair) for pair in changed)
            return f"the selectivity between {pairs} is estimated anew"
        return ""

    def _decide(self, number: int, rebuilt: str) -> Decision | None:
        rounds = self.rounds
        assert rounds is not None
        moves, before = rounds.moves, rounds.chosen
        chosen = rounds.begin()
        point = self.point
        self._notice_misfit(point)
        switched = before is not None and chosen.order != before.order
        moved = rounds.moves > moves
        self.steps.append(PathPoint(number, point, chosen.order, moved, switched, rebuilt))
        orders = probe_orders(self.join, chosen.order, self.observed.fan_out)
        if orders == self.orders:
            return None
        self.orders = orders
        at = ", ".join(
            f"{alias} {rate:.3g}" for alias, rate in zip(self.join.aliases, point, strict=True)
        )
        why = f"{rebuilt}; " if rebuilt else ""
        reason = f"{why}at {at} tuples a second the chart has {self.plan_text(chosen.order)}"
        return Decision(orders, reason)

    def _notice_misfit(self, point: tuple[float, ...]) -> None:
        chart = self.chart
        if chart is None:
            return
        outside = any(
            value > each.high for value, each in zip(point, chart.dimensions, strict=True)
        )
        lowest = 1 / self.charting.k
        low = all(
            value - each.low < lowest * (each.high - each.low)
            for value, each in zip(point, chart.dimensions, strict=True)
        )
        self.outside += outside
        self._misfits = self._misfits + 1 if outside or (low and any(point)) else 0

    def _charted(self) -> ChartedQuery:
        """The query with all that the rounds so far have shown, to be charted."""
        settings = self.charting
        shape = shape_of(
            self.join, self.conditions, self.observed.selection_tpr, self.observed.pair_tpr
        )
        self.window_s = self._longest_s()
        return ChartedQuery(
            shape,
            self.window_s,
            self._ranges(),
            self.observed.selectivities(self._spans(self.window_s)),
            weights=settings.w,
            k=settings.k,
            adaptive=settings.adaptive,
            most_regions=settings.most_regions,
            model=MODELS[settings.model],
        )

    def _ranges(self) -> dict[str, Range]:
        """From 0 to what was seen, with head room; of a silent stream, as of the others."""
        highest = {alias: max(seen, default=0.0) for alias, seen in self._highest.items()}
        others = max(highest.values(), default=0.0) or 1.0
        room = self.charting.head_room
        return {a: (0.0, room * (highest.get(a) or others)) for a in self.join.aliases}

    def _lasts_s(self, alias: str) -> float:
        """How long a stream's window is; one of rows at the rate of now, endless if none come."""
        window = self.join.window_of(alias)
        assert window is not None
        if window.kind == "range":
            return window.size / 1e6
        rate = self.rates[alias]
        return window.size / rate if rate else math.inf

    def _longest_s(self) -> float:
        lasting = [self._lasts_s(alias) for alias in self.join.aliases]
        return max((each for each in lasting if math.isfinite(each)), default=1.0)

    def _spans(self, window_s: float) -> dict[Pair, float]:
        """The part of 2 · W for which two streams' tuples are in each other's windows."""
        lasting = {alias: min(self._lasts_s(alias), window_s) for alias in self.join.aliases}
        return {
            (one, other): (lasting[one] + lasting[other]) / (2 * window_s)
            for one, other in self.observed.pairs
        }

    @property
    def chart(self) -> PlanChart | None:
        """The λ-λ chart; None before it is built, and where there is one order only."""
        return None if self.rounds is None else self.rounds.query.join_chart

    @property
    def point(self) -> tuple[float, ...]:
        """The rates at which streams are estimated to come to the joins."""
        rates = {alias: self.rates[alias] for alias in self.join.aliases}
        shares = {alias: self.selectivities[alias] for alias in self.selected}
        return tuple(rates[alias] * shares.get(alias, 1.0) for alias in self.join.aliases)

    @staticmethod
    def plan_text(order: Order) -> str:
        """A join order as text.

        >>> ChartPlanner.plan_text(("a", "b", "c"))
        '(a ⋈ b) ⋈ c'
        """
        return shape_text(left_deep_shape(order))

    @property
    def assumptions(self) -> list[str]:
        """What is assumed because no round has shown it, a line each."""
        return [
            *self.observed.assumptions,
            *(
                line
                for estimates in (self.rates, self.selectivities)
                for line in estimates.assumptions
            ),
            *self._charted_without_being_seen(),
        ]

    def _charted_without_being_seen(self) -> Iterator[str]:
        if self.rounds is None:
            return
        for alias in self.rounds.query.stream_charts:
            yield (
                f"processing rate of the projection of {alias}: no step of its own here, assumed "
                "to be the paper's"
            )
        for alias in self.join.aliases:
            if not any(self._highest.get(alias, ())):
                yield f"arrival rates of {alias}: none came yet, charted as far as the others'"

    def explain(self, html: str | os.PathLike[str] | None = None) -> str:
        """The charts, the point and its path, what was counted and assumed, as text; `html` is a
        file for all of it as a page."""
        with self._lock:
            return super().explain(html)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Write the λ-λ chart with the path of the point, as SVG."""
        with self._lock:
            super().draw(path)
