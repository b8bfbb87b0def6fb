"""The mesh: a classifier plus the routes it points to; a function from a tuple to a route.

It is data and nothing else: `spark/` runs it, `report/` draws it, `mesh_file.py` stores it. The
meshes of several queries in one pass and the orders of a planner are types of their own.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace

from querymesh.classify.attributes import LeftOut
from querymesh.classify.tree import Leaf, Tree, leaves
from querymesh.cost.route_time import WINDOW
from querymesh.errors import UnsupportedError
from querymesh.explained import Explained, counted
from querymesh.mesh.route import UncertainRoute, certain, written_route
from querymesh.mesh.stages import Stages
from querymesh.query.model import BoundQuery, Query
from querymesh.stats.profile import Route


@dataclass(frozen=True, slots=True)
class OperatorStats:
    """One operator as the profile saw it: cost of one evaluation, rows out per row in.

    `drop_us` and `pass_us` are its cost on a tuple it drops and on one it lets through; a mesh
    saved without them has the mean for both.
    """

    name: str
    after: frozenset[int]
    cost_us: float
    pass_rate: float
    drop_us: float = math.nan
    pass_us: float = math.nan

    def __post_init__(self) -> None:
        for name in ("drop_us", "pass_us"):
            if math.isnan(getattr(self, name)):
                object.__setattr__(self, name, self.cost_us)


@dataclass(frozen=True, slots=True)
class LeafStats:
    """One leaf, left to right: its share of the tuples, their cost on its route and on `single`."""

    share: float
    route_us: float
    single_us: float


@dataclass(frozen=True, slots=True)
class TrainedOn:
    """The sample a mesh was learned from: its rows, the search that found the mesh, and its
    accuracy: how well it foretells tuples it does not hold (QM § 4.2), None if nobody asked."""

    rows: int
    found_by: str = ""
    accuracy: float | None = None


@dataclass(frozen=True)
class Mesh(Explained):
    """The mesh of one query. Leaf labels of `tree` index `routes`.

    Costs are per tuple in microseconds, over the sample: `expected_us` of this mesh by QM eq. 2,
    `single_us` of the best single route, `bound_us` the clairvoyant bound; NaN where nothing was
    measured. `why` says why the mesh is what it is. `trained_on` is the sample it was learned from,
    None if its one route is the order as written.

    `uncertain` has an uncertain route for each leaf where orders of about equal cost are left to a
    lottery (QM § 5.4), else it is empty. `window` tuples are classified together (W^TC), and a
    ruster of fewer than `least_ruster` tuples travels with the window's largest (Table 3). Of
    `classify_every` tuples in a row the first is classified, and the others follow it (QM § 5.1).
    `stages` says which operators Catalyst evaluates and which the fabric; None where one of them
    runs them all.
    """

    query: Query
    operators: tuple[OperatorStats, ...]
    tree: Tree
    routes: tuple[Route, ...]
    leaves: tuple[LeafStats, ...]
    single: Route
    expected_us: float
    single_us: float
    bound_us: float
    trained_on: TrainedOn | None
    left_out: tuple[LeftOut, ...]
    why: str
    uncertain: tuple[UncertainRoute, ...] = ()
    window: int = WINDOW
    least_ruster: int = 0
    classify_every: int = 1
    stages: Stages | None = None

    @property
    def is_learned(self) -> bool:
        """Whether its routes were chosen by what was seen; else they are the order as written."""
        return self.trained_on is not None

    @property
    def sample_rows(self) -> int:
        """How many rows its routes were chosen by; none if they are as written."""
        return 0 if self.trained_on is None else self.trained_on.rows

    @property
    def found_by(self) -> str:
        """The search that found it, in words; empty where none did."""
        return "" if self.trained_on is None else self.trained_on.found_by

    @property
    def accuracy(self) -> float | None:
        """How well its sample foretells other tuples; None where nobody asked."""
        return None if self.trained_on is None else self.trained_on.accuracy

    def found(self, by: str, accuracy: float | None = None) -> Mesh:
        """The same mesh with the search that found it on record."""
        return replace(self, trained_on=TrainedOn(self.sample_rows, by, accuracy))

    @property
    def is_single(self) -> bool:
        """Whether all tuples take one route."""
        return len(self.routes) == 1

    @property
    def leaf_routes(self) -> tuple[Route, ...]:
        """The route of each leaf, left to right."""
        return tuple(self.routes[leaf.label] for leaf, _ in leaves(self.tree))

    @property
    def leaf_choices(self) -> tuple[UncertainRoute, ...]:
        """The route of each leaf with the choices it leaves open; none but for an uncertain one."""
        return self.uncertain or tuple(certain(route) for route in self.leaf_routes)

    @property
    def gain(self) -> float:
        """How many times cheaper than the best single route the mesh is expected to be."""
        return self.single_us / self.expected_us if self.expected_us > 0 else 1.0

    @property
    def headline(self) -> str:
        """What it is, in a line: its routes, its operators, what it was learned from."""
        size = (
            f"{counted(len(self.routes), 'route')} over {counted(len(self.operators), 'operator')}"
        )
        if not self.is_learned:
            return f"{size}, not trained yet"
        return f"{size}, learned from {counted(self.sample_rows, 'sampled row')}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.headline}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mesh as JSON; `querymesh.load` reads it back."""
        from querymesh.mesh.mesh_file import save_mesh

        save_mesh(self, path)


@dataclass(frozen=True, repr=False)
class SharedMesh(Mesh):
    """The mesh of several queries that share one pass over their source (QM § 5.2)."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refused: the queries' functions and outputs are in no one SQL text."""
        raise UnsupportedError(
            "a mesh of several queries in one pass is not saved: run_all([...]) learns it anew"
        )


@dataclass(frozen=True, repr=False)
class PlannedOrder(Mesh):
    """The one route that a planner chose for a stream, after so many profiled tuples."""

    profiled_rows: int = 0

    @property
    def is_learned(self) -> bool:
        """A planner chooses by what it has seen."""
        return True

    @property
    def sample_rows(self) -> int:
        """How many tuples were profiled before it was chosen."""
        return self.profiled_rows


def written_order(query: Query, names: tuple[str, ...], after: tuple[frozenset[int], ...]) -> Mesh:
    """The order as written, for a stream of which nothing is known yet (plan staging, QM § 4.2)."""
    route = written_route(after)
    operators = tuple(
        OperatorStats(name, before, math.nan, math.nan)
        for name, before in zip(names, after, strict=True)
    )
    why = (
        "nothing is known yet: the order as written, until a sample is profiled"
        if len(names) > 1
        else "fewer than two operators have one order"
    )
    return Mesh(
        query=query,
        operators=operators,
        tree=Leaf(0),
        routes=(route,),
        leaves=(LeafStats(1.0, math.nan, math.nan),),
        single=route,
        expected_us=math.nan,
        single_us=math.nan,
        bound_us=math.nan,
        trained_on=None,
        left_out=(),
        why=why,
    )


def written_mesh(bound: BoundQuery, why: str | None = None) -> Mesh:
    """The order as written of a query's operators; `why` says why nothing else was chosen."""
    names = tuple(operator.name for operator in bound.operators)
    mesh = written_order(bound.query, names, bound.precedence)
    return mesh if why is None else replace(mesh, why=why)
