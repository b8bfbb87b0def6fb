"""Tables as Parquet folders, and copies of them that nothing has been learned about.

`qm.where` may use again within a session what it learned about a plan. To see what a first call
costs, each run gets a path of its own: a folder of hard links, so that the file system's cache is
as warm for everybody.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from querymesh.errors import QueryMeshError
from querymesh_lab.bench.case import Bench

PARTS = 4
TRIED_ROWS = 200_000
"""Forms and orders of the rival are tried on at most so many rows, drawn from the whole table."""

_numbers = count()


class AbsentError(QueryMeshError):
    """What a case needs is not here: data, or a generator; the text says where to get it."""


@dataclass(frozen=True)
class StoredTable:
    """A folder of Parquet files."""

    folder: Path
    rows: int
    details: dict[str, object] = field(default_factory=dict)

    def read(self, session: SparkSession) -> DataFrame:
        """The table as a DataFrame, by its own path."""
        return session.read.parquet(str(self.folder))

    @contextmanager
    def linked(self) -> Iterator[Path]:
        """The table under a path that nobody has read before; it goes afterwards."""
        copy = self.folder.with_name(f"{self.folder.name}-{next(_numbers)}")
        shutil.copytree(self.folder, copy, copy_function=_link)
        try:
            yield copy
        finally:
            shutil.rmtree(copy)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


@dataclass
class Workshop:
    """Where the tables of one run are kept, each made once, by the first case that asks."""

    bench: Bench
    folder: Path
    made: dict[str, StoredTable] = field(default_factory=dict)

    @property
    def session(self) -> SparkSession:
        """The Spark session of the run."""
        return self.bench.session

    def table(self, name: str, make: Callable[[Path], StoredTable]) -> StoredTable:
        """The table of this name, made where it is not there yet."""
        if name not in self.made:
            self.bench.log(f"  making {name} …")
            self.made[name] = make(self.folder / name)
        return self.made[name]

    def forget(self) -> None:
        """Remove all tables: the next case has others."""
        for table in self.made.values():
            shutil.rmtree(table.folder, ignore_errors=True)
        self.made.clear()

    def small(self, table: StoredTable) -> StoredTable:
        """At most `TRIED_ROWS` rows of a table, drawn by chance."""
        if table.rows <= TRIED_ROWS:
            return table
        name = table.folder.name + "-small"

        def draw(folder: Path) -> StoredTable:
            drawn = table.read(self.session).sample(fraction=TRIED_ROWS / table.rows, seed=7)
            drawn.repartition(PARTS).write.parquet(str(folder))
            return StoredTable(folder, self.session.read.parquet(str(folder)).count())

        return self.table(name, draw)


def stored(table: pa.Table, folder: Path, parts: int = PARTS) -> StoredTable:
    """Write a table as some Parquet files of equal size, in its order."""
    folder.mkdir(parents=True)
    length = max(1, -(-table.num_rows // parts))
    for number, start in enumerate(range(0, max(table.num_rows, 1), length)):
        pq.write_table(table.slice(start, length), folder / f"part-{number:03}.parquet")
    return StoredTable(folder, table.num_rows)


def stored_by_parts(
    make: Callable[[int, int], pa.Table], rows: int, folder: Path, most_rows: int = 250_000
) -> StoredTable:
    """Write as many rows as asked for, a part at a time: `make(rows, seed)` gives one.

    There are always several parts, or a small table would be read by a single task.
    """
    folder.mkdir(parents=True)
    part_rows = min(most_rows, -(-rows // PARTS))
    for number, start in enumerate(range(0, rows, part_rows)):
        part = make(min(part_rows, rows - start), number)
        pq.write_table(part, folder / f"part-{number:03}.parquet")
    return StoredTable(folder, rows)
