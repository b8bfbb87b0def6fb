"""A quick look into Parquet files on this machine: a sample in a few hundredths of a second.

Spark takes a tenth to a quarter of a second for the smallest job. Where the plan is a scan with
filters above it that we can evaluate ourselves, the driver reads the first rows of a few row groups
instead, page by page::

    Filter (k < 40)                evaluated here, on Arrow
    +- FileSourceScan parquet      some row groups of its first, middle and last file

What is looked at only ever teaches an order: no result depends on it. `None` wherever it is in any
doubt that the rows are as Spark would read them; then Spark is asked for a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from querymesh.errors import QueryMeshError
from querymesh.query.evaluate import evaluate
from querymesh.query.expr import Expr, columns_of, conjuncts_of
from querymesh.query.model import Filter, Query, Relation
from querymesh.query.parse.query import SOURCE, condition_of
from querymesh.spark.sampling.file_rows import local_path
from querymesh.spark.sampling.physical_plan import PlanNode
from querymesh.spark.sampling.sources import Source

SPOTS = 8
"""Row groups that are looked into, spread over the files."""

READ_FOR_ONE = 4
"""With a filter above the scan, so many rows are read for each one that is wanted."""

SPOT_BYTES = 4 << 20
"""So many bytes are decoded in each of them, about."""

PAGE_BYTES = 1 << 16
"""So many bytes are read at a time: a column's first pages, not all of a row group."""


@dataclass(frozen=True)
class LookedAt:
    """Rows of the files, and the share of them that the filters above the scan kept."""

    table: pa.Table
    kept: float


@dataclass(frozen=True)
class QuickLook:
    """What can be looked at: local Parquet files, and the filters above their scan."""

    files: tuple[str, ...]
    filters: tuple[Expr, ...]

    def rows(
        self, count: int, schema: pa.Schema, names: Sequence[str], telling: Sequence[str] = ()
    ) -> LookedAt | None:
        """About so many rows with some columns of the DataFrame's schema; None where the files have
        them not, or not of these types. Those that are `telling` are left out if files lack them,
        as they do what stands in the names of folders."""
        read = {column.name for each in self.filters for column in columns_of(each)} | {*names}
        if not read <= {*schema.names}:
            return None
        try:
            spots = _spots(self.files)
            there = {*spots[0][0].schema_arrow.names} if spots else set()
            chosen = [n for n in schema.names if n in names or (n in telling and n in there)]
            stored = pa.schema([field for field in schema if field.name in {*read, *chosen}])
            each = -(-count // max(1, len(spots))) * (READ_FOR_ONE if self.filters else 1)
            parts = [_first_rows(*spot, each, stored) for spot in spots]
            table = pa.Table.from_batches([part for part in parts if part is not None], stored)
            kept = self._filtered(table)
        except (OSError, KeyError, pa.ArrowException, QueryMeshError):
            return None
        share = kept.num_rows / table.num_rows if table.num_rows else 1.0
        return LookedAt(kept.select(chosen).slice(0, count), share)

    def _filtered(self, table: pa.Table) -> pa.Table:
        asked = Query("", (Relation(SOURCE, SOURCE),), self.filters, None)
        for operator in asked.bind({SOURCE: table.schema}).operators:
            assert isinstance(operator, Filter)
            table = table.filter(_holds(operator.expr, table))
        return table


def quick_look(plan: PlanNode, source: Source) -> QuickLook | None:
    """What can be looked at of a plan with this one source; None where Spark must be asked."""
    if source.format != "parquet":
        return None
    files = [local_path(part.address) for part in source.some_files if part.bytes]
    found = _filters(plan)
    if found is None or not files or None in files:
        return None
    return QuickLook(tuple(file for file in files if file is not None), tuple(found))


def _filters(plan: PlanNode) -> list[Expr] | None:
    """The conditions between the scan and the top; None if there is anything else, or one that is
    not ours to evaluate."""
    found: list[Expr] = []
    while plan.kind == "Filter" or _picks_columns(plan):
        if plan.kind == "Filter":
            try:
                found += conjuncts_of(condition_of(str(plan.node.condition().sql()), {}))
            except QueryMeshError:
                return None
        (plan,) = plan.children
    return found if plan.kind == "FileSourceScan" else None


def _picks_columns(plan: PlanNode) -> bool:
    """Whether a node hands on some of the columns below it, and computes none."""
    if plan.kind != "Project":
        return False
    below = plan.children[0].node.outputSet()
    return bool(plan.node.outputSet().subsetOf(below))


def _holds(condition: Expr, table: pa.Table) -> pa.Array:
    held = evaluate(
        condition,
        lambda column: table.column(column.name).combine_chunks(),
        table.num_rows,
        {},
    )
    return pc.fill_null(held, False)


def _spots(files: Sequence[str]) -> list[tuple[pq.ParquetFile, int]]:
    """Row groups spread over the files, each with its file."""
    found = []
    for path in files:
        file = pq.ParquetFile(path, buffer_size=PAGE_BYTES, pre_buffer=False)
        groups = file.metadata.num_row_groups
        wanted = min(groups, max(1, SPOTS // len(files)))
        found += [(file, number * groups // wanted) for number in range(wanted)]
    return found


def _first_rows(
    file: pq.ParquetFile, group: int, count: int, schema: pa.Schema
) -> pa.RecordBatch | None:
    """The first rows of a row group, as Spark hands them to a task."""
    names = set(file.schema_arrow.names)
    for field in schema:
        if field.name not in names:
            raise KeyError(field.name)
    batches: Iterator[pa.RecordBatch] = file.iter_batches(
        batch_size=_rows_within(file, group, count),
        row_groups=[group],
        columns=schema.names,
        use_threads=False,
    )
    batch = next(batches, None)
    if batch is None:
        return None
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _rows_within(file: pq.ParquetFile, group: int, count: int) -> int:
    """How many of the rows may be read, if they are as long as the footer says."""
    row_group = file.metadata.row_group(group)
    row_bytes = row_group.total_byte_size / max(1, row_group.num_rows)
    return max(1, min(count, int(SPOT_BYTES / max(1.0, row_bytes))))
