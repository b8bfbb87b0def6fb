"""The plan's own statistics: how much a DataFrame reads, and about how many rows it has.

Spark's figure for a filter or a join of files is of little use (it knows no partition that is
pruned at planning, and multiplies the sizes of a join's sides), so the sources are asked and the
plan above them is walked. Filters count as if they kept everything: `rows` is what reaches the
filters, at most.

    source                        rows                          wrong by a factor of about
    range, local rows, cached     known                         1
    Parquet                       footers of three files        1.1, more if files differ
    CSV, JSON, text               lines of three files' begin   1.5
    other files, or far away      bytes / width by the schema   10 (compression: 2 to 20)
    RDD, source without size      unknown
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from querymesh.spark.sampling.file_rows import rows_by_files
from querymesh.spark.sampling.physical_plan import PlanNode, physical_plan
from querymesh.spark.sampling.sources import Source, source_of

BY_WIDTH = 10.0
"""Bytes over a width by types may be wrong by this factor: text, compression, dictionaries."""

JOINED = 3.0
"""A join is taken to have the rows of its larger side, and may be wrong by this factor more."""


@dataclass(frozen=True)
class RowEstimate:
    """About `rows`: from so many divided by `factor` to so many times `factor`."""

    rows: float
    factor: float = 1.0


@dataclass(frozen=True)
class PlanStatistics:
    """What is known of a DataFrame before it runs.

    `bytes` are those of all its sources, after partitions are pruned; None where a source does not
    say. `rows` is set where the plan knows them exactly. `files` and `tasks` are of file sources:
    how many are read, by about how many tasks. `plan` is what they were read from.
    """

    bytes: int | None
    rows: int | None
    files: int | None
    tasks: int | None
    sources: tuple[Source, ...]
    plan: PlanNode

    def estimated_rows(self) -> RowEstimate | None:
        """About how many rows there are, by files' footers where there are some; None if unknown.

        This reads up to three files' ends or beginnings, where they lie on this machine.
        """
        return _rows(self.plan, iter(self.sources), estimated_source_rows)


def plan_statistics(frame: DataFrame) -> PlanStatistics:
    """The statistics of a DataFrame's plan; nothing runs and no file is read."""
    plan = physical_plan(frame)
    sources = tuple(source_of(leaf) for leaf in plan.leaves())
    known = _rows(plan, iter(sources), _known_rows)
    sizes = [source.bytes for source in sources]
    return PlanStatistics(
        bytes=None if None in sizes else sum(size for size in sizes if size is not None),
        rows=round(known.rows) if known is not None and known.factor == 1 else None,
        files=_total([source.files for source in sources]),
        tasks=_total([source.tasks for source in sources]),
        sources=sources,
        plan=plan,
    )


def estimated_source_rows(source: Source) -> RowEstimate | None:
    """About how many rows a source has."""
    if source.rows is not None:
        return RowEstimate(source.rows)
    if source.bytes is None:
        return None
    if (by_files := rows_by_files(source)) is not None:
        rows, factor = by_files
        return RowEstimate(rows, factor)
    return RowEstimate(source.bytes / source.row_bytes, BY_WIDTH)


def _known_rows(source: Source) -> RowEstimate | None:
    return None if source.rows is None else RowEstimate(source.rows)


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


SourceRows = Callable[[Source], RowEstimate | None]


def _rows(plan: PlanNode, sources: Iterator[Source], of: SourceRows) -> RowEstimate | None:
    """The rows of a plan by those of its sources, which come in the order of its leaves."""
    if not plan.children:
        return of(next(sources))
    below = [_rows(child, sources, of) for child in plan.children]
    known = [rows for rows in below if rows is not None]
    if len(known) < len(below):
        return _limited(plan)
    factor = max(rows.factor for rows in known)
    if plan.kind == "Union":
        return RowEstimate(sum(rows.rows for rows in known), factor)
    if plan.kind in ("CartesianProduct", "BroadcastNestedLoopJoin"):
        return RowEstimate(math.prod(rows.rows for rows in known), factor * JOINED)
    if len(known) > 1:
        return RowEstimate(max(rows.rows for rows in known), factor * JOINED)
    (only,) = known
    limit = _limited(plan)
    if limit is not None:
        return limit if limit.rows <= only.rows / only.factor else _least(only, limit)
    if plan.kind == "Sample":
        share = float(plan.node.upperBound()) - float(plan.node.lowerBound())
        return RowEstimate(only.rows * share, factor * 1.1)
    if plan.kind in _CHANGE_THE_COUNT:
        return RowEstimate(only.rows, factor * JOINED)
    return only


def _limited(plan: PlanNode) -> RowEstimate | None:
    if plan.kind not in ("GlobalLimit", "CollectLimit", "TakeOrderedAndProject"):
        return None
    limit = int(plan.node.limit())
    return RowEstimate(limit) if limit >= 0 else None


def _least(rows: RowEstimate, limit: RowEstimate) -> RowEstimate:
    return RowEstimate(min(rows.rows, limit.rows), rows.factor)


_CHANGE_THE_COUNT = frozenset(
    {"Generate", "Expand", "HashAggregate", "ObjectHashAggregate", "SortAggregate", "MapInPandas",
     "MapInArrow", "PythonMapInArrow", "MapPartitions", "FlatMapGroupsInPandas",
     "FlatMapGroupsInArrow"}
)  # fmt: skip
"""Nodes of one child that may give more or fewer rows; of filters only fewer, which is not known"""
