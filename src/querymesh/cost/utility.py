"""What a plan of a continuous query costs in output rate and in memory, OM § 4.1, and in utils.

    C_r    the output rate of the root, tuples a second        more is better
    C_m    tuples waiting in memory, over all operators        less is better
    Cost = w_r / C_r + w_m · C_m                               § 3.2, utils: less is better

Each operator is known by what flows in, at rate λ, and how many tuples a second it can process, its
tpr. With W the window in seconds:

    operator     output rate c_r                           waits at its input    and at its output
    selection    sel · λ                                   λ · λ · W / tpr       c_r · W
    projection   λ                                         "                     "
    aggregate    1 / (C_Ω · λ · W)                         "                     "
    join         sel · λ_L · λ_R · W                       "                     "
                 ÷ (C_L · λ_L + C_R · λ_R)

The C are 1 / tpr, and a join's λ, where it waits, is the mean of its two (§ 3). A join's rate, as
printed, is per second of work: a join that is busy a hundredth of the time would hand on a hundred
times what it gives out. `sustained_costs` has what it gives out, sel · λ_L · λ_R · W, divided by
its work only where that is more than there is time for.

Rates and selectivities may be numpy arrays: a plan then is costed at many points at once. What
nothing flows into gives nothing out; an aggregate's formula would say infinitely much.

Memory is in tuples, as the paper counts it, and then a projection never pays before a selection:
both orders have the same rate, and the selection first leaves fewer tuples to both. A projection
that makes tuples narrower can say so with `keeps`, and memory is then in tuples of full width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from querymesh.arrays import Floats
from querymesh.cost.plan_tree import (
    Aggregate,
    Join,
    PlanTree,
    Project,
    Select,
    Selectivity,
    Source,
    sources_of,
)
from querymesh.cost.rates import tpr_at
from querymesh.errors import (
    OptionError,
    QueryMeshError,
    TrainingError,
    UnsupportedError,
    did_you_mean,
)

Value = float | Floats


@dataclass(frozen=True, slots=True)
class Weights:
    """The user's w_r and w_m: what a high output rate and what little memory are worth (§ 3.2)."""

    rate: float
    memory: float

    def __post_init__(self) -> None:
        for name, weight in (("rate", self.rate), ("memory", self.memory)):
            if not (math.isfinite(weight) and weight >= 0):
                raise OptionError(
                    f"the weight of {name} must be a finite number from 0 on, not {weight}"
                )
        if self.rate == self.memory == 0:
            raise OptionError(
                "the weights of rate and memory are both 0, and every plan would cost the same: "
                "give at least one of them, such as the paper's Weights(rate=0.4, memory=0.6)"
            )


DEFAULT_WEIGHTS = Weights(rate=0.4, memory=0.6)
"""The paper's, § 5.1."""


@dataclass(frozen=True)
class Statistics:
    """What costs are estimated from: tuples a second by stream, selectivities by predicate, W.

    A plan may have figures of its own; those given here take their place.
    """

    rates: Mapping[str, Value]
    selectivities: Mapping[str, Value]
    window_s: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.window_s) and self.window_s > 0):
            raise QueryMeshError(f"a window lasts longer than 0 seconds, not {self.window_s}")
        for what, known in (
            ("arrival rate", self.rates),
            ("selectivity", self.selectivities),
        ):
            for name, value in known.items():
                if not (np.isfinite(value).all() and np.greater_equal(value, 0).all()):
                    raise TrainingError(
                        f"the {what} of {name} must be finite and from 0 on, not {value}"
                    )

    def rate(self, stream: Source) -> Floats:
        """λ of a stream: its arrival rate."""
        if stream.rate is not None and stream.name not in self.rates:
            return np.asarray(stream.rate, np.float64)
        return _known("arrival rate", stream.name, self.rates)

    def share(self, selectivity: Selectivity) -> Floats:
        """The share of tuples, or of pairs, for which all predicates hold, as if independent."""
        if not isinstance(selectivity, tuple):
            return np.asarray(selectivity, np.float64)
        share = np.ones(())
        for name in selectivity:
            share = share * _known("selectivity", name, self.selectivities)
        return share


def _known(what: str, name: str, known: Mapping[str, Value]) -> Floats:
    if name not in known:
        raise TrainingError(
            f"the {what} of {name} is not known: observe a round, or assume a value "
            f"({did_you_mean(name, known)})"
        )
    return np.asarray(known[name], np.float64)


class OperatorCost(NamedTuple):
    """One operator's c_r, c_inp and c_int of § 4.1."""

    operator: PlanTree
    rate: Floats
    input_buffer: Floats
    queue: Floats

    @property
    def memory(self) -> Floats:
        """The memory of an operator, c_m = c_inp + c_int."""
        return self.input_buffer + self.queue


class Costs(NamedTuple):
    """What a plan costs by OM § 4.1: C_r, of its output rate, and C_m, of its memory."""

    rate: Floats
    memory: Floats


def utility(costs: Costs, weights: Weights) -> Floats:
    """Cost(C_r, C_m) of § 3.2, in utils; infinite where nothing comes out, if that matters.

    >>> first, second = Costs(np.array(5.0), np.array(775.0)), Costs(np.array(2.5), np.array(575.0))
    >>> [float(utility(costs, Weights(0.1, 0.9))) for costs in (first, second)]
    [697.52, 517.54]
    """
    utils = weights.memory * costs.memory
    if weights.rate:
        with np.errstate(divide="ignore", over="ignore"):
            utils = utils + weights.rate / costs.rate
    return np.asarray(utils, np.float64)


def plan_costs(plan: PlanTree, statistics: Statistics) -> Costs:
    """C_r and C_m of a plan as § 4.1 has them."""
    operators = operator_costs(plan, statistics)
    if not operators:
        return Costs(_flow(plan, statistics, 0, []).rate, np.zeros(()))
    memory = np.zeros(())
    for each in operators:
        memory = memory + each.memory
    return Costs(operators[0].rate, memory)


def sustained_costs(plan: PlanTree, statistics: Statistics) -> Costs:
    """C_r and C_m of § 4.1 with joins' results by the second that passes, not by that of work."""
    operators = operator_costs(plan, statistics, least_busy=1.0)
    if not operators:
        return plan_costs(plan, statistics)
    return Costs(operators[0].rate, np.asarray(sum(each.memory for each in operators)))


def operator_costs(
    plan: PlanTree, statistics: Statistics, least_busy: float = 0.0
) -> list[OperatorCost]:
    """What each operator costs, breadth first: the root is the first, as § 4.1 counts.

    `least_busy` is the share of time that a join counts as busy at least.
    """
    seen: list[tuple[int, OperatorCost]] = []
    _flow(plan, statistics, 0, seen, least_busy)
    return [cost for _, cost in sorted(seen, key=lambda each: each[0])]


class _Flow(NamedTuple):
    """What leaves an operator: tuples a second, the share of bytes kept, of how many streams."""

    rate: Floats
    width: float
    streams: int


def _flow(
    plan: PlanTree,
    statistics: Statistics,
    depth: int,
    seen: list[tuple[int, OperatorCost]],
    least_busy: float = 0.0,
) -> _Flow:
    window_s = statistics.window_s
    match plan:
        case Source():
            return _Flow(statistics.rate(plan), 1.0, 1)
        case Join():
            left = _flow(plan.left, statistics, depth + 1, seen, least_busy)
            right = _flow(plan.right, statistics, depth + 1, seen, least_busy)
            busy = plan.costs.busy(
                left.rate, right.rate, left.rate * window_s, right.rate * window_s
            )
            pairs = left.rate * right.rate * window_s
            rate = statistics.share(plan.selectivity) * _divided(
                pairs, np.maximum(busy, least_busy)
            )
            streams = left.streams + right.streams
            width = (left.width * left.streams + right.width * right.streams) / streams
            arriving = (left.rate * left.width + right.rate * right.width) / 2
            waiting = arriving * window_s * busy / 2
            flow = _Flow(rate, width, streams)
        case Select() | Project() | Aggregate():
            below = _flow(plan.child, statistics, depth + 1, seen, least_busy)
            waiting = below.rate * below.width * below.rate * window_s / tpr_at(plan.cost_s)
            flow = _flow_of_one(plan, below, statistics)
    queue = flow.rate * flow.width * window_s
    seen.append((depth, OperatorCost(plan, flow.rate, waiting, queue)))
    return flow


def _flow_of_one(plan: Select | Project | Aggregate, below: _Flow, statistics: Statistics) -> _Flow:
    """What leaves an operator of one input."""
    match plan:
        case Select():
            return below._replace(rate=below.rate * statistics.share(plan.selectivity))
        case Project():
            return below._replace(width=below.width * plan.keeps)
        case Aggregate():
            per_second = np.asarray(tpr_at(plan.cost_s), np.float64)
            return below._replace(rate=_divided(per_second, below.rate * statistics.window_s))


def _divided(dividend: Floats, divisor: Floats) -> Floats:
    """The quotient; 0 where nothing flows, so that the divisor is 0."""
    dividend, divisor = np.broadcast_arrays(dividend, divisor)
    out = np.zeros(divisor.shape)
    with np.errstate(over="ignore"):
        np.divide(dividend, divisor, out=out, where=divisor > 0)
    return out


def capped_costs(plan: PlanTree, statistics: Statistics) -> Costs:
    """C_r and C_m as the example of § 3.2 reckons, for selections and projections of one stream.

    Its numbers do not follow from § 4.1. They do if an operator takes in at most tpr tuples a
    second, and memory is what arrives in a window and what each operator would leave of it, were
    none too slow: C_m = λ · W + Σ sel · λ · W. Other than § 4.1 this tells plans apart that the
    stream overloads.
    """
    if isinstance(plan, Source):
        rate = statistics.rate(plan)
        return Costs(rate, rate * statistics.window_s)
    if isinstance(plan, Join | Aggregate):
        raise UnsupportedError(
            f"§ 3.2 of OM reckons selections and projections only, not {type(plan).__name__}: "
            "plan_costs knows all operators"
        )
    below = capped_costs(plan.child, statistics)
    share = _share(plan, statistics)
    left = _share_of_all(plan, statistics) * statistics.rate(next(sources_of(plan)))
    return Costs(
        np.minimum(below.rate, tpr_at(plan.cost_s)) * share,
        below.memory + left * statistics.window_s,
    )


def _share(plan: PlanTree, statistics: Statistics) -> Floats:
    return statistics.share(plan.selectivity) if isinstance(plan, Select) else np.ones(())


def _share_of_all(plan: PlanTree, statistics: Statistics) -> Floats:
    """The share that an operator and those below it let through."""
    share = np.ones(())
    while isinstance(plan, Select | Project):
        share = share * _share(plan, statistics)
        plan = plan.child
    return share
