"""Where a task stands: its partition and, of a stream, the query and the micro-batch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """The partition a task works on; `batch` and `query` are None in a batch job."""

    partition: int = 0
    batch: int | None = None
    query: str | None = None
