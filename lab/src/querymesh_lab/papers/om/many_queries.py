"""OM § 5.4: ten queries, half of one stream and half joins, served in FIFO rounds.

Serving is simulated: a round takes as long as its tuples take at § 5.1's processing rates, and one
of the joins is made a hundred times as slow. The paper's REAL is the trace filtered; here it is
averages over 30 s, and the trace as it came beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from querymesh.optimize.chart.fair_rounds import FairRounds, Turn
from querymesh.optimize.chart.query_charts import ChosenPlan
from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.claim import Claim, Result, Sense
from querymesh_lab.papers.om import om_data
from querymesh_lab.papers.om.courses import RateFilter, as_it_came, mean_details, rounds
from querymesh_lab.papers.om.join_figures import SMOOTH_S
from querymesh_lab.papers.om.om_data import (
    HOST,
    HOSTS,
    Conversations,
    IndependentHosts,
    course,
    smoothed,
    stretch,
)
from querymesh_lab.papers.om.round_runs import (
    EQUALITY_TPR,
    JOIN_TPR,
    PROJECTION_TPR,
    SINGLE,
    STREAMS,
    QueryFollower,
    q1,
    q2,
)

COLUMNS = 6
JOINED = ((0, 1, 2), (3, 4, 5), (0, 2, 4), (1, 3, 5), (0, 3, 4))
HEAVY, TIMES = "join 1", 100.0

FITTED = "rates are averages over 30 s, taken after joins on the trace as it came had shown chance"
IN_TURN = (
    "by construction, and not a number of the paper: who is served goes to the back of the queue, "
    "so the row would only differ if the queue were built wrongly"
)


@dataclass(frozen=True)
class ServedQueries:
    """Ten queries after their rounds."""

    followers: dict[str, QueryFollower]
    turns: list[Turn]
    queue: FairRounds

    def fidelity(self, kind: str) -> dict[str, float]:
        """The mean figures of the queries of one kind."""
        mine = [each for name, each in self.followers.items() if name.startswith(kind)]
        return mean_details([each.followed() for each in mine])

    @property
    def longest_turns(self) -> int:
        """The most turns of others that any query waited for."""
        return max(self.queue.served(name).longest_turns for name in self.followers)

    @property
    def longest_over_bound(self) -> float:
        """The longest wait, as a part of what one round of all the others took at most."""
        longest = dict.fromkeys(self.followers, 0.0)
        for turn in self.turns:
            longest[turn.query] = max(longest[turn.query], turn.took_s)
        return max(
            self.queue.served(name).longest_s / (sum(longest.values()) - longest[name])
            for name in self.followers
        )


def queries(bench: Bench, folder: Path, filtered: RateFilter) -> dict[str, QueryFollower]:
    """Q1 with 1 to 5 of 6 columns, each on its own stretch, and Q2 on five triples of them."""
    rates = filtered(om_data.rates(folder))
    found = {}
    for number in range(5):
        arrivals = {SINGLE: stretch(rates, number, rounds(bench))}
        mine = course(arrivals, Conversations(), number)
        query = q1(mine, keeps=(number + 1) / COLUMNS)
        found[f"single {number + 1}"] = QueryFollower(query, mine)
    for number, triple in enumerate(JOINED):
        parts = (stretch(rates, each, rounds(bench)) for each in triple)
        mine = course(dict(zip(STREAMS, parts, strict=True)), IndependentHosts(), number)
        found[f"join {number + 1}"] = QueryFollower(q2(mine), mine)
    return found


def serve(followers: dict[str, QueryFollower]) -> ServedQueries:
    """Serve all rounds of all queries in turn."""
    queue = FairRounds()
    for name in followers:
        queue.register(name)

    def one(name: str) -> float:
        follower = followers[name]
        at = follower.rounds.rounds
        chosen = follower.step()
        return seconds(follower, chosen, at) * (TIMES if name == HEAVY else 1.0)

    count = sum(each.course.rounds for each in followers.values())
    return ServedQueries(followers, list(queue.turns(one, count)), queue)


def seconds(follower: QueryFollower, chosen: ChosenPlan, at: int) -> float:
    """How long a round's tuples take in all operators of the plan."""
    hosts = follower.course.hosts
    if len(chosen.order) == 1:
        arrived = hosts[SINGLE][at]
        projected = (arrived == HOST).sum() if chosen.streams == (0,) else len(arrived)
        return float(len(arrived) / EQUALITY_TPR + projected / PROJECTION_TPR)
    left, right, last = (np.bincount(hosts[stream][at], minlength=HOSTS) for stream in chosen.order)
    arrived = left.sum() + right.sum() + last.sum()
    return float((arrived + left @ right) / JOIN_TPR)


def results(bench: Bench, folder: Path) -> list[Result]:
    """Fidelity by kind, and that nobody starves, which follows from serving in turn."""
    smooth = serve(queries(bench, folder, partial(smoothed, seconds=SMOOTH_S)))
    came = serve(queries(bench, folder, as_it_came))
    single, join = (smooth.fidelity(kind) for kind in ("single", "join"))
    details = {
        "averages over 30 s": {"single": single, "join": join},
        "as it came": {kind: came.fidelity(kind) for kind in ("single", "join")},
        "by query": {
            name: {**each.followed().details(), **vars(smooth.queue.served(name))}
            for name, each in smooth.followers.items()
        },
    }
    served = [smooth.queue.served(name).rounds for name in smooth.followers]
    count = len(served)

    def row(
        claim: str, value: float, paper: float | None, unit: str = "%", neutral: float = 50.0
    ) -> Result:
        asked = Claim("om", "5.4", claim, paper, unit, neutral=neutral)
        return Result(asked, value, None, "", details, fitted=FITTED)

    def in_turn(claim: str, value: float, bound: float, unit: str, sense: Sense) -> Result:
        asked = Claim("om", "5.4", f"{claim}, by construction", bound, unit, sense, whose="project")
        return Result(asked, value, None, IN_TURN, details)

    return [
        row("ten queries: those of one stream", single["fidelity"], 95.0),
        row("ten queries: joins", join["fidelity"], 90.0, neutral=100 / 3),
        in_turn(f"turns of others that any of {count} queries waits for", smooth.longest_turns,
                count - 1.0, "", "at most"),
        in_turn(f"fewest rounds of a query over most, one of them {TIMES:g} × slower",
                min(served) / max(served), 1.0, "×", "at least"),
        in_turn("longest wait over one longest round of each other query",
                smooth.longest_over_bound, 1.0, "×", "at most"),
    ]  # fmt: skip
