"""The tuples inside an Eddy: those with the same operators behind them go on as one ruster.

Depth first, a chunk whose tuples take many routes would be cut into as many small rusters as there
are orders of operators. Here they are held until all with more operators ahead have moved, and
joined with others that stand at the same point: at most one ruster for each set of operators.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from querymesh.fabric.core.ruster import Ruster
from querymesh.fabric.core.token import RouteToken


class Pool:
    """Rusters that wait for their next operator, by what is still ahead of them."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[RouteToken, int], list[Ruster]] = {}
        self.rows = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, ruster: Ruster) -> None:
        """Put in a ruster that waits for its next operator."""
        self._waiting.setdefault((ruster.token, ruster.leaf), []).append(ruster)
        self.rows += len(ruster)

    def take(self) -> Ruster:
        """Take out the tuples with most operators ahead of them, as one ruster."""
        key = max(self._waiting, key=lambda waiting: waiting[0].ahead)
        first, *others = self._waiting.pop(key)
        whole = first.followed_by(others)
        self.rows -= len(whole)
        if not others:
            return whole
        # In the order of the window, as a ruster's rows always are before a join.
        return replace(whole.pick(np.argsort(whole.rows, kind="stable")), token=whole.token)
