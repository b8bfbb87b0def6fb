"""The sources of a plan: what Spark knows of each before anything is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from querymesh.spark.sampling.physical_plan import PlanNode

UNKNOWN_BYTES = 1 << 60
"""Spark says 8 EB (2^63 - 1) of what it cannot know; no source is as large as this."""

LOOKED_AT = 3
"""Of so many files at most the footers or first lines are read to learn how wide rows are."""


@dataclass(frozen=True)
class FilePart:
    """One file of a source: its address and its size."""

    address: str
    bytes: int


@dataclass(frozen=True)
class Source:
    """A leaf of a plan: bytes on disk or in memory, rows and files, as far as Spark knows them.

    Of files only those in partitions that are not pruned count. `row_bytes` is Spark's guess of a
    row's width, from its types. `some_files` are a few of the files, spread over all of them.
    """

    kind: str
    bytes: int | None = None
    rows: int | None = None
    files: int | None = None
    tasks: int | None = None
    format: str = ""
    row_bytes: int = 8
    some_files: tuple[FilePart, ...] = ()


def source_of(leaf: PlanNode) -> Source:
    """What Spark knows of a leaf."""
    reader = _READERS.get(leaf.kind)
    if reader is not None:
        return reader(leaf)
    return _by_statistics(leaf)


def _files(leaf: PlanNode) -> Source:
    scan = leaf.node
    listing, relation = scan.selectedPartitions(), scan.relation()
    count, size = int(listing.totalNumberOfFiles()), int(listing.totalFileSize())
    listed = listing.toPartitionArray() if count else []
    picked = sorted({number * (count - 1) // max(1, LOOKED_AT - 1) for number in range(LOOKED_AT)})
    some = [listed[number] for number in picked[:count]]
    return Source(
        leaf.kind,
        bytes=size,
        rows=0 if count == 0 else None,
        files=count,
        tasks=_file_tasks(relation.sparkSession(), count, size),
        format=str(relation.fileFormat().toString()).lower(),
        row_bytes=max(1, int(relation.dataSchema().defaultSize())),
        some_files=tuple(FilePart(str(f.urlEncodedPath()), int(f.fileSize())) for f in some),
    )


def _file_tasks(session: Any, files: int, size: int) -> int:
    """About how many tasks read these files: Spark cuts them up and packs small ones together."""
    conf = session.sessionState().conf()
    opening, most = int(conf.filesOpenCostInBytes()), int(conf.filesMaxPartitionBytes())
    weight = size + files * opening
    split = min(most, max(opening, weight // max(1, int(session.leafNodeDefaultParallelism()))))
    return -(-weight // max(1, split))


def _range(leaf: PlanNode) -> Source:
    rows = int(str(leaf.node.numElements()))
    return Source(leaf.kind, bytes=8 * rows, rows=rows, tasks=int(leaf.node.numSlices()))


def _local_table(leaf: PlanNode) -> Source:
    rows, width = int(leaf.node.rows().size()), _width(leaf.node)
    return Source(leaf.kind, bytes=rows * width, rows=rows, row_bytes=width)


def _cached(leaf: PlanNode) -> Source:
    known = leaf.node.relation().computeStats()
    return Source(
        leaf.kind,
        bytes=int(str(known.sizeInBytes())),
        rows=_row_count(known),
        row_bytes=_width(leaf.node),
    )


def _nothing(leaf: PlanNode) -> Source:
    return Source(leaf.kind, bytes=0, rows=0)


def _one_row(leaf: PlanNode) -> Source:
    return Source(leaf.kind, bytes=8, rows=1)


def _by_statistics(leaf: PlanNode) -> Source:
    """By the statistics of the logical node behind a physical one, as connectors report them."""
    link = leaf.node.logicalLink()
    if link.isEmpty():
        return Source(leaf.kind, row_bytes=_width(leaf.node))
    known = link.get().stats()
    size = int(str(known.sizeInBytes()))
    return Source(
        leaf.kind,
        bytes=size if size < UNKNOWN_BYTES else None,
        rows=_row_count(known),
        row_bytes=_width(leaf.node),
    )


def _row_count(statistics: Any) -> int | None:
    count = statistics.rowCount()
    return int(str(count.get())) if count.isDefined() else None


def _width(node: Any) -> int:
    return max(1, int(node.schema().defaultSize()))


_READERS = {
    "FileSourceScan": _files,
    "Range": _range,
    "LocalTableScan": _local_table,
    "InMemoryTableScan": _cached,
    "EmptyRelation": _nothing,
    "OneRowRelation": _one_row,
}
