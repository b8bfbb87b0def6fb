"""A run as one HTML page: its mesh with plots and what it did, or what its planner says."""

from __future__ import annotations

import os

from querymesh.mesh.join_mesh import JoinMesh
from querymesh.report.explain import write_page
from querymesh.report.html.mesh_page import write_mesh_page
from querymesh.runtime.run import Run


def write_run_page(run: Run, path: str | os.PathLike[str]) -> None:
    """Write the page of a run to a file."""
    if (plan_loop := run.plan_loop) is not None:
        plan_loop.explain(html=path)
    elif isinstance(run.mesh, JoinMesh):
        write_page(run.mesh, path)
    else:
        view = run.view
        write_mesh_page(view.mesh, path, metrics=view.counts, title="A run", version=view.version)
