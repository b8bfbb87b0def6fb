"""How the states of a join are found: one class for each kind of index, with its own options."""

from __future__ import annotations

from querymesh.index.tune.indexing import Indexing
from querymesh.index.tune.kinds import Amri, Auto, Bitmap, Hash

__all__ = ["Amri", "Auto", "Bitmap", "Hash", "Indexing"]
