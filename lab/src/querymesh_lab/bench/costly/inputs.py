"""Real rows whose inputs repeat as they do in reality, and what is asked about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh_lab.bench.costly.questions import rule_of
from querymesh_lab.bench.data import csic, kdd, reviews, weblog
from querymesh_lab.bench.data.real_folder import DATA, folder_with
from querymesh_lab.bench.guest.tables import AbsentError

Read = Callable[[Path], pa.Table]


@dataclass(frozen=True)
class Asked:
    """A question about some columns of a real table."""

    name: str
    question: str
    columns: tuple[str, ...]
    files: tuple[str, ...]
    read: Read

    def rows(self, count: int) -> pa.Table:
        """At most so many rows, with nothing but an id and the columns asked about."""
        folder = folder_with(self.files)
        if folder is None:
            raise AbsentError(f"no {self.name} here; {DATA}=folder says where the data are")
        return whole_kinds(self.read(folder).select(["id", *self.columns]), self.columns, count)

    def inputs(self, table: pa.Table) -> list[Any]:
        """What the endpoint is sent of each row."""
        return inputs_of(table, self.columns)

    def found(self, table: pa.Table) -> int:
        """How many rows the question holds for."""
        rule = rule_of(self.question)
        return sum(bool(rule(each)) for each in self.inputs(table))


ASKED = (
    Asked("agents", "bot", ("agent",), (weblog.FILE,), weblog.requests),
    Asked("requests", "attack", ("method", "path", "query"), csic.FILES, csic.requests),
    Asked(
        "connections",
        "share 30 odd",
        ("protocol_type", "service", "flag", "src_bytes", "dst_bytes", "count", "srv_count"),
        (kdd.FILE,),
        kdd.connections,
    ),
    Asked("reviews", "praises", ("text",), reviews.FILES, reviews.reviews),
)
"""Rows per distinct input in the whole tables: 17.9, 2.4, 5.7 and 1.07."""


def inputs_of(table: pa.Table, columns: Sequence[str]) -> list[Any]:
    """A value for each row, or a list of values where there are several columns."""
    values = [table.column(name).to_pylist() for name in columns]
    return values[0] if len(values) == 1 else [list(row) for row in zip(*values, strict=True)]


def distinct(inputs: Sequence[Any]) -> int:
    """How many inputs differ.

    >>> distinct([["a", 1], ["a", 1], ["a", 2]])
    2
    """
    return len(set(map(repr, inputs)))


def whole_kinds(table: pa.Table, columns: Sequence[str], count: int, seed: int = 0) -> pa.Table:
    """At most so many rows: all those of inputs that are drawn by chance, in the table's order.

    Rows drawn one by one would repeat less than the table does. Of an input that has more than a
    tenth of the rows asked for, only as many are taken: one flood would be the whole table.
    """
    keys = list(map(repr, inputs_of(table, columns)))
    rows_of: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        rows_of.setdefault(key, []).append(row)
    drawn: list[int] = []
    kinds = list(rows_of.values())
    for kind in np.random.default_rng(seed).permutation(len(kinds)):
        drawn += kinds[kind][: max(1, count // 10)]
        if len(drawn) >= count:
            break
    return table.take(pa.array(sorted(drawn[:count]))).combine_chunks()
