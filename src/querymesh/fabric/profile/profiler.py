"""Profiling: run every operator on every sampled tuple, and time it (DESIGN § 4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.operators import Module
from querymesh.fabric.core.ruster import Ruster
from querymesh.fabric.core.tables import one_batch
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.profile.fan_out import Chain, Survivors, passed
from querymesh.mesh.route import written_route
from querymesh.query.bind.share import SharedQuery
from querymesh.query.expr import Expr, user_calls_of
from querymesh.query.model import BoundQuery, Filter, Lookup, Meeting, Operator, Probe
from querymesh.stats.least_time import least_seconds
from querymesh.stats.profile import Profile

VISIBLE_SECONDS = 0.0008
"""A single timing shorter than this is repeated until its sum is this long."""

FEW_ROWS = 50
"""Fewer rows of one outcome than this say little about its cost."""

WORK_SECONDS = 0.05
"""A probe that took longer on the sample has so much to do that a visit's price is nothing."""

FEWER, LEAST_SHARE, REPEATS = 8, 0.1, 7
"""What a row costs a probe: beside all rows every so many-th is timed, at least this share of the
mean is its own, and times are the least of so many."""

WARM_UP_ROWS = 8
LEAST_COST_US = 1e-4


def profile_sample(
    bound: BoundQuery,
    sample: pa.Table,
    tables: Mapping[str, LookupTable] | None = None,
    on_error: str = "raise",
) -> Profile:
    """What each operator does with each row of the sample, and its cost on rows of each outcome.

    An operator that must come after others (a guard, a look-up whose columns it reads) is run on
    what those let through, and its outcome is rows out per row that reached it. A declared
    `cost_us=` of a predicate replaces the measured time.
    """
    return profile_counted(bound, sample, tables, on_error)[0]


def profile_counted(
    bound: BoundQuery,
    sample: pa.Table,
    tables: Mapping[str, LookupTable] | None = None,
    on_error: str = "raise",
    *,
    timed: bool = True,
) -> tuple[Profile, int]:
    """As `profile_sample`, and the evaluations it took: timing asks SQL conditions more than once.

    A user's function is called once a row and never again. Not `timed`, so is everything else, and
    the costs are not numbers: of a query that runs, its visits tell them. A function that raises on
    a row that all other operators let through raises here as it would later.
    """
    fabric = Fabric(bound, tables, on_error)
    everything = _everything(fabric, sample)
    profile, evaluations = profile_modules(bound, fabric.modules, everything, sample, timed=timed)
    for row, call in fabric.failed_calls().items():
        if (profile.outcomes[row] > 0).all():
            raise call.error()
    return profile, evaluations


def profile_modules(
    bound: BoundQuery,
    asked: Sequence[Module],
    everything: Ruster,
    sample: pa.Table,
    *,
    timed: bool,
) -> tuple[Profile, int]:
    """What these modules do with all tuples of the sample, on no route yet, and the evaluations
    it took."""
    modules = tuple(map(Counted, asked))
    order = written_route(bound.precedence)
    chain = Chain(everything, modules, order)
    outcomes = np.zeros((everything.window.rows, len(order)))
    drop_us, pass_us = np.full((2, len(order)), np.nan)
    for index in order:
        at = index - 1
        if timed:
            operator, before = bound.operators[at], chain.after(bound.operators[at].after)
            after, costs = _timed_operator(bound, operator, modules[at], before)
            drop_us[at], pass_us[at] = (max(LEAST_COST_US, cost) for cost in costs)
        else:
            after = chain.after(bound.precedence[at] | {index})
        outcomes[:, at] = after.outcomes
    names = tuple(operator.name for operator in bound.operators)
    serves = bound.serves if isinstance(bound, SharedQuery) else ()
    profile = Profile(sample, names, bound.precedence, outcomes, drop_us, pass_us, serves)
    return profile, sum(module.evaluations for module in modules)


def _timed_operator(
    bound: BoundQuery, operator: Operator, module: Module, before: Survivors
) -> tuple[Survivors, tuple[float, float]]:
    """What an operator lets through of what is before it; the cost of a row that is dropped, and of
    one that passes."""
    calls_users = isinstance(operator, Filter) and bool(user_calls_of(operator.expr))
    after, seconds = _timed(module, before, once=calls_users)
    declared = declared_cost(operator, bound)
    if declared is not None:
        return after, (declared, declared)
    if isinstance(operator, Filter) and not calls_users:
        return after, _cost_by_outcome(module, after, seconds)
    if isinstance(operator, Probe):
        return after, (_further_row_us(module, after, seconds),) * 2
    return after, (_us_a_row(seconds, after.asked),) * 2


def _everything(fabric: Fabric, sample: pa.Table) -> Ruster:
    window = fabric.window(one_batch(sample))
    return Ruster(window, np.arange(window.rows), RouteToken(()))


class Counted:
    """A module that counts the rows it is asked about."""

    def __init__(self, module: Module) -> None:
        self.errors = 0
        self.comparisons = 0
        self.evaluations = 0
        self.clock: Callable[[], float] = getattr(module, "clock", perf_counter)
        self._module = module

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """What the module makes of a ruster."""
        self.evaluations += len(ruster)
        yield from self._module.process(ruster)


def _cost_by_outcome(module: Module, after: Survivors, seconds: float) -> tuple[float, float]:
    """The cost of a row that is dropped, and of one that passes, each timed apart.

    Only their ratio is taken from the separate timings; their mean is what all rows together took.
    """
    asked = after.asked
    passes = after.outcomes[asked.rows] > 0
    parts = [asked.pick(np.flatnonzero(kept)) for kept in (~passes, passes)]
    together = _us_a_row(seconds, asked)
    if min(map(len, parts)) < FEW_ROWS:
        return together, together
    apart = [_us_a_row(_timed(module, replace(after, carried=part))[1], part) for part in parts]
    mean = (apart[0] * len(parts[0]) + apart[1] * len(parts[1])) / len(asked)
    return apart[0] * together / mean, apart[1] * together / mean


def _further_row_us(module: Module, after: Survivors, seconds: float) -> float:
    """What one more row costs a probe: the slope between all rows and some.

    A visit of a state has a price of its own, as much as that of a thousand rows. It is a ruster's
    (`calibrate_join.py`); counted again as its rows', it would make rows seem dear, and worth
    sparing by more rusters than that pays for.
    """
    asked = after.asked
    few = asked.pick(np.arange(0, len(asked), FEWER))
    together = _us_a_row(seconds, asked)
    if len(few) < FEW_ROWS or seconds > WORK_SECONDS:
        return together
    some_s, seconds = (_shortest(module, rows) for rows in (few, asked))
    slope_us = 1e6 * (seconds - some_s) / (len(asked) - len(few))
    return max(slope_us, LEAST_SHARE * together)


def _shortest(module: Module, ruster: Ruster) -> float:
    """The least time of several in which a probe takes a ruster's rows."""
    clock = getattr(module, "clock", perf_counter)
    return least_seconds(lambda: deque(module.process(ruster), maxlen=0), REPEATS, clock)


def _us_a_row(seconds: float, ruster: Ruster) -> float:
    return 1e6 * seconds / max(len(ruster), 1)


def _timed(module: Module, before: Survivors, *, once: bool = False) -> tuple[Survivors, float]:
    """What an operator leaves, and the least time it took for the rows it was asked about.

    `once` is for functions whose calls may cost money: no warming up, no second time.
    """
    if once:
        after = passed(module, before)
        return after, after.seconds
    if len(before.carried):
        few = before.carried.pick(np.arange(min(WARM_UP_ROWS, len(before.carried))))
        for _ in module.process(few):  # the first call of a function may load a model
            pass
    after = passed(module, before)
    best = spent = after.seconds
    while len(after.asked) and spent < VISIBLE_SECONDS:
        again = passed(module, replace(before, carried=after.asked)).seconds
        best, spent = min(best, again), spent + again
    return after, best


def declared_cost(operator: Operator, bound: BoundQuery) -> float | None:
    """The sum of the declared costs of the user functions an operator calls; None if none is.

    A meeting of two joined relations is part of a probe, and costs nothing by itself.
    """
    if isinstance(operator, Meeting):
        return LEAST_COST_US
    exprs: tuple[Expr, ...] = ()
    if isinstance(operator, Filter):
        exprs = (operator.expr,)
    elif isinstance(operator, Lookup):
        exprs = operator.probe_keys
    called = {name for expr in exprs for name in user_calls_of(expr)}
    costs = [bound.query.functions[name].cost_us for name in called]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None
