"""Between a STeM's partitions and block files: what is stored, and what is read off the rows.

A block holds the rows in the order of their index with its offsets, so that a mapped block is ready
to probe. Codes that are the column itself, such as those of BIGINT keys and timestamps, are not
stored a second time::

    rows      ts   k   price                     columns that anything still reads
    arrays    offsets [ 0 2 2 5 ... ]            of the index in whose order the rows lie, and its
              marks, or table0, bounds3          marks (hash) or tables and bounds (bit-address)
              key1, order0, numbers              only where no stored column tells them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from querymesh.arrays import Array
from querymesh.fabric.join.probe import is_exact
from querymesh.index.store.bit_index import BitIndex
from querymesh.index.store.codes import combine, equality_codes, microseconds, order_codes
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.hash_index import HashIndex
from querymesh.index.store.partition import Indexed, Partition
from querymesh.index.store.request import Pattern
from querymesh.optimize.routes.index_ties import access_patterns
from querymesh.query.expr import Column
from querymesh.query.join import JoinQuery
from querymesh.runtime.state.files import Block

_OFFSETS = "offsets"
_MARKS = "marks"
_NUMBERS = "numbers"
_TABLE = "table"
_BOUNDS = "bounds"


class BlockLayout:
    """What a stream's blocks hold of a join's state."""

    def __init__(self, join: JoinQuery, alias: str) -> None:
        kept = set(join.columns_kept(alias))
        self._keys: dict[int, str] = {}
        self._dtypes = [each.dtype for each in join.keys_of(alias)]
        # Of NULL, which only some queries join by, no column tells the code.
        told = not join.codes_may_be_of_null
        for position, each in enumerate(join.keys_of(alias)):
            key = each.members[alias]
            if told and isinstance(key, Column) and key.name in kept and is_exact(each.dtype):
                self._keys[position] = key.name
        self._orders: dict[int, str] = {}
        for position, order in enumerate(join.orders_of(alias)):
            if told and isinstance(order, Column) and order.name in kept:
                self._orders[position] = order.name
        window = join.window_of(alias)
        counts = window is not None and window.kind == "rows"
        self._time = None if counts else join.times.get(alias)

    def content(
        self, partition: Partition
    ) -> tuple[pa.RecordBatch, dict[str, Array], dict[str, Any]]:
        """Rows, arrays and notes of a block, its rows in the order they have."""
        meta: dict[str, Any] = {"first": partition.first, "last": partition.last}
        arrays: dict[str, Array] = {}
        if (cells := partition.cells) is not None:
            meta["cells"] = cells.configuration.to_json()
            arrays[_OFFSETS] = cells.offsets
            arrays |= {f"{_TABLE}{j}": table for j, table in cells.tables.items()}
            arrays |= {f"{_BOUNDS}{j}": bounds for j, bounds in cells.bounds.items()}
        elif (found := partition.in_hash_order()) is not None:
            pattern, index = found
            meta["pattern"] = list(pattern)
            arrays[_OFFSETS] = index.offsets
            if index.marks is not None:
                arrays[_MARKS] = index.marks
        if partition.patterns is not None:
            meta["patterns"] = [list(pattern) for pattern in partition.patterns]
        for position, codes in enumerate(partition.keys):
            if position not in self._keys:
                arrays[f"key{position}"] = codes
        for position, codes in enumerate(partition.orders):
            if position not in self._orders:
                arrays[f"order{position}"] = codes
        if self._time is None:
            arrays[_NUMBERS] = partition.times
        return partition.rows, arrays, meta

    def partition(self, block: Block) -> Partition:
        """A mapped block as a partition, nothing copied but codes of narrow columns."""
        rows, arrays, meta = block.rows, block.arrays, block.meta
        keys = [
            arrays[f"key{position}"] if f"key{position}" in arrays else self._codes(rows, position)
            for position in range(len(self._dtypes))
        ]
        orders = [arrays[name] for name in self._order_names(arrays)]
        for position, name in sorted(self._orders.items()):
            codes = order_codes(rows.column(name))
            assert codes is not None
            orders.insert(position, codes)
        times = arrays[_NUMBERS] if self._time is None else microseconds(rows.column(self._time))
        indices = {}
        if "pattern" in meta:
            pattern = tuple(meta["pattern"])
            codes = combine([keys[position] for position in pattern])
            indices[pattern] = HashIndex(arrays[_OFFSETS], codes, None, arrays.get(_MARKS))
        patterns = meta.get("patterns")
        return Partition(
            rows,
            keys,
            orders,
            times,
            bounds=(int(meta["first"]), int(meta["last"])),
            indexed=Indexed(
                indices,
                _cells(meta["cells"], arrays) if "cells" in meta else None,
                None if patterns is None else tuple(map(tuple, patterns)),
            ),
        )

    def _order_names(self, arrays: Mapping[str, Array]) -> list[str]:
        stored = [int(name.removeprefix("order")) for name in arrays if name.startswith("order")]
        return [f"order{position}" for position in sorted(stored)]

    def _codes(self, rows: pa.RecordBatch, position: int) -> Array:
        values = rows.column(self._keys[position])
        wanted = self._dtypes[position]
        return equality_codes(values if values.type == wanted else values.cast(wanted)).codes


def _cells(configuration: Mapping[str, Any], arrays: Mapping[str, Array]) -> BitIndex:
    def numbered(prefix: str) -> dict[int, Array]:
        return {
            int(name.removeprefix(prefix)): array
            for name, array in arrays.items()
            if name.startswith(prefix)
        }

    config = Configuration.from_json(configuration)
    return BitIndex(config, arrays[_OFFSETS], numbered(_TABLE), numbered(_BOUNDS))


def patterns_of(join: JoinQuery, routes: Mapping[str, list[tuple[int, ...]]]) -> dict[str, Pattern]:
    """For each stream, the access pattern its state is laid out for: the one most routes use.

    `routes` are by the view whose tuples take them. Other patterns find their rows through an
    index of row numbers, made when it is first asked for.
    """
    used: dict[str, Counter[Pattern]] = {alias: Counter() for alias in join.aliases}
    for label, taken in routes.items():
        of, alias = join.of_view(label)
        for route in taken:
            for relation, pattern in access_patterns(of, alias, route):
                if relation in used:
                    used[relation][pattern] += 1
    return {
        alias: max(sorted(counter), key=counter.__getitem__) if counter else ()
        for alias, counter in used.items()
    }
