"""The one line that a training leaves in the log, whoever trained."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from querymesh.mesh.mesh import Mesh

log = logging.getLogger("querymesh")


def tell_learned(rows: int, seconds: float, why: str, calls: int = 0) -> None:
    """Log what was learned, from how many rows, and how long it took.

    `calls` are rows on which users' functions were called for it.
    """
    called = f" ({calls:,} calls of Python functions)" if calls else ""
    log.info("learned from %s rows in %.1f s%s: %s", f"{rows:,}", seconds, called, why)


def tell_join_learned(meshes: Mapping[str, Mesh], seconds: float) -> None:
    """The same of a join, in one line for all its streams."""
    rows = sum(mesh.sample_rows for mesh in meshes.values())
    each = "; ".join(f"{alias}: {mesh.why}" for alias, mesh in meshes.items())
    tell_learned(rows, seconds, each)
