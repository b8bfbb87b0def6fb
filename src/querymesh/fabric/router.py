"""Routers: who decides the route. `single` and `mesh` decide before a ruster sets out."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from querymesh.classify.tree import leaves_of
from querymesh.fabric.ruster import Ruster, Window
from querymesh.fabric.token import RouteToken
from querymesh.optimize.mesh import Mesh


class Router(Protocol):
    """Splits a window into rusters, each with its route token."""

    version: int

    def rusters(self, window: Window) -> list[Ruster]:
        """Every row of the window in exactly one ruster."""


class MeshRouter:
    """The online classifier of QM § 5.1: a window's tuples by leaf, each leaf with its route.

    Leaves that share a route stay apart: what they do is counted apart. A mesh of one route has no
    tests to make: its window is one ruster, and this is the `single` policy.
    """

    def __init__(self, mesh: Mesh, version: int = 0) -> None:
        self.mesh = mesh
        self.version = version
        self._tokens = [RouteToken(route) for route in mesh.leaf_routes]

    def rusters(self, window: Window) -> list[Ruster]:
        """One ruster for each leaf that any row reaches."""
        if len(self._tokens) == 1:
            return [Ruster(window, np.arange(window.rows), self._tokens[0])]
        reached = leaves_of(self.mesh.tree, window.batch.column, window.rows)
        return [
            Ruster(window, rows, token, leaf)
            for leaf, (rows, token) in enumerate(zip(reached, self._tokens, strict=True))
            if len(rows)
        ]
