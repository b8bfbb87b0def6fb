"""What the stages of a filter cost: Catalyst before, one way to Python and back, Catalyst after.

::

    rows ──> before ──> crossing ──> Python ──> after ──> results
             Catalyst   transport    fabric     Catalyst

A row pays the operators it meets, each at the cost of the engine that runs it, and the crossing if
it survives `before`. A row that Catalyst drops first never crosses: that is what is weighed against
an operator that Python evaluates more cheaply.

Plain Spark, the baseline, evaluates the conditions that Catalyst can in the order as written, and
then *every* Python function on every row that is left; rows cross once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from querymesh.arrays import Bools, Floats
from querymesh.errors import TrainingError
from querymesh.mesh.stages import Parts, Stage
from querymesh.stats.profile import Profile, Route

Transport = Callable[[frozenset[int], frozenset[str]], float]
"""From the operators that run in Python and the columns its classifier asks, to the microseconds
that each crossing row costs. More operators or columns never make it cheaper."""

Placement = tuple[Stage, ...]
"""The stage of each operator, in the order of their numbers."""


@dataclass(frozen=True)
class Costs:
    """What each operator costs on one row, by engine; infinite where the engine cannot run it.

    Parameters
    ----------
    catalyst_us
        One evaluation in Catalyst, for each operator; infinite for a Python function.
    python_drop_us, python_pass_us
        One evaluation in Python, of a row that is dropped and of one that is let through; infinite
        for an opaque condition.
    transport_us
        What one row's way to Python and back costs.
    catalyst_doubt
        Catalyst's costs may be too high by this factor, since they are timed coarsely. An operator
        is only taken away from Catalyst if that pays at the lower cost, too. Defaults to 1.
    called_us
        One call of each operator's Python function, where that is more: plain Spark calls it on
        every row, and here equal inputs may be asked about once. Defaults to what it costs here.
    """

    catalyst_us: Floats
    python_drop_us: Floats
    python_pass_us: Floats
    transport_us: Transport
    catalyst_doubt: float = 1.0
    called_us: Floats | None = None

    def __post_init__(self) -> None:
        arrays = (self.catalyst_us, self.python_drop_us, self.python_pass_us)
        if len({len(array) for array in arrays}) != 1:
            raise TrainingError(
                f"costs of {', '.join(str(len(array)) for array in arrays)} operators: give each "
                "operator a cost in Catalyst and two in Python, infinite where it cannot run"
            )
        if any(np.isnan(array).any() or (array < 0).any() for array in arrays):
            raise TrainingError("a cost is negative or not a number")
        nowhere = np.flatnonzero(~self.in_catalyst & ~self.in_python) + 1
        if len(nowhere):
            raise TrainingError(
                f"the operators {nowhere.tolist()} can run nowhere: give each a finite cost in "
                "Catalyst or in Python"
            )
        if not self.catalyst_doubt >= 1:
            raise TrainingError(f"catalyst_doubt is a factor from 1, not {self.catalyst_doubt}")

    @property
    def operators(self) -> int:
        """How many operators there are."""
        return len(self.catalyst_us)

    @property
    def in_catalyst(self) -> Bools:
        """Which operators Catalyst can evaluate."""
        return np.isfinite(self.catalyst_us)

    @property
    def in_python(self) -> Bools:
        """Which operators Python can evaluate."""
        return np.isfinite(self.python_drop_us) & np.isfinite(self.python_pass_us)

    @property
    def python_only(self) -> frozenset[int]:
        """The operators, by number, that only Python can evaluate."""
        return _numbers(~self.in_catalyst)

    @property
    def catalyst_only(self) -> frozenset[int]:
        """The operators, by number, that only Catalyst can evaluate."""
        return _numbers(~self.in_python)

    def crossing_us(
        self, operators: frozenset[int], columns: frozenset[str] = frozenset()
    ) -> float:
        """What a crossing row costs; nothing crosses where no operator runs in Python."""
        return self.transport_us(operators, columns) if operators else 0.0

    def by_outcome(self, placement: Placement) -> tuple[Floats, Floats]:
        """What each operator costs where it is placed, on a dropped row and on a passed one."""
        python = np.array([stage == Stage.PYTHON for stage in placement], dtype=bool)
        return (
            np.where(python, self.python_drop_us, self.catalyst_us),
            np.where(python, self.python_pass_us, self.catalyst_us),
        )

    def if_catalyst_is_faster(self) -> Costs:
        """The costs with Catalyst's at the lower end of what they may be."""
        catalyst_us = self.catalyst_us / self.catalyst_doubt
        return replace(self, catalyst_us=catalyst_us, catalyst_doubt=1.0)


def _numbers(chosen: Bools) -> frozenset[int]:
    return frozenset(int(j) + 1 for j in np.flatnonzero(chosen))


def in_python(placement: Placement) -> frozenset[int]:
    """The operators, by number, that a placement runs in Python."""
    return frozenset(k for k, stage in enumerate(placement, 1) if stage == Stage.PYTHON)


def parts_of(route: Route, placement: Placement) -> Parts:
    """A route that keeps to a placement, in its three parts."""
    before, python, after = (
        tuple(k for k in route if placement[k - 1] == stage) for stage in Stage
    )
    return Parts(before, python, after)


def placement_of(parts: Parts) -> Placement:
    """The stage of each operator of a route in parts."""
    stage_of = {
        operator: stage
        for stage, part in zip(Stage, (parts.before, parts.python, parts.after), strict=True)
        for operator in part
    }
    return tuple(stage_of[operator] for operator in sorted(stage_of))


def stage_after(
    placement: Placement, after: tuple[frozenset[int], ...]
) -> tuple[frozenset[int], ...]:
    """Precedence with the stages added: an operator comes after all those of earlier stages."""
    by_stage = [frozenset(k for k, s in enumerate(placement, 1) if s < stage) for stage in Stage]
    return tuple(own | by_stage[stage] for own, stage in zip(after, placement, strict=True))


def staged_us(profile: Profile, costs: Costs, parts: Parts, crossing_us: float) -> Floats:
    """What each tuple costs on a route in parts, if a row that survives `before` pays
    `crossing_us`."""
    drop_us, pass_us = costs.by_outcome(placement_of(parts))
    us = replace(profile, drop_us=drop_us, pass_us=pass_us).realized_us(parts.route)
    if crossing_us:
        us = us + crossing_us * left_by(profile, parts.before)
    return us


def plain_us(profile: Profile, costs: Costs) -> Floats:
    """What each tuple costs in plain Spark, with the conditions as written."""
    native: Route = tuple(k for k in range(1, costs.operators + 1) if k not in costs.python_only)
    python = sorted(costs.python_only)
    catalyst_us = np.where(costs.in_catalyst, costs.catalyst_us, 0.0)
    us = replace(profile, drop_us=catalyst_us, pass_us=catalyst_us).realized_us(native)
    if not python:
        return us
    each = np.full(profile.rows, costs.crossing_us(costs.python_only))
    for k in python:
        passed = np.minimum(profile.outcomes[:, k - 1], 1.0)
        drop_us, pass_us = costs.python_drop_us[k - 1], costs.python_pass_us[k - 1]
        here_us = drop_us + (pass_us - drop_us) * passed
        each += here_us if costs.called_us is None else np.maximum(here_us, costs.called_us[k - 1])
    return us + each * left_by(profile, native)


def plain_cheapest_us(costs: Costs) -> float:
    """What a tuple costs in plain Spark at the least: the first condition drops it."""
    first = np.flatnonzero(costs.in_catalyst)
    if len(first):
        return float(costs.catalyst_us[first[0]])
    each = np.minimum(costs.python_drop_us, costs.python_pass_us)
    return costs.crossing_us(costs.python_only) + float(each.sum())


def least_us(profile: Profile, costs: Costs) -> Floats:
    """The least that any placement and order could cost each tuple: the clairvoyant bound.

    A dropped tuple pays the cheapest operator that drops it, with what must precede that one; a
    result pays them all. Each is paid where it is cheapest, with a crossing unless Catalyst can do
    without Python.
    """
    cheapest_drop_us = np.minimum(costs.catalyst_us, costs.python_drop_us)
    cheapest_pass_us = np.minimum(costs.catalyst_us, costs.python_pass_us)
    crossing_us = _least_crossing_us(costs)

    def either(drops: list[int], passes: list[int]) -> float:
        native = float(costs.catalyst_us[drops + passes].sum())
        mixed = float(cheapest_drop_us[drops].sum() + cheapest_pass_us[passes].sum())
        return min(native, mixed + crossing_us)

    best = np.full(profile.rows, np.inf)
    for j, after in enumerate(profile.after):
        way_out = either([j], [k - 1 for k in sorted(after)])
        dropped = profile.outcomes[:, j] == 0
        best = np.where(dropped, np.minimum(best, way_out), best)
    return np.where(np.isinf(best), either([], list(range(costs.operators))), best)


def _least_crossing_us(costs: Costs) -> float:
    if costs.python_only:
        return costs.crossing_us(costs.python_only)
    alone = (costs.crossing_us(frozenset({int(j) + 1})) for j in np.flatnonzero(costs.in_python))
    return min(alone, default=np.inf)


def left_by(profile: Profile, operators: Route) -> Floats:
    """How many rows of each tuple survive a set of operators."""
    return np.asarray(profile.outcomes[:, [k - 1 for k in operators]].prod(axis=1))
