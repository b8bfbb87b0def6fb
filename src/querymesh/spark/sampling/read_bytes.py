"""What a task reads of a file before it has its first row: of Parquet a row group's columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from querymesh.spark.sampling.file_rows import local_path
from querymesh.spark.sampling.physical_plan import PlanNode
from querymesh.spark.sampling.sources import Source, source_of

ROW_GROUP_BYTES = 128 << 20
"""Writers end a row group or stripe at about this size."""

BUFFER_BYTES = 1 << 20
"""What is read of a file that can be read row by row, at most, before the first rows are there."""

COLUMNAR = ("parquet", "orc")


@dataclass(frozen=True)
class FileReading:
    """How a scan reads its files.

    - `bytes`: of all its files
    - `first_read_bytes`: what a task reads before the first row
    - `row_group_bytes`: how much of a file one row group takes, all columns; None if unknown
    - `is_text`: rows are parsed one by one
    """

    bytes: int
    first_read_bytes: int
    row_group_bytes: int | None = None
    is_text: bool = False


def file_reading(leaf: PlanNode) -> FileReading | None:
    """How a leaf of a plan reads its files; None if it has none."""
    if leaf.kind != "FileSourceScan":
        return None
    source = source_of(leaf)
    if not source.files or source.bytes is None:
        return None
    if source.format not in COLUMNAR:
        return FileReading(source.bytes, BUFFER_BYTES, is_text=True)
    required = leaf.node.requiredSchema()
    if source.format == "parquet":
        asked = {str(name) for name in required.fieldNames()}
        if (measured := _by_footer(source, asked)) is not None:
            return measured
    share = min(1.0, int(required.defaultSize()) / source.row_bytes)
    first = int(min(source.bytes / source.files, ROW_GROUP_BYTES) * share)
    return FileReading(source.bytes, first)


def _by_footer(source: Source, columns: set[str]) -> FileReading | None:
    """By the row groups of one of the files, if it is on this machine."""
    part = source.some_files[0]
    path = local_path(part.address)
    if path is None or source.bytes is None:
        return None
    try:
        footer: Any = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return None
    if footer.num_row_groups == 0:
        return FileReading(source.bytes, 0)
    group = footer.row_group(0)
    chunks = (group.column(number) for number in range(group.num_columns))
    named = ((chunk.path_in_schema.partition(".")[0], chunk) for chunk in chunks)
    first = sum(chunk.total_compressed_size for name, chunk in named if name in columns)
    return FileReading(source.bytes, first, -(-part.bytes // footer.num_row_groups))
