"""The mesh: a classifier plus the routes it points to; a function from a tuple to a route.

It is data and nothing else: `spark/` runs it, `report/` draws it, `mesh_file.py` stores it.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from querymesh.classify.attributes import LeftOut
from querymesh.classify.tree import Tree, leaves
from querymesh.cost.route_time import WINDOW
from querymesh.errors import UnsupportedError
from querymesh.optimize.routes.uncertain import UncertainRoute, certain
from querymesh.query.model import Query
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


@dataclass(frozen=True)
class Mesh:
    """A trained mesh of one query. Leaf labels of `tree` index `routes`.

    Costs are per tuple in microseconds, over the sample: `expected_us` of this mesh by QM eq. 2,
    `single_us` of the best single route, `bound_us` the clairvoyant bound (DESIGN § 7). `why` says
    why the mesh is what it is, `found_by` which search found it, and `accuracy` (NaN where it was
    not asked for) how well the sample foretells tuples it does not hold (QM § 4.2).

    `uncertain` has an uncertain route for each leaf where orders of about equal cost are left to a
    lottery (QM § 5.4), else it is empty. `window` tuples are classified together (W^TC), and a
    ruster of fewer than `least_ruster` tuples travels with the window's largest (Table 3).
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
    sample_rows: int
    left_out: tuple[LeftOut, ...]
    why: str
    uncertain: tuple[UncertainRoute, ...] = ()
    found_by: str = ""
    accuracy: float = math.nan
    window: int = WINDOW
    least_ruster: int = 0

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

    def explain(self, html: str | os.PathLike[str] | None = None) -> str:
        """The mesh as text: the tree with shares, each leaf's route, the cost beside the single's.

        With `html=` the same is also written as one self-contained page with plots (needs the
        `report` extra).
        """
        from querymesh.report.text.mesh_text import mesh_text

        if html is not None:
            from querymesh.report.html.mesh_page import write_mesh_page

            write_mesh_page(self, html)
        return mesh_text(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mesh as JSON; `querymesh.load` reads it back."""
        from querymesh.mesh.mesh_file import save_mesh

        if self.query.outputs == ():
            raise UnsupportedError(
                "a mesh of several queries in one pass is not saved: run([...]) learns it anew"
            )
        save_mesh(self, path)

    def __str__(self) -> str:
        return self.explain()
