"""A query scheduled by its charts, OM § 4.5 and its Algorithm 2: a look at them in each round.

    begin    estimates for the round -> regions -> the plan to run
    end      what the round has shown -> estimates for the next; was the plan a best one?

Nothing is optimized while the query runs: a round costs as many look-ups as there are charts. That
`end` costs all plans at what was observed is to count hits, the offline procedure of § 5.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from querymesh.errors import TrainingError
from querymesh.optimize.chart.chart import ChartReader, RegionChoice
from querymesh.optimize.chart.query_charts import ChartedQuery, ChosenPlan
from querymesh.stats.round_estimates import RoundEstimates


class QueryRounds:
    """Algorithm 2: `begin` chooses a round's plan, `end` takes in what the round has shown.

    `moves` counts rounds in which a chart was in another region than before, `switches` those with
    another plan, `hits` those of the `judged` whose plan was a best one for what then was observed.
    With `orders_alone` only the λ-λ chart counts: who runs the query has no use for more.
    """

    def __init__(
        self,
        query: ChartedQuery,
        rates: RoundEstimates,
        selectivities: RoundEstimates,
        orders_alone: bool = False,
    ) -> None:
        self.orders_alone = orders_alone
        self.query = query
        self.rates, self.selectivities = rates, selectivities
        self.rounds = self.moves = self.switches = self.judged = self.hits = self.rebuilt = 0
        self.chosen: ChosenPlan | None = None
        self._readers = {name: ChartReader(chart) for name, chart in query.stream_charts.items()}
        self._joins = ChartReader(query.join_chart) if query.join_chart else None

    def begin(self) -> ChosenPlan:
        """The plan for the next round (lines 1-4)."""
        query = self.query
        rates = {stream: self.rates[stream] for stream in query.shape.streams}
        selectivities = {stream: self.selectivities[stream] for stream in query.selected}
        choices: list[RegionChoice] = []
        of_streams = [0] * len(query.shape.streams)
        for place, stream in enumerate(query.shape.streams):
            if stream in self._readers:
                point = selectivities[stream], rates[stream]
                choices.append(self._readers[stream].choose(point))
                of_streams[place] = choices[-1].plan
        if self.orders_alone:
            choices.clear()
        order = query.orders[0]
        if self._joins:
            choices.append(self._joins.choose(query.input_rates(rates, selectivities)))
            order = query.orders[choices[-1].plan]
        chosen = ChosenPlan(order, tuple(of_streams))
        self.rounds += 1
        self.moves += any(choice.moved for choice in choices)
        self.switches += self.chosen is not None and self._differ(chosen, self.chosen)
        self.chosen = chosen
        return chosen

    def _differ(self, one: ChosenPlan, other: ChosenPlan) -> bool:
        return one.order != other.order if self.orders_alone else one != other

    def end(
        self, rates: Mapping[str, float], selectivities: Mapping[str, float | None] | None = None
    ) -> bool:
        """What the round has shown (lines 5-8): arrival rates, and by stream the selectivity of its
        selections, None where no tuple came. Whether the plan was a hit."""
        if self.chosen is None:
            raise TrainingError("no round is under way: begin one first")
        shown = {}
        for stream in self.query.selected:
            share = (selectivities or {}).get(stream)
            shown[stream] = self.selectivities[stream] if share is None else share
            self.selectivities.observe(stream, share)
        for stream, rate in rates.items():
            self.rates.observe(stream, rate)
        hit = self._judge(rates, shown)
        self.judged += 1
        self.hits += hit
        return hit

    def _judge(self, rates: Mapping[str, float], selectivities: Mapping[str, float]) -> bool:
        hits = [
            reader.judge(self.query.stream_costs(name, selectivities[name], rates[name])[0])
            for name, reader in self._readers.items()
            if not self.orders_alone
        ]
        if self._joins:
            at_joins = np.array([self.query.input_rates(rates, selectivities)])
            hits.append(self._joins.judge(self.query.join_costs(at_joins)[0]))
        return all(hits)

    def joins_changed(self, join_selectivities: Mapping[str, float]) -> None:
        """Join selectivities were estimated anew, between rounds: build the λ-λ chart again."""
        self.query = self.query.with_join_selectivities(join_selectivities)
        self._joins = ChartReader(self.query.join_chart) if self.query.join_chart else None
        self.rebuilt += 1

    def charts_changed(self, query: ChartedQuery) -> None:
        """Go on with other charts of the same query, such as for other ranges of rates."""
        self.query = query
        self._readers = {name: ChartReader(chart) for name, chart in query.stream_charts.items()}
        self._joins = ChartReader(query.join_chart) if query.join_chart else None
        self.rebuilt += 1

    @property
    def fidelity(self) -> float:
        """The share of rounds that were hits, of those that are over."""
        return self.hits / self.judged if self.judged else math.nan

    @property
    def assumptions(self) -> list[str]:
        """What is assumed rather than observed, a line each."""
        return [*self.rates.assumptions, *self.selectivities.assumptions]
