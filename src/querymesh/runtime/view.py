"""The tuples of one source as the driver sees them: their counts, and the meshes they ran on."""

from __future__ import annotations

import copy
import logging
import threading
from dataclasses import replace

from querymesh.fabric.core.metrics import Metrics
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.watch import Switch
from querymesh.query.model import BoundQuery, Probe
from querymesh.runtime.loop import KEPT_PROBLEMS
from querymesh.runtime.task_report import ViewReport

log = logging.getLogger("querymesh")


class View:
    """What happened to the tuples that arrive on one source.

    `versions` are the meshes so far, `switches` when and why they went over to another, `problems`
    what went wrong beside the query and did not stop it.
    """

    def __init__(self, alias: str, bound: BoundQuery, mesh: Mesh) -> None:
        self.alias = alias
        self.bound = bound
        self.versions: list[tuple[int, Mesh]] = [(0, mesh)]
        self.switches: list[Switch] = []
        self.problems: list[str] = []
        self._counts = Metrics()
        self._probing = {op.index for op in bound.operators if isinstance(op, Probe)}
        self._lock = threading.Lock()

    @property
    def counts(self) -> Metrics:
        """What was done so far: a copy, so that it stays as it is while tasks report."""
        with self._lock:
            return copy.deepcopy(self._counts)

    @property
    def mesh(self) -> Mesh:
        """The mesh in use now."""
        return self.versions[-1][1]

    @property
    def version(self) -> int:
        """The number of the mesh in use now; 0 is the one the query started with."""
        return self.versions[-1][0]

    def probes_in(self, metrics: Metrics) -> int:
        """Of some counts, the rows that probed another relation's state."""
        visits = metrics.visits.items()
        return sum(each.evaluations for (_, _, k), each in visits if k in self._probing)

    def route_shares(self) -> dict[str, float]:
        """The share of the tuples that took each route, under the newest mesh."""
        version, mesh = self.versions[-1]
        rows_by: dict[str, int] = {}
        for (of_version, leaf), rows in self.counts.leaf_rows.items():
            if of_version == version:
                route = " > ".join(mesh.operators[k - 1].name for k in mesh.leaf_routes[leaf])
                rows_by[route] = rows_by.get(route, 0) + rows
        total = sum(rows_by.values()) or 1
        return {route: rows / total for route, rows in rows_by.items()}

    def installed(self, version: int, mesh: Mesh, switch: Switch | None) -> None:
        """The stream goes over to another mesh."""
        if switch is not None:
            self.switches.append(replace(switch, stream=self.alias))
        self.versions.append((version, mesh))

    def tell(self, problem: str) -> None:
        """Note what went wrong, once, and warn of it."""
        if problem not in self.problems and len(self.problems) < KEPT_PROBLEMS:
            self.problems.append(problem)
            log.warning("%s; the query goes on", problem)

    def receive(self, report: ViewReport) -> None:
        """Take in what a task did."""
        with self._lock:
            self._counts.add(report.metrics)
            for problem in report.problems:
                self.tell(problem)
