"""The meshes of a windowed join as one HTML page."""

from __future__ import annotations

import os
from html import escape

from querymesh.mesh.join_mesh import JoinMesh
from querymesh.report.html.mesh_page import mesh_sections, page_of, save_page
from querymesh.report.text.shares_text import shares_text


def write_join_page(mesh: JoinMesh, path: str | os.PathLike[str]) -> None:
    """Write the page: how the join is spread, and each stream's mesh with its plots."""
    title = f"Join of {', '.join(mesh.streams)}"
    sections = [f"<h1>{escape(title)}</h1>"]
    if mesh.cube is not None:
        shards = shares_text(mesh.cube, mesh.rates or dict.fromkeys(mesh.streams, 1.0))
        sections.append(f"<section><h2>Shards</h2><pre>{escape(shards)}</pre></section>")
    for alias, each in mesh.meshes.items():
        sections += mesh_sections(each, title=f"Tuples that arrive on {alias}")
    save_page(page_of(title, sections), path)
