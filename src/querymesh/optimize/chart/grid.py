"""A chart whose regions are split only along the borders between plans.

A regular chart (OM § 4.4) is as fine in the middle of a plan's ground as at its border, and only at
the border does fineness matter. Here the space is halved again and again, one dimension at a time,
but only a region whose corners, or middle, prefer different plans::

    +-------+---+---+       after a few equal parts of each dimension, `coarsest`, so that no
    |       | 2 |1|1|       plan's ground is overlooked that reaches no corner,
    |   2   +---+-+-+       a region is halved along the dimension in which most of its corners
    |       |2|1| 1 |       differ, the wider of equals,
    +---+---+-+-+---+       until it is as narrow as a region of a regular chart of `finest`
    | 2 |2|1|   1   |       partitions.
    +---+-+-+-------+

On l dimensions a border is a surface: about finest^(l-1) regions instead of finest^l. Regions are
halved the largest first, and of one size those whose corners differ most; at `most_regions` halving
stops, and the regions left are coarser than asked for (`complete` is then False). Each region holds
the plan that is best at its centroid, as in any chart. What goes unseen is a plan's ground that
lies within a region without meeting its corners or its middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.errors import OptionError
from querymesh.optimize.chart.chart import (
    MOST_REGIONS,
    ChartDimension,
    Costing,
    Region,
    best_plans,
    checked_count,
    checked_point,
)

MOST_DIMENSIONS = 12
"""A region has 2^l corners, and all are looked at."""

_TOGETHER = 1 << 14
"""Points costed at once."""


class AdaptiveChart:
    """A chart as a tree of halvings: an inner node has a dimension, a threshold and two children.

    - `finest`: partitions of a dimension where plans differ; rounded up to a power of two
    - `coarsest`: partitions of a dimension everywhere
    - `most_regions`: at so many regions halving stops
    """

    def __init__(
        self,
        dimensions: Sequence[ChartDimension],
        costing: Costing,
        finest: int = 64,
        coarsest: int = 4,
        most_regions: int = MOST_REGIONS,
    ) -> None:
        count = len(dimensions)
        if not 1 <= count <= MOST_DIMENSIONS:
            raise OptionError(
                f"a chart that is split along borders has 1 to {MOST_DIMENSIONS} dimensions, not "
                f"{count}: use regular_chart"
            )
        self._finest = _halvings("finest", finest)
        self._coarsest = min(_halvings("coarsest", coarsest), self._finest)
        self._most_regions = checked_count("most_regions", most_regions)
        self.dimensions = tuple(dimensions)
        self.costed = 0
        self.complete = True
        self._costing = costing
        self._low = np.array([each.low for each in dimensions])
        self._size = np.array([each.high for each in dimensions]) - self._low
        self._corners = np.array([*product((0, 1), repeat=count)], np.float64)
        self._known: dict[bytes, int] = {}
        self._build()
        self._known.clear()

    @property
    def regions(self) -> int:
        """How many regions there are: the leaves of the tree."""
        return (len(self._plan) + 1) // 2

    @property
    def held(self) -> int:
        """How many regions are in memory: all of them."""
        return self.regions

    @property
    def memory_bytes(self) -> int:
        """The bytes that the tree takes."""
        return sum(
            each.nbytes
            for each in (self._axis, self._threshold, self._child, self._plan, self._centroid)
        )

    def look_up(self, point: Sequence[float]) -> Region:
        """The region that holds a point."""
        node = int(self._leaves(checked_point(self.dimensions, point)[None])[0])
        return Region((node,), int(self._plan[node]))

    def centroid(self, region: Region) -> Floats:
        """The middle of the region."""
        return np.asarray(self._low + self._centroid[region.key[0]] * self._size, np.float64)

    def plans_at(self, points: Floats) -> Ints:
        """The plans of the regions that hold the points."""
        return np.asarray(self._plan[self._leaves(points)], np.int64)

    def _leaves(self, points: Floats) -> Ints:
        """The leaf that holds each point: all points go down the tree together."""
        places = (points - self._low) / self._size
        node = np.zeros(len(points), np.int64)
        inner = np.flatnonzero(self._axis[node] >= 0)
        while len(inner):
            at = node[inner]
            above = places[inner, self._axis[at]] >= self._threshold[at]
            node[inner] = self._child[at] + above
            inner = inner[self._axis[node[inner]] >= 0]
        return node

    def _build(self) -> None:
        """Halve, depth by depth. Places are parts of the whole: 0 is low, 1 is high."""
        axis, threshold, child = [-1], [0.0], [0]
        dimensions = len(self.dimensions)
        # Of the regions still looked at: their node, their low corner, how often each dimension
        # was halved.
        nodes = np.zeros(1, np.int64)
        lows = np.zeros((1, dimensions))
        halved = np.zeros((1, dimensions), np.int64)
        centroids = [np.full((1, dimensions), 0.5)]
        plans = [self._best(centroids[0])]
        regions = 1
        while len(nodes):
            along, order = self._to_halve(lows, halved)
            if regions + len(order) > self._most_regions:
                order = order[: self._most_regions - regions]
                self.complete = False
            if not len(order):
                break
            regions += len(order)
            nodes, lows, halved, along = nodes[order], lows[order], halved[order], along[order]
            rows = np.arange(len(order))
            halved[rows, along] += 1
            width = 0.5 ** halved[rows, along]
            first = len(axis)
            for row, node in enumerate(nodes):
                axis[node] = int(along[row])
                threshold[node] = float(lows[row, along[row]] + width[row])
                child[node] = first + 2 * row
            nodes = first + np.arange(2 * len(order))
            lows = np.repeat(lows, 2, axis=0)
            lows[2 * rows + 1, along] += width
            halved = np.repeat(halved, 2, axis=0)
            axis += [-1] * len(nodes)
            threshold += [0.0] * len(nodes)
            child += [0] * len(nodes)
            centroids.append(lows + 0.5 ** (halved + 1))
            plans.append(self._best(centroids[-1]))
        self._axis = np.array(axis, np.int8)
        self._threshold = np.array(threshold)
        self._child = np.array(child, np.int32)
        self._plan = np.concatenate(plans).astype(np.int32)
        self._centroid = np.concatenate(centroids).astype(np.float64)

    def _to_halve(self, lows: Floats, halved: Ints) -> tuple[Ints, Ints]:
        """Along which dimension each region would be halved, and which are, the most mixed first.

        All were halved equally often and so are of one volume.
        """
        count, dimensions = lows.shape
        coarse, fine = halved < self._coarsest, halved < self._finest
        forced = np.asarray(coarse.any(axis=1), np.bool_)
        mixed = np.zeros(count)
        differing = np.zeros((count, dimensions))
        asked = np.flatnonzero(~forced & fine.any(axis=1))
        if len(asked):
            corners = self._corner_plans(lows[asked], halved[asked])
            mixed[asked] = (corners != corners[:, -1:]).mean(axis=1)
            differing[asked] = self._differing(corners[:, :-1])
        # Halving across a border's run tells nothing: unless only the middle differs, some edge of
        # the dimension must.
        allowed = fine & ((differing > 0) | (differing == 0).all(axis=1, keepdims=True))
        allowed = np.where(forced[:, None], coarse, allowed)
        # The wider of equals; a forced region is halved where it is widest.
        wanted = np.where(allowed, differing - halved / (self._finest + 1), -np.inf)
        halve = np.flatnonzero(forced | ((mixed > 0) & allowed.any(axis=1)))
        order = halve[np.argsort(-np.where(forced, np.inf, mixed)[halve], kind="stable")]
        return np.asarray(wanted.argmax(axis=1), np.int64), order

    def _corner_plans(self, lows: Floats, halved: Ints) -> Ints:
        """The best plan at each corner of each region, and in the last column in its middle."""
        width = 0.5**halved
        offsets = np.vstack((self._corners, np.full((1, lows.shape[1]), 0.5)))
        points = lows[:, None, :] + offsets[None] * width[:, None, :]
        return self._best(points.reshape(-1, lows.shape[1])).reshape(len(lows), -1)

    def _differing(self, corners: Ints) -> Floats:
        """For each region and dimension, how many edges along it join different plans."""
        dimensions = len(self.dimensions)
        cube = corners.reshape(len(corners), *(2,) * dimensions)
        columns = []
        for axis in range(1, dimensions + 1):
            differ = cube.take(0, axis) != cube.take(1, axis)
            columns.append(differ.reshape(len(corners), -1).sum(axis=1))
        return np.stack(columns, axis=1).astype(np.float64)

    def _best(self, places: Floats) -> Ints:
        """The best plan at each place; neighbours share corners, so what is known is kept."""
        keys = [place.tobytes() for place in places]
        new = {key: row for row, key in enumerate(keys) if key not in self._known}
        rows = [*new.values()]
        for at in range(0, len(rows), _TOGETHER):
            points = self._low + places[rows[at : at + _TOGETHER]] * self._size
            best = best_plans(self._costing(points))
            self._known.update(zip([*new][at : at + _TOGETHER], best.tolist(), strict=True))
        self.costed += len(rows)
        return np.array([self._known[key] for key in keys], np.int64)


def _halvings(what: str, partitions: int) -> int:
    """How often a dimension is halved for at least so many partitions."""
    return (checked_count(f"{what}, the partitions of a dimension,", partitions) - 1).bit_length()
