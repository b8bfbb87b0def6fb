"""Content-Knows: told which attribute tells an operator's selectivity, and the best order for each
of its values (CBR § 6.2). A bound for experiments, which has nothing to learn."""

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
    """Tuples by the value of one attribute, each value with its route."""

    decides = True

    def __init__(self, attribute: str, routes: Mapping[Any, Route], otherwise: Route) -> None:
        self.attribute = attribute
        self._values = list(routes)
        self._tokens = [RouteToken(route) for route in (*routes.values(), otherwise)]

    def rusters(self, window: ClassificationWindow) -> list[Ruster]:
        """One ruster for each value there is."""
        column = window.batch.column(self.attribute)
        known = pc.index_in(column, value_set=pa.array(self._values, column.type))
        number = np.asarray(pc.fill_null(known, len(self._values)), np.int64)
        return [
            Ruster(window, np.flatnonzero(number == k), self._tokens[k], k)
            for k in np.unique(number).tolist()
        ]

    def hear(self, before: Ruster, chosen: Ruster) -> VisitListener:
        """Counts the call."""
        heard = VisitListener()
        heard.went_by, heard.calls = f"{PAIR} {self.attribute}", len(chosen)
        return heard
