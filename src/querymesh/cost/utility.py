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
    Arrivals,
    Join,
    Plan,
    Projection,
    Selection,
    streams_of,
)
from querymesh.errors import QueryMeshError, TrainingError, UnsupportedError, did_you_mean

Value = float | Floats


@dataclass(frozen=True, slots=True)
class Weights:
    """The user's w_r and w_m: what a high output rate and what little memory are worth (§ 3.2)."""

    rate: float
    memory: float

    def __post_init__(self) -> None:
        for name, weight in (("rate", self.rate), ("memory", self.memory)):
            if not (math.isfinite(weight) and weight >= 0):
                raise QueryMeshError(
                    f"the weight of {name} must be a finite number from 0 on, not {weight}"
                )
        if self.rate == self.memory == 0:
            raise QueryMeshError(
                "the weights of rate and memory are both 0, and every plan would cost the same: "
                "give at least one of them, such as the paper's Weights(rate=0.4, memory=0.6)"
            )


DEFAULT_WEIGHTS = Weights(rate=0.4, memory=0.6)
"""Of § 5.1."""


@dataclass(frozen=True)
class Statistics:
    """What costs are estimated from: tuples a second by stream, selectivities by predicate, W."""

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

    def rate(self, stream: str) -> Floats:
        """λ of a stream."""
        return _known("arrival rate", stream, self.rates)

    def selectivity(self, predicates: tuple[str, ...]) -> Floats:
        """The share of tuples, or of pairs, for which all hold, as if independent."""
        share = np.ones(())
        for name in predicates:
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

    operator: Plan
    rate: Floats
    input_buffer: Floats
    queue: Floats

    @property
    def memory(self) -> Floats:
        """c_m = c_inp + c_int."""
        return self.input_buffer + self.queue


class Costs(NamedTuple):
    """C_r and C_m of a plan."""

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


def plan_costs(plan: Plan, statistics: Statistics) -> Costs:
    """C_r and C_m of a plan as § 4.1 has them."""
    operators = operator_costs(plan, statistics)
    if not operators:
        return Costs(_flow(plan, statistics, 0, []).rate, np.zeros(()))
    memory = np.zeros(())
    for each in operators:
        memory = memory + each.memory
    return Costs(operators[0].rate, memory)


def sustained_costs(plan: Plan, statistics: Statistics) -> Costs:
    """C_r and C_m of § 4.1 with joins' results by the second that passes, not by that of work."""
    operators = operator_costs(plan, statistics, least_busy=1.0)
    if not operators:
        return plan_costs(plan, statistics)
    return Costs(operators[0].rate, np.asarray(sum(each.memory for each in operators)))


def operator_costs(
    plan: Plan, statistics: Statistics, least_busy: float = 0.0
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
    plan: Plan,
    statistics: Statistics,
    depth: int,
    seen: list[tuple[int, OperatorCost]],
    least_busy: float = 0.0,
) -> _Flow:
    window_s = statistics.window_s
    if isinstance(plan, Arrivals):
        return _Flow(statistics.rate(plan.stream), 1.0, 1)
    if isinstance(plan, Join):
        left = _flow(plan.left, statistics, depth + 1, seen, least_busy)
        right = _flow(plan.right, statistics, depth + 1, seen, least_busy)
        busy = left.rate / plan.left_tpr + right.rate / plan.right_tpr
        pairs = left.rate * right.rate * window_s
        share = statistics.selectivity(plan.predicates)
        rate = share * _divided(pairs, np.maximum(busy, least_busy))
        streams = left.streams + right.streams
        width = (left.width * left.streams + right.width * right.streams) / streams
        arriving = (left.rate * left.width + right.rate * right.width) / 2
        waiting = arriving * window_s * busy / 2
        flow = _Flow(rate, width, streams)
    else:
        below = _flow(plan.of, statistics, depth + 1, seen, least_busy)
        waiting = below.rate * below.width * below.rate * window_s / plan.tpr
        if isinstance(plan, Selection):
            flow = below._replace(rate=below.rate * statistics.selectivity(plan.predicates))
        elif isinstance(plan, Projection):
            flow = below._replace(width=below.width * plan.keeps)
        else:
            per_second = np.asarray(plan.tpr, np.float64)
            flow = below._replace(rate=_divided(per_second, below.rate * window_s))
    queue = flow.rate * flow.width * window_s
    seen.append((depth, OperatorCost(plan, flow.rate, waiting, queue)))
    return flow


def _divided(dividend: Floats, divisor: Floats) -> Floats:
    """The quotient; 0 where nothing flows, so that the divisor is 0."""
    dividend, divisor = np.broadcast_arrays(dividend, divisor)
    out = np.zeros(divisor.shape)
    with np.errstate(over="ignore"):
        np.divide(dividend, divisor, out=out, where=divisor > 0)
    return out


def capped_costs(plan: Plan, statistics: Statistics) -> Costs:
    """C_r and C_m as the example of § 3.2 reckons, for selections and projections of one stream.

    Its numbers do not follow from § 4.1. They do if an operator takes in at most tpr tuples a
    second, and memory is what arrives in a window and what each operator would leave of it, were
    none too slow: C_m = λ · W + Σ sel · λ · W. Other than § 4.1 this tells plans apart that the
    stream overloads.
    """
    if isinstance(plan, Arrivals):
        rate = statistics.rate(plan.stream)
        return Costs(rate, rate * statistics.window_s)
    if isinstance(plan, Join | Aggregate):
        raise UnsupportedError(
            f"§ 3.2 of OM reckons selections and projections only, not {type(plan).__name__}: "
            "plan_costs knows all operators"
        )
    below = capped_costs(plan.of, statistics)
    share = statistics.selectivity(_predicates(plan))
    left = statistics.selectivity(_all_predicates(plan)) * statistics.rate(next(streams_of(plan)))
    return Costs(
        np.minimum(below.rate, plan.tpr) * share, below.memory + left * statistics.window_s
    )


def _predicates(plan: Plan) -> tuple[str, ...]:
    return plan.predicates if isinstance(plan, Selection) else ()


def _all_predicates(plan: Plan) -> tuple[str, ...]:
    below: tuple[str, ...] = ()
    while isinstance(plan, Selection | Projection):
        below += _predicates(plan)
        plan = plan.of
    return below
