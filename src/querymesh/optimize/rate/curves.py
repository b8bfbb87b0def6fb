"""How many results a plan has made by when: RBO's eq. 3, for streams that end and for windows too.

To a join L(t) rows have come from the left and R(t) from the right: r · t of them, or n once a
stream of n rows has ended. Of these f · L · R pairs match; with a window w a row meets only what
came within it, L(t) - L(t - w). Handling them takes work(t) = ∫ (l · C_l + r · C_r) seconds, which
may be more than t. Eq. 2 is the quotient f · L · R / max(t, work): the mean rate over the time
until all of them are out. A join above takes what this one has given out for its L. (Table 3 at
time t prices each earlier row like the last one; here a row costs what it cost when it came.)

How much is out before that, the paper leaves open. There are three readings; for two streams of
constant rates and load = r_l · C_l + r_r · C_r they give::

    queue     f · L · R of the time whose work is done       f · r_l · r_r · (t / max(1, load))²
    mean      eq. 2 · t                                      f · r_l · r_r · t² / max(1, load)
    printed   ∫ eq. 2 dt, eq. 3 to the letter            ½ · f · r_l · r_r · t² / max(1, load)

`queue` follows the text of § 3.3: outputs are "delayed, perhaps substantially, by outputs
corresponding to tuples that arrived during previous time intervals". `mean` has n = r · t as in
§ 4.2.2: the share of the work that fits into t makes that share of the outputs. Without overload
these two agree, and are right. `printed` integrates a mean as if it were the rate at t, so that of
k streams without overload it counts one k-th; it stops when there are as many as there can be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from querymesh.arrays import Floats
from querymesh.cost.plan_tree import Join, PlanTree, Source, inputs_of, sources_of, window_of
from querymesh.errors import QueryError

Reading = Literal["queue", "mean", "printed"]

_POINTS = 4096
_DECADES = 8
"""Times are a geometric row of so many points over so many powers of ten: 0.5% apart."""

_SAME = 3e-4
"""Curves that differ by less than this part of themselves are the same: so coarse are points."""

_ROUNDING = 1e-12
"""What is less than this part of a number comes of rounding: a rest of work that is as small is no
delay, and as small a rest of results is not waited for."""

_FOREVER_S = 1e15
"""A plan that has not made what is asked by then never will: 30 million years."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Outputs over time, between points in straight lines. `ends`: nothing comes after the last."""

    times_s: Floats
    made: Floats
    ends: bool

    @property
    def total(self) -> float:
        """How many results there are in the end; infinitely many if the curve does not end."""
        return float(self.made[-1]) if self.ends else math.inf

    def outputs(self, time_s: float) -> float:
        """How many results there are at a time."""
        if time_s > self.times_s[-1] and not self.ends:
            raise QueryError(
                f"the curve was predicted up to {self.times_s[-1]:g} s and does not reach "
                f"{time_s:g} s: predict it up to there"
            )
        return float(np.interp(time_s, self.times_s, self.made))

    def time_of(self, results: float) -> float:
        """The first time, in seconds, at which there are so many results."""
        # On a flat tail the last digit of a total can be made long after all others.
        after = int(np.searchsorted(self.made, results * (1 - _ROUNDING)))
        if after == len(self.made):
            when = "in all" if self.ends else f"by {self.times_s[-1]:g} s"
            raise QueryError(
                f"{results:g} results are not reached: the plan is expected to make "
                f"{self.made[-1]:g} {when}. Ask for no more than that"
            )
        if not after:
            return 0.0
        begin, end = self.made[after - 1 : after + 1]
        share = min(1.0, float((results - begin) / (end - begin)))
        first, second = (float(time_s) for time_s in self.times_s[after - 1 : after + 1])
        return first + share * (second - first)


def predicted(tree: PlanTree, until_s: float | None = None, reading: Reading = "queue") -> Curve:
    """The curve of a plan up to a time; if its streams end, up to the last result by default."""
    ends_s = settled_s(tree) * (math.e if reading == "printed" else 1)
    if until_s is None:
        until_s = ends_s
    if not 0 < until_s < math.inf:
        raise QueryError(
            "a stream without an end has no last result: say up to which time, above 0 s, the "
            "curve is wanted"
            if until_s == math.inf
            else f"a curve up to {until_s} s is empty: write a time above 0"
        )
    times_s = _times(tree, until_s)
    handled = _in_order if reading == "queue" else _in_proportion
    made = _made(tree, times_s, handled)
    if reading == "printed":
        rate = np.divide(made, times_s, out=np.zeros_like(made), where=times_s > 0)
        rate[0] = rate[1]
        made = _integral(rate, times_s)
        if ends_s < math.inf:
            made = np.minimum(made, _made(tree, _times(tree, ends_s), handled)[-1])
    return Curve(times_s, made, until_s >= ends_s)


def predicted_until(tree: PlanTree, results: float, reading: Reading = "queue") -> Curve:
    """The curve of a plan up to a number of results, if it makes as many."""
    if settled_s(tree) < math.inf:
        return predicted(tree, reading=reading)
    until_s = 1.0
    while True:
        curve = predicted(tree, until_s, reading)
        if curve.made[-1] >= results or until_s >= _FOREVER_S:
            return curve
        until_s *= 8


def crossings(first: Curve, second: Curve) -> list[tuple[float, float]]:
    """Where one plan overtakes the other: times, and how many results both have there."""
    until_s = min(first.times_s[-1], second.times_s[-1])
    if first.ends and second.ends:
        until_s = max(first.times_s[-1], second.times_s[-1])
    times_s = np.union1d(first.times_s, second.times_s)
    times_s = times_s[times_s <= until_s]
    here = np.interp(times_s, first.times_s, first.made)
    there = np.interp(times_s, second.times_s, second.made)
    ahead = here - there
    # Plans of one query agree where nothing is late, up to what lies between the points; and
    # nobody leads before the first result.
    most = np.maximum(here, there)
    sign = np.where((most >= 1) & (np.abs(ahead) > _SAME * most), np.sign(ahead), 0)
    leads = np.flatnonzero(sign)
    found = []
    for before, after in pairwise(leads):
        if sign[before] != sign[after]:
            part = ahead[before] / (ahead[before] - ahead[after])
            time_s = float(times_s[before] + part * (times_s[after] - times_s[before]))
            found.append((time_s, float(np.interp(time_s, first.times_s, first.made))))
    return found


def settled_s(tree: PlanTree) -> float:
    """A time by which all rows have come and are handled, even if operators never work in parallel.

    Infinite if a stream has no end.
    """
    ends_s = max(source.end_s for source in sources_of(tree))
    return ends_s + _work_and_rows(tree)[0] if ends_s < math.inf else ends_s


def _work_and_rows(tree: PlanTree) -> tuple[float, float]:
    """The work of all operators, and the rows given out, windows aside."""
    match tree:
        case Source():
            return 0.0, tree.size
        case Join():
            (left_s, lefts), (right_s, rights) = map(_work_and_rows, inputs_of(tree))
            work_s = tree.costs.work_s(lefts, rights, lefts * rights)
            return left_s + right_s + work_s, tree.passes * lefts * rights
        case _:
            work_s, rows = _work_and_rows(tree.child)
            return work_s + rows * tree.cost_s, rows * tree.passes


def _times(tree: PlanTree, until_s: float) -> Floats:
    """Points that are close where little time has passed, with the ends of streams among them."""
    row = np.geomspace(until_s * 10.0**-_DECADES, until_s, _POINTS)
    bends = [*_bends(tree)]
    return np.unique(np.concatenate(([0.0], row, [time for time in bends if time < until_s])))


def _bends(tree: PlanTree) -> Iterator[float]:
    for source in sources_of(tree):
        yield from (source.end_s, source.window_s, source.end_s + source.window_s)


_Handled = Callable[[Floats, Floats, Floats], Floats]
"""What is made by each time, from what could be, the work for it, and the times."""


def _in_proportion(possible: Floats, work_s: Floats, times_s: Floats) -> Floats:
    """The share of the work that fits into the time makes that share of the outputs (eq. 2)."""
    share = np.divide(times_s, work_s, out=np.ones_like(work_s), where=work_s > times_s)
    return np.maximum.accumulate(possible * share)


def _in_order(possible: Floats, work_s: Floats, times_s: Floats) -> Floats:
    """The outputs of a queue: rows are handled one after the other, in the order they came."""
    behind_s = work_s - times_s
    least_s = np.minimum.accumulate(behind_s)
    # Where nothing waits, all that can be made is made, to the last digit. The time of the work
    # that is done, times_s + least_s, is rounded as a time is, which can be much more than work is.
    late = behind_s - least_s > _ROUNDING * np.maximum(work_s, times_s)
    made = np.where(late, np.interp(times_s + least_s, work_s, possible), possible)
    return np.maximum.accumulate(made)


def _made(tree: PlanTree, times_s: Floats, handled: _Handled) -> Floats:
    """What a tree has given out by each time."""
    match tree:
        case Source():
            # At its end a stream has all its rows: rate · (size / rate) may lack the last digit.
            return np.where(times_s < tree.end_s, tree.rows_a_second * times_s, tree.size)
        case Join(left, right):
            lefts, rights = _made(left, times_s, handled), _made(right, times_s, handled)
            met = np.diff(lefts) * _rows_in_window(rights, window_of(right), times_s)
            met += np.diff(rights) * _rows_in_window(lefts, window_of(left), times_s)
            pairs = np.concatenate(([0.0], np.cumsum(met)))
            work_s = tree.costs.work_s(lefts, rights, pairs)
            return handled(tree.passes * pairs, work_s, times_s)
        case _:
            rows = _made(tree.child, times_s, handled)
            return handled(tree.passes * rows, tree.cost_s * rows, times_s)


def _rows_in_window(rows: Floats, window_s: float, times_s: Floats) -> Floats:
    """The mean rows that a join keeps of one input between one time and the next."""
    kept = rows - np.interp(times_s - window_s, times_s, rows) if window_s < math.inf else rows
    return (kept[1:] + kept[:-1]) / 2


def _integral(rate: Floats, times_s: Floats) -> Floats:
    """∫ rate from 0 to each time, by trapezoids."""
    return np.concatenate(([0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(times_s))))
