"""Regular charts, OM § 4.4.1 and § 4.4.2: k equal partitions of each of l dimensions.

A regular chart has k^l regions. Up to `most_regions` of them are worked out once and held densely,
a byte or two each. Of more, those are held that were visited: a region gets its plan when it is
first entered, and when there are `most_regions`, the one longest not visited is forgotten and
worked out again should it be entered again. The answers are the same, since a region's plan follows
from its centroid. So no chart is too large; a large one is built a region at a time, while it is
used, and each new region costs what costing all plans once costs. The other way out are regions
that are split only where plans differ: `grid`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from querymesh.arrays import Bytes, Floats, Ints
from querymesh.errors import QueryMeshError
from querymesh.optimize.chart.chart import (
    MOST_REGIONS,
    ChartDimension,
    Costing,
    Region,
    best_plans,
    checked_count,
    checked_point,
)

DEFAULT_PARTITIONS = 10
"""k of § 5.1."""

_TOGETHER = 4096
"""Regions worked out at once, so that building takes little memory beside the chart."""

_BYTES_OF_A_VISITED_REGION = 256
"""An entry of an ordered dictionary, its key, a whole number of any size, and its value."""


class _Regular:
    """k equal partitions of each dimension (Algorithm 1)."""

    def __init__(self, dimensions: Sequence[ChartDimension], k: int, costing: Costing) -> None:
        if not dimensions:
            raise QueryMeshError("a chart needs at least one dimension")
        self.dimensions = tuple(dimensions)
        self.k = k
        self.costed = 0
        self._costing = costing
        self._low = np.array([each.low for each in dimensions])
        self._width = (np.array([each.high for each in dimensions]) - self._low) / k

    @property
    def regions(self) -> int:
        """k^l: k partitions of each of l dimensions."""
        return int(self.k ** len(self.dimensions))

    def centroid(self, region: Region) -> Floats:
        """The middle of the region in each dimension."""
        return np.asarray(self._centroids(np.array([region.key]))[0], np.float64)

    def _places(self, points: Floats) -> Ints:
        places = np.floor((points - self._low) / self._width)
        return np.asarray(np.clip(places, 0, self.k - 1), np.int64)

    def _centroids(self, places: Ints) -> Floats:
        return np.asarray(self._low + (places + 0.5) * self._width, np.float64)

    def _best(self, places: Ints) -> Ints:
        self.costed += len(places)
        return best_plans(self._costing(self._centroids(places)))


class DenseChart(_Regular):
    """A regular chart, all of whose regions are worked out and held."""

    def __init__(self, dimensions: Sequence[ChartDimension], k: int, costing: Costing) -> None:
        super().__init__(dimensions, k, costing)
        shape = (k,) * len(self.dimensions)
        portions = [
            self._best(np.stack(np.unravel_index(portion, shape), axis=1))
            for portion in _portions(self.regions)
        ]
        self._plans = np.concatenate([_narrow(portion) for portion in portions]).reshape(shape)

    @property
    def held(self) -> int:
        """How many regions are in memory: all of them."""
        return self.regions

    @property
    def memory_bytes(self) -> int:
        """The bytes that the numbers of all regions' plans take."""
        return int(self._plans.nbytes)

    def look_up(self, point: Sequence[float]) -> Region:
        """The region that holds a point."""
        place = self._places(checked_point(self.dimensions, point)[None])[0]
        key = tuple(int(each) for each in place)
        return Region(key, int(self._plans[key]))

    def plans_at(self, points: Floats) -> Ints:
        """The plans of the regions that hold the points."""
        return np.asarray(self._plans[tuple(self._places(points).T)], np.int64)


class SparseChart(_Regular):
    """A regular chart that holds the regions visited, at most so many."""

    def __init__(
        self, dimensions: Sequence[ChartDimension], k: int, costing: Costing, most_regions: int
    ) -> None:
        super().__init__(dimensions, k, costing)
        self._most_regions = most_regions
        self._plans: OrderedDict[int, int] = OrderedDict()

    @property
    def held(self) -> int:
        """How many regions were visited and are not forgotten."""
        return len(self._plans)

    @property
    def memory_bytes(self) -> int:
        """The bytes that the regions held take, at most."""
        return self.held * _BYTES_OF_A_VISITED_REGION

    def look_up(self, point: Sequence[float]) -> Region:
        """The region that holds a point; worked out, if it is not held."""
        places = self._places(checked_point(self.dimensions, point)[None])
        key = tuple(int(each) for each in places[0])
        number = 0
        for each in key:
            number = number * self.k + each
        plan = self._plans.get(number)
        if plan is None:
            plan = int(self._best(places)[0])
            if len(self._plans) >= self._most_regions:
                self._plans.popitem(last=False)
            self._plans[number] = plan
        else:
            self._plans.move_to_end(number)
        return Region(key, plan)

    def plans_at(self, points: Floats) -> Ints:
        """The plans of the regions that hold the points, worked out for this answer."""
        places = self._places(points)
        rows = (places[portion] for portion in _portions(len(places)))
        plans = [best_plans(self._costing(self._centroids(each))) for each in rows]
        return np.concatenate([np.zeros(0, np.int64), *plans])


def regular_chart(
    dimensions: Sequence[ChartDimension],
    costing: Costing,
    k: int = DEFAULT_PARTITIONS,
    most_regions: int = MOST_REGIONS,
) -> DenseChart | SparseChart:
    """A chart of k partitions a dimension, dense if it has at most `most_regions` regions.

    >>> share = ChartDimension("sel", 0, 1)
    >>> chart = regular_chart([share], lambda at: np.hstack((at, 1 - at)), k=4)
    >>> chart.look_up([0.6])
    Region(key=(2,), plan=1)
    """
    k = checked_count("k, the partitions of a dimension,", k)
    most_regions = checked_count("most_regions", most_regions)
    if k ** len(dimensions) <= most_regions:
        return DenseChart(dimensions, k, costing)
    return SparseChart(dimensions, k, costing, most_regions)


def _portions(count: int) -> list[Ints]:
    return [np.arange(at, min(at + _TOGETHER, count)) for at in range(0, count, _TOGETHER)]


def _narrow(plans: Ints) -> Bytes | npt.NDArray[np.uint16] | Ints:
    """Plans' numbers in a byte or two, if they fit; concatenating widens where some do not."""
    top = int(plans.max())
    if top < 1 << 8:
        return plans.astype(np.uint8)
    return plans.astype(np.uint16) if top < 1 << 16 else plans
