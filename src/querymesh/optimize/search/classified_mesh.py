"""Meshes whose classifier is no tree: what routes cost where a learner tells them apart.

The training tuples of a group share a route, and the tree is induced to tell groups. A classifier
of another kind sees the sampled tuples themselves: each has for its label the route on which it
costs least, and for its weight what any other would cost it more (0 where all cost it the same).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from time import thread_time

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats
from querymesh.classify.classifier import Classifier, Learner, classes_of
from querymesh.classify.condense import TrainingSet
from querymesh.classify.tree import Classes, Leaf, Tree
from querymesh.cost.route_time import Overheads
from querymesh.stats.least_time import least_seconds
from querymesh.stats.profile import Route

TIMES = 3
TIMED_ROWS = 10_000
"""A classifier is timed on so many rows, those of the sample again and again: a window's."""


class ClassifiedMeshes:
    """Meshes of a training set by classifiers of one learner."""

    def __init__(self, training: TrainingSet, overheads: Overheads, learner: Learner) -> None:
        self._profile = training.profile
        self._sample = training.profile.sample.select(list(training.columns))
        self._columns = training.columns
        self._overheads = overheads
        self._learner = learner
        self._us: dict[Route, Floats] = {}
        self._told_us: float | None = None

    def _row_us(self, route: Route) -> Floats:
        if route not in self._us:
            self._us[route] = self._profile.realized_us(route)
        return self._us[route]

    def least_us(self, routes: Collection[Route]) -> float:
        """What a tuple costs at the least, each on the cheapest of the routes."""
        us = np.stack([self._row_us(route) for route in routes])
        return float(us.min(axis=0).mean()) if us.size else 0.0

    def mesh(self, routes: tuple[Route, ...]) -> tuple[Tree, float]:
        """The classifier that tells which route suits a tuple, and what the mesh costs one (QM eq.
        2); a leaf where the best single of the routes is as good, but for the error of that."""
        us = np.stack([self._row_us(route) for route in routes], axis=1)
        single = int(us.sum(axis=0).argmin())
        alone = Leaf(single), float(us[:, single].mean()) if len(us) else 0.0
        if len(routes) < 2 or len(us) < 2:
            return alone
        labels = us.argmin(axis=1)
        least = np.partition(us, 1, axis=1)
        weights = least[:, 1] - least[:, 0]
        if len(np.unique(labels[weights > 0])) < 2 or not self._sample.column_names:
            return alone
        classifier = self._learner.fit(self._sample, labels, weights)
        told = classes_of(classifier, self._columns.__getitem__, len(us), len(routes))
        if self._told_us is None:  # once a search, so that meshes differ by their routes alone
            self._told_us = telling_us(classifier, self._columns, len(us), len(routes))
        more_us = (len(routes) - 1) * self._overheads.route_us(self._profile.operators)
        row_us = us[np.arange(len(us)), told] + self._told_us
        saved = us[:, single] - row_us
        error_us = float(saved.std(ddof=1)) / math.sqrt(len(saved))
        if float(saved.mean()) - more_us <= error_us:
            return alone
        ends = tuple(Leaf(number) for number in range(len(routes)))
        return Classes(classifier, ends, self._told_us), float(row_us.mean()) + more_us


def telling_us(
    classifier: Classifier,
    columns: Mapping[str, pa.Array],
    rows: int,
    classes: int,
    timed_rows: int = TIMED_ROWS,
) -> float:
    """The processor time that telling the class of one row of a window takes; `columns` hold so
    many rows, which are taken again and again."""
    taken = pa.array(np.resize(np.arange(rows), timed_rows))
    window = {name: columns[name].take(taken) for name in classifier.columns}

    def tell() -> None:
        classes_of(classifier, window.__getitem__, timed_rows, classes)

    return 1e6 * least_seconds(tell, TIMES, thread_time) / timed_rows
