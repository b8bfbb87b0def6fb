"""A cell of the grid, and what it needs: tables, Spark, and the endpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.costly.endpoint import Endpoint
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.guest.tables import StoredTable, Workshop, stored

TASKS = 2
"""The session has so many cores, and tables are stored so that as many tasks read them."""


@dataclass
class Ground:
    """Where a run takes place."""

    workshop: Workshop
    endpoint: Endpoint
    folder: Path
    _made: int = field(default=0, init=False)

    @property
    def bench(self) -> Bench:
        """Scale, session, and where to say how far it is."""
        return self.workshop.bench

    def stored(self, table: pa.Table) -> StoredTable:
        """A table that tasks read."""
        self._made += 1
        return stored(table, self.folder / f"table-{self._made}", parts=TASKS)

    def memo_folder(self) -> str:
        """A folder in which nobody has kept an answer yet."""
        return mkdtemp(dir=self.folder, prefix="memo-")

    def frame(self, path: Path) -> DataFrame:
        """The table at a path."""
        return self.bench.session.read.parquet(str(path))


@dataclass(frozen=True)
class Cell:
    """One experiment: its findings are the lines of the table, those with a target its verdicts."""

    group: str
    name: str
    run: Callable[[Ground], list[Finding]]
