"""Join selectivities from histograms, OM § 4.3 after Poosala's thesis.

    compressed histogram of a join attribute

      ▇ ▇                     the most frequent values, each alone, counted exactly
      ▇ ▇  ▃▃▃▃ ▃▃ ▃▃▃▃▃▃▃▃   the others in ranges of about equally many tuples; within a range the
                              distinct values are taken to be spread evenly, and equally frequent

The selectivity of an equality between two such attributes is the share of pairs that agree: of two
values held alone, exactly; of a value and a range, or of two ranges where they overlap, as if the
values of the one with fewer were all among those of the other.

Attributes that are not numbers are taken by a hash of their text, of which only equality is kept.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from querymesh.arrays import Bools, Floats, Ints
from querymesh.errors import QueryMeshError, TrainingError

DEFAULT_SINGLES = 64
DEFAULT_RANGES = 32
DEFAULT_THRESHOLD = 0.25
"""The paper has "a certain threshold": here a quarter of what was estimated."""


@dataclass(frozen=True)
class Histogram:
    """A compressed histogram: `singles` sorted with their `counts`, and ranges between `edges`.

    Range i is [edges[i], edges[i + 1]) with `rows[i]` tuples of `distinct[i]` values. `total` are
    the tuples that had a value.
    """

    singles: Floats
    counts: Floats
    edges: Floats
    rows: Floats
    distinct: Floats
    total: int

    @classmethod
    def of(
        cls, values: npt.ArrayLike, singles: int = DEFAULT_SINGLES, ranges: int = DEFAULT_RANGES
    ) -> Histogram:
        """The histogram of an attribute's values; NULL and NaN join nothing and are left out.

        >>> few = Histogram.of([1, 1, 1, 2, 7, None], singles=1)
        >>> few.singles.tolist(), float(few.rows.sum()), few.total
        ([1.0], 2.0, 5)
        """
        if singles < 0 or ranges < 1:
            raise QueryMeshError(
                "a histogram has 0 or more values alone and 1 or more ranges, not "
                f"{singles} and {ranges}"
            )
        numbers = _numbers(values)
        distinct, counts = np.unique(numbers, return_counts=True)
        by_count = np.argsort(-counts, kind="stable")
        # A value alone takes as much memory as a range: pointless for those seen once.
        alone = np.sort(by_count[:singles][counts[by_count[:singles]] > 1])
        rest = np.setdiff1d(np.arange(len(distinct)), alone)
        edges, rows, count = _ranges(distinct[rest], counts[rest], ranges)
        return cls(
            distinct[alone], counts[alone].astype(np.float64), edges, rows, count, len(numbers)
        )

    def expected(self, values: Floats) -> Floats:
        """How many tuples have each value that is not alone here, as ranges tell."""
        if not len(self.rows):
            return np.zeros(len(values))
        within, inside = self.range_of(values)
        return np.where(inside, self.rows[within] / self.distinct[within], 0.0)

    def range_of(self, values: Floats) -> tuple[Ints, Bools]:
        """The nearest range of each value, and whether the value lies in it; there must be ranges.

        >>> Histogram.of([1, 2, 3, 4], ranges=2).range_of(np.array([0.0, 2.5, 3.0]))
        (array([0, 0, 1]), array([False,  True,  True]))
        """
        number = np.searchsorted(self.edges, values, side="right") - 1
        nearest = np.clip(number, 0, len(self.rows) - 1)
        return nearest, number == nearest


def join_selectivity(left: Histogram, right: Histogram) -> float:
    """The share of pairs of a left and a right tuple whose attributes are equal; 0 if no pairs."""
    if not (left.total and right.total):
        return 0.0
    _, at_left, at_right = np.intersect1d(left.singles, right.singles, return_indices=True)
    agreeing = float(left.counts[at_left] @ right.counts[at_right])
    agreeing += _alone_with_ranges(left, at_left, right)
    agreeing += _alone_with_ranges(right, at_right, left)
    agreeing += _ranges_with_ranges(left, right)
    return min(1.0, agreeing / (left.total * right.total))


def _alone_with_ranges(one: Histogram, matched: Ints, other: Histogram) -> float:
    """Pairs of values alone in one and within ranges of the other, in no range more than it has."""
    alone = np.delete(one.singles, matched)
    counts = np.delete(one.counts, matched)
    expected = other.expected(alone)
    if not len(other.rows) or not expected.any():
        return 0.0
    within, _ = other.range_of(alone)
    claimed = np.bincount(within, weights=expected, minlength=len(other.rows))
    share = np.minimum(1.0, other.rows / np.maximum(claimed, 1e-300))
    return float((counts * expected * share[within]).sum())


def _ranges_with_ranges(left: Histogram, right: Histogram) -> float:
    """Pairs within ranges, on the pieces that the edges of both cut each other into."""
    if not (len(left.rows) and len(right.rows)):
        return 0.0
    edges = np.union1d(left.edges, right.edges)
    left_rows, left_distinct = _pieces(left, edges)
    right_rows, right_distinct = _pieces(right, edges)
    most = np.maximum(left_distinct, right_distinct)
    pairs = left_rows * right_rows
    return float(np.divide(pairs, most, out=np.zeros(len(most)), where=pairs > 0).sum())


def _pieces(histogram: Histogram, edges: Floats) -> tuple[Floats, Floats]:
    """Rows and distinct values between finer edges; a range gives each piece by its width."""
    middles = (edges[:-1] + edges[1:]) / 2
    within, inside = histogram.range_of(middles)
    share = np.where(inside, np.diff(edges) / np.diff(histogram.edges)[within], 0.0)
    return histogram.rows[within] * share, np.maximum(histogram.distinct[within] * share, inside)


def _ranges(values: Floats, counts: Ints, ranges: int) -> tuple[Floats, Floats, Floats]:
    """Sorted values and their counts in ranges of about equally many tuples."""
    if not len(values):
        return np.zeros(0), np.zeros(0), np.zeros(0)
    before = np.cumsum(counts) - counts
    number = before * min(ranges, len(values)) // counts.sum()
    first = np.flatnonzero(np.diff(number, prepend=-1))
    # The last range ends where the next value would be, were it as far off as those before.
    step = (values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else 1.0
    end = max(values[-1] + step, np.nextafter(values[-1], math.inf))
    rows = np.add.reduceat(counts, first).astype(np.float64)
    distinct = np.diff(np.append(first, len(values))).astype(np.float64)
    return np.append(values[first], end), rows, distinct


def _numbers(values: npt.ArrayLike) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        numbers = array.astype(np.float64)
        return np.asarray(numbers[~np.isnan(numbers)], np.float64)
    given = [each for each in array.tolist() if each is not None and each == each]
    if all(isinstance(each, int | float) for each in given):
        return np.array(given, np.float64)
    return np.array([zlib.crc32(str(each).encode()) for each in given], np.float64)


class JoinSelectivity:
    """The selectivity of one join predicate, kept until a round shows that it is off (§ 4.3).

    It is estimated anew, from histograms of what is in both windows, when a round's selectivity
    differs from the estimate by more than `threshold` times the estimate. A histogram may itself be
    off by more than that; then it would be made again in every round and be no better. So a round
    that shows what the round of the last estimate showed changes nothing.
    """

    def __init__(
        self,
        threshold: float = DEFAULT_THRESHOLD,
        singles: int = DEFAULT_SINGLES,
        ranges: int = DEFAULT_RANGES,
        assumed: float | None = None,
    ) -> None:
        if not (math.isfinite(threshold) and threshold >= 0):
            raise QueryMeshError(f"threshold must be a finite number from 0 on, not {threshold}")
        if assumed is not None and not 0 <= assumed <= 1:
            raise TrainingError(f"a join selectivity is from 0 to 1, not {assumed}")
        self._threshold, self._singles, self._ranges = threshold, singles, ranges
        self._estimate = assumed
        self._observed_then: float | None = None
        self.estimated = 0

    @property
    def estimate(self) -> float:
        """The selectivity to reckon with."""
        if self._estimate is None:
            raise TrainingError(
                "a join selectivity is not known before a round is observed: pass assumed=..."
            )
        return self._estimate

    def observe(self, observed: float | None, left: npt.ArrayLike, right: npt.ArrayLike) -> bool:
        """Take in a round: the share of pairs that were joined, None if there were none, and the
        join attribute in both windows. Whether the selectivity was estimated anew."""
        if self.estimated and (observed is None or not self._is_off(observed)):
            return False
        histograms = (Histogram.of(each, self._singles, self._ranges) for each in (left, right))
        one, other = histograms
        if not (one.total and other.total):
            return False
        self._estimate = join_selectivity(one, other)
        self._observed_then = observed
        self.estimated += 1
        return True

    def _is_off(self, observed: float) -> bool:
        then = self._observed_then
        return self._differs(observed, self.estimate) and (
            then is None or self._differs(observed, then)
        )

    def _differs(self, observed: float, expected: float) -> bool:
        return abs(observed - expected) > self._threshold * expected
