"""SBR, Content-Learns and Content-Knows on one stream: routing calls, and time (CBR § 6.2).

All three run on the fabric. Calls are counted with small chunks, so that decisions are nearly those
of an Eddy that decides tuple by tuple; times are taken with larger ones, since each ruster has a
fixed price, and in processor time.

The paper's SBR draws an operator with a chance inverse to its selectivity, as TelegraphCQ does. An
Eddy that always goes to the least selectivity is a better rival; both are counted and timed. A
lottery spreads a chunk over all subsets of operators, which is slow; it has nothing to learn that a
few hundred tuples would not tell, so its calls are counted on the stream's first part.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.router import Router
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.routers.content import ContentRouter
from querymesh.fabric.routers.content_oracle import OracleRouter
from querymesh.fabric.routers.eddy import EddyRouter
from querymesh.fabric.routers.routing import PAPER, Routing
from querymesh.query.model import BoundQuery
from querymesh_lab.bench.measure import Timing, interleave
from querymesh_lab.papers.cbr.stream_star import ATTRIBUTES, CLASSIFIER, StreamStar, best_orders

FRESH = 1000
"""Added to the seed of what is drawn: smaller ones were looked at while settings were chosen."""

CHUNK = 250
"""Tuples decided on the same estimates where calls are counted."""

TIME_CHUNK = 1000
"""Tuples of a chunk where time is taken."""

LOTTERY_ROWS = 5_000
LOTTERY_CHUNK = 1000
LEARNED_AFTER = 20_000
"""From here on Content-Learns is compared with Content-Knows."""

MOST_ABOVE_KNOWS = 5.0
"""How many percent more calls it may then make: our target."""

COUNTING = replace(PAPER, chunk=CHUNK, trial_noise=1.0)
TIMING = replace(PAPER, chunk=TIME_CHUNK, trial_noise=1.0)
"""The paper's settings. It does not say how a trial tells a gain from noise: here one has failed
only if it is worse by a standard error."""

FURTHER = replace(
    COUNTING,
    all_at_first=True,
    tune=True,
    keep_pairs=True,
    evidence=2.0,
    threshold=0.0,
)
"""Beyond the paper: what the rows of `further_settings` say is worth having on."""

SBR, LOTTERY, LEARNS, KNOWS = "SBR", "SBR by lottery", "Content-Learns", "Content-Knows"
OWN = "Content-Learns, settings beyond the paper's"
BETTER = "the better SBR"
"""SBR to the least selectivity, or by lottery."""


@dataclass(frozen=True)
class EddyCase:
    """A query bound to its tables, a stream, and what CBR may look at.

    `orders` are those that Content-Knows is told, by value of the classifier attribute.
    """

    bound: BoundQuery
    batch: pa.RecordBatch
    attributes: Sequence[str]
    tables: Mapping[str, LookupTable]
    orders: Mapping[Any, tuple[int, ...]]
    classifier: str = CLASSIFIER

    def sbr(self, routing: Routing) -> EddyRouter:
        """A router that decides by source alone (SBR)."""
        return EddyRouter(self.bound.operators, routing, seed=routing.seed)

    def learns(self, routing: Routing) -> ContentRouter:
        """A router that decides by content, which it learns."""
        return ContentRouter(self.bound.operators, routing, self.attributes, seed=routing.seed)

    def knows(self) -> OracleRouter:
        """Content-Knows, a chunk of which is as large as the stream: it has nothing to learn."""
        return OracleRouter(self.classifier, self.orders, next(iter(self.orders.values())))

    def run(self, router: Router, first: int = 0, rows: int | None = None) -> Metrics:
        """A stretch of the stream, from its beginning to its end unless told."""
        fabric = Fabric(self.bound, self.tables)
        for _ in fabric.run(self.batch.slice(first, rows), router):
            pass
        return fabric.metrics


def drawing(*numbers: int) -> np.random.Generator:
    """What is drawn by these numbers, and was not seen when settings were chosen."""
    return np.random.default_rng((FRESH, *numbers))


def star_case(star: StreamStar, rows: int, seed: int) -> EddyCase:
    """The case of one stream of Stream-Star."""
    batch, _ = star.source(rows, FRESH + seed)
    dimensions = star.dimensions()
    schemas = {"S": batch.schema, **{name: d.schema for name, d in dimensions.items()}}
    bound = star.query().bind(schemas)
    assert isinstance(bound, BoundQuery)
    tables = make_tables(bound, dimensions)
    return EddyCase(bound, batch, ATTRIBUTES, tables, best_orders(star.selectivity))


@dataclass(frozen=True)
class CountedRun:
    """Routing calls a tuple on one stream, by rival; `late` from LEARNED_AFTER tuples on."""

    calls: Mapping[str, float]
    late: Mapping[str, float]
    learned: Metrics
    """What Content-Learns did."""

    def improvement(self, of: str = LEARNS, over: str = BETTER) -> float:
        """Percent fewer routing calls than SBR."""
        rivals = (SBR, LOTTERY) if over == BETTER else (over,)
        return 100 * (1 - self.calls[of] / min(self.calls[name] for name in rivals))

    def above_knows(self, of: str = LEARNS) -> float:
        """Percent more calls than Content-Knows, once there was time to learn."""
        return 100 * (self.late[of] / self.late[KNOWS] - 1)


def count(case: EddyCase, routing: Routing = COUNTING, beyond: bool = True) -> CountedRun:
    """Count every rival's routing calls on a stream; `beyond`, also with settings of our own."""
    rows = case.batch.num_rows
    split = min(LEARNED_AFTER, rows // 2)
    calls, late = {}, {}
    learns, knows = case.learns(routing), case.knows()
    routers: dict[str, Router] = {SBR: case.sbr(routing), LEARNS: learns}
    if beyond:
        routers[OWN] = case.learns(FURTHER)
    if case.orders:
        routers[KNOWS] = knows
    learned = Metrics()
    for name, router in routers.items():
        early, rest = case.run(router, 0, split), case.run(router, split)
        calls[name] = (early.routing_calls + rest.routing_calls) / rows
        late[name] = rest.routing_calls / (rows - split)
        if name == LEARNS:
            learned.add(early)
            learned.add(rest)
    drawn = replace(routing, choice="lottery", chunk=LOTTERY_CHUNK)
    seen = min(LOTTERY_ROWS, rows)
    calls[LOTTERY] = case.run(case.sbr(drawn), 0, seen).routing_calls / seen
    return CountedRun(calls, late, learned)


def time(
    case: EddyCase, rounds: int, routing: Routing = TIMING
) -> tuple[Timing, dict[str, Metrics]]:
    """Both forms of SBR and Content-Learns, each from nothing learned, by processor time; SBR to
    the least selectivity runs twice."""
    last: dict[str, Metrics] = {}

    def runs(name: str, router: Callable[[Routing], Router], by: Routing) -> Callable[[], int]:
        def go() -> int:
            last[name] = case.run(router(by))
            return last[name].rows_out

        return go

    contenders = {
        SBR: runs(SBR, case.sbr, routing),
        LOTTERY: runs(LOTTERY, case.sbr, replace(routing, choice="lottery")),
        LEARNS: runs(LEARNS, case.learns, routing),
    }
    return interleave(contenders, rounds, clock=process_time), last


def time_gain(timing: Timing, over: str = SBR) -> float:
    """Percent less time of Content-Learns than a form of SBR, by the median of the rounds."""
    return 100 * (1 - timing.ratio(LEARNS, over))


def mean_and_error(values: Sequence[float]) -> dict[str, float | None]:
    """The mean of several streams with half its 95 % confidence interval (Table 2)."""
    return {
        "mean": statistics.fmean(values),
        "half_interval": half_interval(values),
        "streams": len(values),
    }


def half_interval(values: Sequence[float]) -> float | None:
    """Half the 95 % confidence interval of a mean; None of one value alone."""
    if len(values) < 2:
        return None
    error = statistics.stdev(values) / math.sqrt(len(values))
    return STUDENT.get(len(values) - 1, 2.0) * error


STUDENT = {1: 12.7, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26,
           11: 2.20, 14: 2.14, 19: 2.09, 29: 2.05}  # fmt: skip
"""Student's t at 95 %, by degrees of freedom."""
