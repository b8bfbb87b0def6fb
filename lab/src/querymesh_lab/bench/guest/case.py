"""What a case of `bench guest` is: a table, conditions in written order, and what is expected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from querymesh_lab.bench.guest.condition import Condition, Given
from querymesh_lab.bench.guest.tables import StoredTable, Workshop

Kind = Literal["sql", "regex", "python", "mixed"]
Sink = Literal["count", "noop"]

FLOOR = 0.95
"""No case may be slower than plain Spark by more than what a noisy machine makes of equal times."""

KIND_TARGETS: dict[Kind, float] = {"sql": FLOOR, "regex": 3.0, "python": 3.0, "mixed": FLOOR}
"""Plain Spark's time over ours, by what the conditions are made of."""


@dataclass(frozen=True)
class GuestCase:
    """One cell of the grid.

    - `table`: makes the table, or raises `AbsentError`
    - `given`: how `qm.where` gets Python conditions
    - `sink`: `count()`, or a write of all columns to Spark's noop sink
    - `cached`: whether the DataFrame is cached, for everybody alike
    - `orders_of_others`: also measure DataFusion's and DuckDB's ratio of worst to chosen order
    """

    name: str
    group: str
    kind: Kind
    table: Callable[[Workshop], StoredTable]
    conditions: tuple[Condition, ...]
    given: Given = "predicate"
    sink: Sink = "count"
    cached: bool = False
    orders_of_others: bool = False

    @property
    def target(self) -> float:
        """The least ratio of plain Spark's time to ours."""
        return KIND_TARGETS[self.kind]
