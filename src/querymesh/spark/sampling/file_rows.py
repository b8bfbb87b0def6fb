"""How many rows files have, by the footers or first lines of a few of them on this machine."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable, Sequence
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from querymesh.spark.sampling.sources import FilePart, Source

BEGINNING = 256 * 1024
"""So many bytes of a file of lines are read, to see how long its lines are."""

LEAST_FACTOR = {"parquet": 1.1, "lines": 1.5}


def local_path(address: str) -> str | None:
    """The path of an address on this machine; None of one elsewhere.

    >>> local_path("file:///data/a%20b.parquet"), local_path("s3a://bucket/a.parquet")
    ('/data/a b.parquet', None)
    """
    parts = urlsplit(address)
    if parts.scheme not in ("", "file") or parts.netloc:
        return None
    return unquote(parts.path)


def rows_by_files(source: Source) -> tuple[float, float] | None:
    """The rows of a source by a few of its files, and the factor by which that may be wrong.

    None where the files are elsewhere, of another format, or cannot be read.
    """
    if source.bytes is None or not source.some_files:
        return None
    if source.format == "parquet":
        return _scaled(source, _footer_rows, LEAST_FACTOR["parquet"])
    if source.format in ("csv", "json", "text"):
        return _scaled(source, _line_rows, LEAST_FACTOR["lines"])
    return None


def _scaled(
    source: Source, rows_in: Callable[[str, FilePart], float], least_factor: float
) -> tuple[float, float] | None:
    """Rows per byte of a few files, for all bytes of the source."""
    rows: list[float] = []
    sizes: list[int] = []
    for part in source.some_files:
        path = local_path(part.address)
        if path is None or part.bytes == 0:
            continue
        try:
            rows.append(rows_in(path, part))
        except (OSError, EOFError, pa.ArrowException):
            return None
        sizes.append(part.bytes)
    if not sizes or source.bytes is None:
        return None
    return source.bytes * sum(rows) / sum(sizes), max(least_factor, _spread(rows, sizes))


def _spread(rows: Sequence[float], sizes: Sequence[int]) -> float:
    """By which factor the files' rows per byte differ, about their mean."""
    dense = [count / size for count, size in zip(rows, sizes, strict=True) if count]
    return math.sqrt(max(dense) / min(dense)) if dense else 1.0


def _footer_rows(path: str, part: FilePart) -> float:
    return float(pq.read_metadata(path).num_rows)


def _line_rows(path: str, part: FilePart) -> float:
    """Lines of the beginning, for the whole file; of one that is packed, by how far it was read."""
    with open(path, "rb") as file:
        if path.endswith(".gz"):
            with gzip.GzipFile(fileobj=file) as unpacked:
                lines = unpacked.read(4 * BEGINNING).count(b"\n")
            read = min(file.tell(), part.bytes)
        else:
            text = file.read(BEGINNING)
            lines, read = text.count(b"\n"), len(text)
    return max(1, lines) * part.bytes / max(1, read)
