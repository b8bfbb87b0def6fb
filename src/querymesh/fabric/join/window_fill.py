"""How many stored tuples of a relation are in its window when tuples of a stream arrive."""

from __future__ import annotations

import numpy as np

from querymesh.fabric.join.arrivals import Arrivals
from querymesh.index.store.stem import Stem
from querymesh.query.join import JoinQuery

MOST_ASKED = 64
"""A mean over so many arrivals is near enough."""


def rows_in_window(join: JoinQuery, relation: str, stem: Stem, arrivals: Arrivals) -> float:
    """The mean over arrivals, which have times if the window goes by time.

    A state also holds what has left the window and is not evicted yet. A partition knows its first
    and last time and its rows, which are taken to be evenly spread between them.
    """
    window = join.window_of(relation)
    if window is None:
        return float(stem.rows)
    if window.kind == "rows":
        return float(min(window.size, stem.rows))
    if not len(arrivals) or not stem.partitions:
        return 0.0
    step = -(-len(arrivals) // MOST_ASKED)
    newest = arrivals.times[::step].astype(np.float64)[:, None]
    first = np.array([part.first for part in stem.partitions if len(part)], np.float64)
    last = np.array([part.last for part in stem.partitions if len(part)], np.float64)
    rows = np.array([len(part) for part in stem.partitions if len(part)], np.float64)
    begin, end = np.maximum(newest - window.size, first), np.minimum(newest, last)
    span = np.maximum(last - first, 1.0)
    share = np.where(last > first, (end - begin) / span, end >= begin)
    return float((np.clip(share, 0.0, 1.0) * rows).sum(axis=1).mean())
