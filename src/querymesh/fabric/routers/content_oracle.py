"""Content-Knows: an oracle, given the best order for each value of an attribute (CBR § 6.2).

A bound for experiments: it has nothing to learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.fabric.core.router import Router, VisitListener
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.routers.eddy import PAIR

Route = tuple[int, ...]


class OracleRouter(Router):
    """Routes tuples by the value of one attribute; each value has its route."""

    decides = True

    def __init__(self, attribute: str, routes: Mapping[Any, Route], otherwise: Route) -> None:
        self.attribute = attribute
        self._values = list(routes)
        self._tokens = [RouteToken(route) for route in (*routes.values(), otherwise)]

    def rusters(self, window: ClassificationWindow) -> list[Ruster]:
        """One ruster for each value there is."""
        column = window.batch.column(self.attribute)
        position = pc.index_in(column, value_set=pa.array(self._values, column.type))
        number = np.asarray(pc.fill_null(position, len(self._values)), np.int64)
        return [
            Ruster(window, np.flatnonzero(number == k), self._tokens[k], k)
            for k in np.unique(number).tolist()
        ]

    def hear(self, before: Ruster, chosen: Ruster) -> VisitListener:
        """A listener that counts one routing call for each tuple."""
        listener = VisitListener()
        listener.went_by, listener.calls = f"{PAIR} {self.attribute}", len(chosen)
        return listener
