"""What there is to gain over plain Spark, way by way: order, implementation, kinds, memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats
from querymesh.optimize.placement.advice import REMEMBERING, ConditionFacts, Gain
from querymesh.optimize.placement.costs import Costs, in_python, left_by, plain_us, staged_us
from querymesh.optimize.placement.decide import PLAIN, Decision
from querymesh.optimize.placement.place import best_parts, best_placement
from querymesh.query.expr import UserCall, arrow_columns_of, walk
from querymesh.query.model import BoundQuery, Filter
from querymesh.stats.profile import Profile

FINDING_US = 0.1
"""What it takes, about, to find a value among those whose answers are remembered."""

MOST_NAMED = 3
"""Conditions that a note names before it only counts them."""


def gains_of(
    decision: Decision, profile: Profile, costs: Costs, conditions: tuple[ConditionFacts, ...]
) -> tuple[Gain, ...]:
    """What each way could save, in microseconds a row. The first three follow upon one another, so
    that they add up; each is what the sample says, whether or not it is certain."""
    plain = decision.plain_us
    ordered = min(plain, _order_us(profile, costs))
    single = min(ordered, decision.single_us)
    reached = min([single, *(each.expected_us for each in decision.candidates.values())])
    return (
        Gain("order", plain - ordered, _order(ordered < plain)),
        Gain("another implementation", ordered - single, _moved(decision, profile, costs)),
        Gain("kinds of rows", single - reached, _kinds(decision, single, reached)),
        _remembering(costs, conditions),
    )


def conditions_of(
    bound: BoundQuery, decision: Decision, profile: Profile, costs: Costs, sample: pa.Table
) -> tuple[ConditionFacts, ...]:
    """Each condition with its figures; `sample` has all rows that were sampled, of which those of
    the profile are some."""
    passes = profile.pass_rates()
    python_us = costs.python_drop_us + _spread(costs) * np.minimum(passes, 1.0)
    found = []
    for operator in bound.operators:
        at = operator.index - 1
        facts = ConditionFacts(
            operator.name, float(passes[at]), float(costs.catalyst_us[at]), float(python_us[at])
        )
        if operator.index in costs.python_only and isinstance(operator, Filter):
            columns = _read_by_functions(operator)
            reach = _reach(operator.index, decision, profile, costs)
            facts = replace(facts, reach=reach, sampled=sample.num_rows)
            if columns and set(columns) <= set(sample.column_names):
                facts = replace(facts, distinct=_distinct(sample.select(columns)))
        found.append(facts)
    return tuple(found)


def _spread(costs: Costs) -> Floats:
    """How much more a passed row costs in Python than a dropped one; 0 where it cannot run."""
    able = costs.in_python
    passed_us, dropped_us = costs.python_pass_us, costs.python_drop_us
    return np.where(able, passed_us, 0.0) - np.where(able, dropped_us, 0.0)


def _order_us(profile: Profile, costs: Costs) -> float:
    """The best single order if every condition stays where plain Spark evaluates it."""
    native = costs.in_catalyst
    kept = replace(
        costs,
        python_drop_us=np.where(native, np.inf, costs.python_drop_us),
        python_pass_us=np.where(native, np.inf, costs.python_pass_us),
    )
    placement = best_placement(profile, kept)
    if placement is None:
        return float(plain_us(profile, costs).mean())
    parts = best_parts(profile, kept, placement)
    return float(staged_us(profile, kept, parts, kept.crossing_us(in_python(placement))).mean())


def _order(better: bool) -> str:
    if not better:
        return "as written is as good as any"
    return "the best single order, each condition where Spark has it"


def _moved(decision: Decision, profile: Profile, costs: Costs) -> str:
    """Which conditions would run on Arrow that plain Spark evaluates in Java."""
    best = min(decision.candidates.values(), key=lambda each: each.single_us)
    stages = best.mesh.stages
    inside = frozenset[int]() if stages is None else stages.in_python(best.mesh)
    moved = [profile.names[k - 1] for k in sorted(inside - costs.python_only)]
    if not moved:
        return "no SQL condition is faster on Arrow, with the way there"
    named = ", ".join(moved[:MOST_NAMED])
    more = f" and {len(moved) - MOST_NAMED} more" if len(moved) > MOST_NAMED else ""
    return f"on Arrow instead of Java: {named}{more}"


def _kinds(decision: Decision, single_us: float, reached_us: float) -> str:
    most = max(single_us - decision.bound_us, 0.0)
    if reached_us < single_us:
        routes = max(len(each.mesh.routes) for each in decision.candidates.values())
        return f"{routes} routes; no telling apart could save more than {most:.3g} µs"
    return f"no telling apart could save more than {most:.3g} µs"


def _remembering(costs: Costs, conditions: tuple[ConditionFacts, ...]) -> Gain:
    """What answers that are kept would save of the calls that remain, if values come again as
    often as in the sample; in more rows they come again more often."""
    saved_us, told = 0.0, []
    for facts in conditions:
        if facts.distinct is None:
            continue
        again = 1 - facts.distinct / facts.sampled
        us = facts.reach * (again * facts.python_us - FINDING_US)
        if us > 0:
            saved_us += us
            told.append(f"{facts.name} meets a value {facts.rows_per_value:.3g} times")
    if told:
        return Gain(REMEMBERING, saved_us, "; ".join(told))
    if not costs.python_only:
        return Gain(REMEMBERING, 0.0, "there is no Python function")
    return Gain(REMEMBERING, 0.0, "Python functions hardly meet a value twice, or cost little")


def _read_by_functions(operator: Filter) -> list[str]:
    calls = [node for node in walk(operator.expr) if isinstance(node, UserCall)]
    return sorted({column.name for call in calls for column in arrow_columns_of(call)})


def _reach(index: int, decision: Decision, profile: Profile, costs: Costs) -> float:
    """The share of rows on which a function is called: in plain Spark those that all SQL conditions
    leave, else those that are left when its turn comes."""
    if decision.chosen == PLAIN:
        native = tuple(k for k in range(1, profile.operators + 1) if k not in costs.python_only)
        return float(left_by(profile, native).mean())
    route = decision.mesh.single
    return float(profile.arriving(route)[:, route.index(index)].mean())


def _distinct(rows: pa.Table) -> int:
    """How many of the rows differ; also where a column is nested, which Arrow does not compare."""
    values: Mapping[str, list[object]] = rows.to_pydict()
    return len(set(zip(*(map(_hashable, column) for column in values.values()), strict=True)))


def _hashable(value: object) -> object:
    return repr(value) if isinstance(value, list | dict) else value
