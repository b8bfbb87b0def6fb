"""Whether rivals gave the same answer: a result as a few numbers that no order of rows changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

Fingerprint = tuple[int, int, int]

SUMS = ("COUNT(*)", "COALESCE(SUM(id), 0)", "COALESCE(SUM((id * 7919) % 104729), 0)")
"""The timed answer of every engine: rows, and two sums over their ids, in SQL all of them speak."""


def of_ids(result: DataFrame) -> Fingerprint:
    """The timed action on Spark: it makes the whole result and brings back three numbers."""
    return of_sums(result.selectExpr(*SUMS).first())


def of_sums(row: Sequence[Any] | None) -> Fingerprint:
    """The one row that `SUMS` gave, in any engine; no row at all is an empty result."""
    return (0, 0, 0) if row is None else (int(row[0]), int(row[1]), int(row[2]))


def of_rows(result: DataFrame) -> tuple[int, int]:
    """The strict comparison, untimed: rows, and the sum of a hash of every column of each row."""
    hashed = F.xxhash64(*result.columns).cast("decimal(38,0)")
    row = result.select(F.count("*"), F.sum(hashed)).first()
    return (0, 0) if row is None else (int(row[0]), int(row[1] or 0))
