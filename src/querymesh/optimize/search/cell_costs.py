"""What the tuples of each cell cost on each route: sums, and sums of squared differences.

All a search asks about costs is additive over cells (`condense.Cells`), and tuples with the same
outcomes cost the same on every route. So a route is costed once for each pattern of outcomes and
summed once for each cell, when it is first asked for.
"""

from __future__ import annotations

import numpy as np

from querymesh.arrays import Floats
from querymesh.classify.condense import TrainingSet
from querymesh.stats.profile import Route


class CellCosts:
    """Costs of routes by cell, remembered."""

    def __init__(self, training: TrainingSet) -> None:
        profile = training.profile
        self.cells = training.cells
        _, first, pattern = np.unique(
            profile.outcomes, axis=0, return_index=True, return_inverse=True
        )
        self._patterns, self._pattern = profile.take(first), pattern.reshape(-1)
        self._of_pattern: dict[Route, Floats] = {}
        self._sums: dict[Route, Floats] = {}
        self._squares: dict[tuple[Route, Route], Floats] = {}

    def sums(self, route: Route) -> Floats:
        """For each cell, what all its tuples cost on the route."""
        sums = self._sums.get(route)
        if sums is None:
            sums = self.cells.sums(self._realized(route)[self._pattern])
            self._sums[route] = sums
        return sums

    def squares(self, a: Route, b: Route) -> Floats:
        """For each cell, the sum of the squares of what its tuples save on one of two routes."""
        pair = (a, b) if a < b else (b, a)
        squares = self._squares.get(pair)
        if squares is None:
            each = (self._realized(a) - self._realized(b)) ** 2
            squares = self._squares[pair] = self.cells.sums(each[self._pattern])
        return squares

    def _realized(self, route: Route) -> Floats:
        if route not in self._of_pattern:
            self._of_pattern[route] = self._patterns.realized_us(route)
        return self._of_pattern[route]

    @property
    def remembered_bytes(self) -> int:
        """The size of what is remembered."""
        numbers = len(self._of_pattern) * self._patterns.rows
        return 8 * (numbers + (len(self._sums) + len(self._squares)) * self.cells.count)
