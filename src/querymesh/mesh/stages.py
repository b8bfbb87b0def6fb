"""Where each operator of a route runs: in Catalyst, then in Python, then in Catalyst again.

A filter has one Python stage, because a row's way to Python and back is dear. So every route is cut
at two places, for each leaf of the mesh's tree on its own::

    route of a leaf     4  >  1  >  3  >  2         split (1, 2)
                       '-'   '-------'   '-'
                      before  Python    after       text  4 > [1 > 3] > 2

Each part may be empty. Catalyst evaluates `before` and `after` as one condition for each leaf, the
fabric runs the routes of `Stages.python_mesh` in between.

Which leaves have nothing to do in Python: those that `Stages.crossing` says False of. Spark sends
their rows all the same, as it sends every row that survives `before`; their route in the Python
mesh is empty, so that the fabric lets them pass untouched. If `Stages.in_python` is empty, there is
no Python stage.

Where an operator does not run in the same stage in all leaves (`Stages.is_alike` is False), every
stage must find the same leaf for a row, or a condition would be left out. Catalyst then tells the
leaf and sends its number, and Python runs `python_mesh(mesh, leaf_column=...)`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from querymesh.classify.tree import Leaf, Split, Threshold, Tree, relabelled
from querymesh.stats.profile import Route, route_text

if TYPE_CHECKING:
    from querymesh.mesh.mesh import LeafStats, Mesh


class Stage(IntEnum):
    """The three places where an operator can run, in the order in which a row comes to them."""

    BEFORE = 0
    PYTHON = 1
    AFTER = 2


@dataclass(frozen=True, slots=True)
class Parts:
    """One leaf's route in its three parts."""

    before: Route
    python: Route
    after: Route

    @property
    def as_sets(self) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        """Which operators run in each stage, in whatever order."""
        return frozenset(self.before), frozenset(self.python), frozenset(self.after)

    @property
    def split(self) -> tuple[int, int]:
        """How many operators run before the Python stage, and how many in it."""
        return len(self.before), len(self.python)

    @property
    def route(self) -> Route:
        """The route that these are the parts of."""
        return self.before + self.python + self.after

    def __str__(self) -> str:
        python = f"[{route_text(self.python)}]" if self.python else ""
        return " > ".join(filter(None, (route_text(self.before), python, route_text(self.after))))


@dataclass(frozen=True, slots=True)
class Stages:
    """For each leaf of a mesh's tree, left to right: how many operators at the head of its route
    run in Catalyst before the Python stage, and how many follow in Python.

    >>> Stages(((1, 2),)).parts_of(0, (4, 1, 3, 2))
    Parts(before=(4,), python=(1, 3), after=(2,))
    >>> str(_)
    '4 > [1 > 3] > 2'
    """

    splits: tuple[tuple[int, int], ...]

    def parts_of(self, leaf: int, route: Route) -> Parts:
        """The parts of a route that is the route of this leaf."""
        before, python = self.splits[leaf]
        end = before + python
        return Parts(route[:before], route[before:end], route[end:])

    def parts(self, mesh: Mesh) -> tuple[Parts, ...]:
        """The parts of each leaf's route, left to right."""
        return tuple(self.parts_of(leaf, route) for leaf, route in enumerate(mesh.leaf_routes))

    def before(self, mesh: Mesh) -> tuple[Route, ...]:
        """For each leaf, what Catalyst evaluates first."""
        return tuple(parts.before for parts in self.parts(mesh))

    def python(self, mesh: Mesh) -> tuple[Route, ...]:
        """For each leaf, what the fabric evaluates; empty where nothing is left to it."""
        return tuple(parts.python for parts in self.parts(mesh))

    def after(self, mesh: Mesh) -> tuple[Route, ...]:
        """For each leaf, what Catalyst evaluates on the rows that came back from Python."""
        return tuple(parts.after for parts in self.parts(mesh))

    def in_python(self, mesh: Mesh) -> frozenset[int]:
        """The operators that run in Python in one leaf at least."""
        return frozenset(operator for route in self.python(mesh) for operator in route)

    @property
    def crossing(self) -> tuple[bool, ...]:
        """For each leaf, whether its rows have something to do in Python."""
        return tuple(python > 0 for _, python in self.splits)

    def is_alike(self, mesh: Mesh) -> bool:
        """Whether every operator runs in the same stage in all leaves."""
        return len({parts.as_sets for parts in self.parts(mesh)}) <= 1

    def text(self, mesh: Mesh, leaf: int) -> str:
        """A leaf's route for people, its Python part in brackets: `4 > [1 > 3] > 2`."""
        return str(self.parts_of(leaf, mesh.leaf_routes[leaf]))

    def python_mesh(self, mesh: Mesh, leaf_column: str | None = None) -> Mesh:
        """The mesh that runs in Python: same leaves, each with the Python part of its route.

        Operators keep their numbers. Where all leaves have the same Python part there is nothing to
        tell apart, and it has one leaf and asks for no column. With `leaf_column`, its tree asks
        that column alone, which has each row's leaf, numbered from 0, left to right.
        """
        parts, choices = self.python(mesh), self._open_choices(mesh)
        if len(set(parts)) == 1 and len(set(choices)) <= 1:
            return replace(
                mesh,
                tree=Leaf(0),
                routes=parts[:1],
                leaves=(_together(mesh.leaves),),
                uncertain=choices[:1],
                stages=None,
            )
        routes = tuple(dict.fromkeys(parts))
        labels = [routes.index(route) for route in parts]
        tree = relabelled(mesh.tree, labels)
        if leaf_column is not None:
            tree = _by_number(leaf_column, labels, 0, len(labels))
        alike = len({frozenset(route) for route in parts}) == 1
        return replace(
            mesh,
            tree=tree,
            routes=routes,
            uncertain=choices,
            # A tuple may go along with others only where all of them still have the same to do.
            least_ruster=mesh.least_ruster if alike else 0,
            classify_every=mesh.classify_every if alike else 1,
            stages=None,
        )

    def _open_choices(self, mesh: Mesh) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Uncertain routes cut down to their Python parts: a lottery never crosses a stage."""
        return tuple(
            tuple(
                kept for choice in steps if (kept := tuple(k for k in choice if k in set(python)))
            )
            for steps, python in zip(mesh.uncertain, self.python(mesh), strict=False)
        )


LEAF = "__querymesh_leaf"
"""The column that has a row's leaf, where stages must agree on it."""


def python_part(mesh: Mesh) -> Mesh:
    """What runs in Python of a mesh: all of it, or the middle part of its routes."""
    if mesh.stages is None:
        return mesh
    return mesh.stages.python_mesh(mesh, None if mesh.stages.is_alike(mesh) else LEAF)


def stages_fault(stages: Stages, routes: tuple[Route, ...]) -> str:
    """What keeps stages from fitting the routes of a tree's leaves; empty if nothing does."""
    if len(stages.splits) != len(routes):
        return (
            f"the tree has {len(routes)} leaves, but the stages of {len(stages.splits)} are given"
        )
    for leaf, ((before, python), route) in enumerate(zip(stages.splits, routes, strict=True)):
        if before < 0 or python < 0 or before + python > len(route):
            return (
                f"the stages of leaf {leaf}, {before} before and {python} in Python, do not fit a "
                f"route of {len(route)} operators"
            )
    return ""


def _together(leaves: tuple[LeafStats, ...]) -> LeafStats:
    """The figures of several leaves as those of one."""
    if len(leaves) == 1:
        return leaves[0]
    share = sum(leaf.share for leaf in leaves)
    weights = [leaf.share / share if share else 0.0 for leaf in leaves]
    mean = {
        name: sum(w * getattr(leaf, name) for w, leaf in zip(weights, leaves, strict=True))
        for name in ("route_us", "single_us")
    }
    return replace(leaves[0], share=min(share, 1.0), **mean)


def _by_number(column: str, labels: list[int], first: int, end: int) -> Tree:
    """A balanced tree over the numbers from `first` to below `end` that a column holds."""
    if end - first == 1:
        return Leaf(labels[first])
    middle = (first + end) // 2
    return Split(
        Threshold(column, middle - 0.5, False),
        _by_number(column, labels, first, middle),
        _by_number(column, labels, middle, end),
    )
