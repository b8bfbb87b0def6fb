"""The meshes of a windowed join as text: one stream after the other."""

from __future__ import annotations

from textwrap import indent

from querymesh.mesh.join_mesh import JoinMesh
from querymesh.report.text.mesh_text import mesh_text
from querymesh.report.text.shares_text import shares_text


def join_mesh_text(mesh: JoinMesh) -> str:
    """What `explain()` prints: how the join is spread, and each stream's mesh."""
    parts = [f"join of {len(mesh.streams)} streams: {', '.join(mesh.streams)}"]
    if mesh.cube is not None:
        rates = mesh.rates or dict.fromkeys(mesh.streams, 1.0)
        parts.append(f"shards\n{indent(shares_text(mesh.cube, rates), '  ')}")
    for alias, each in mesh.meshes.items():
        parts.append(f"tuples that arrive on {alias}\n{indent(mesh_text(each), '  ')}")
    return "\n\n".join(parts)
