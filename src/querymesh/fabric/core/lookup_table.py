"""A static table ready to be looked up by key: exact, several matches a key, any number of columns.

Each key column is replaced by its rank among the table's own values, ranks of several columns are
combined into one number, and rows are laid out by that number with offsets, as in a CSR matrix::

    codes    [ 0        1     2           ]   the distinct keys, sorted
    offsets  [ 0        2     3         6 ]   key c owns order[offsets[c] : offsets[c + 1]]
    order    [ 4  7     0     1   3   5   ]   row numbers of the table

No hash is trusted: a key that differs has a different rank, or none. NULL matches nothing; NaN
matches NaN and -0.0 matches 0.0, as in Spark. Both sides of a key are of one type: decimals have
one scale, which is binding's affair.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Floats, Ints
from querymesh.index.store.codes import EXACT_DIGITS
from querymesh.index.store.columns import Columns
from querymesh.query.functions.decimals import unscaled


class LookupTable:
    """The rows of `batch` by the key columns `keys` (arrays of the batch's length)."""

    def __init__(self, batch: pa.RecordBatch, keys: Sequence[pa.Array]) -> None:
        self.batch = batch
        self._taken = Columns(batch)
        self._columns = [_KeyColumn(key) for key in keys]
        codes = self._combine(list(keys))
        usable = np.flatnonzero(codes >= 0)
        order = usable[np.argsort(codes[usable], kind="stable")]
        self._codes, starts = np.unique(codes[order], return_index=True)
        self._offsets = np.append(starts, len(order)).astype(np.int64)
        self._order = order

    def probe(self, keys: Sequence[pa.Array]) -> tuple[Ints, Ints]:
        """For each probing row, where its matches start in the layout, and how many there are."""
        codes = self._combine(list(keys))
        if len(self._codes) == 0:
            return np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
        if len(self._columns) == 1:  # every rank has a row: it is its own position
            position, found = codes, codes >= 0
        else:
            position = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
            found = self._codes[position] == codes
        starts = self._offsets[position]
        return starts, np.where(found, self._offsets[position + 1] - starts, 0)

    def rows(self, positions: Ints) -> Ints:
        """The table's row numbers at these positions of the layout."""
        return self._order[positions]

    def take(self, name: str, rows: Ints) -> pa.Array:
        """The values of a column at these row numbers of the table."""
        return self._taken.take(name, rows)

    def _combine(self, keys: list[pa.Array]) -> Ints:
        """One number for the whole key; -1 where a part is NULL or not in the table at all."""
        combined = self._columns[0].ranks(keys[0])
        for column, key in zip(self._columns[1:], keys[1:], strict=True):
            ranks = column.ranks(key)
            paired = combined * column.size + ranks
            combined = np.where((combined < 0) | (ranks < 0), -1, paired)
            combined = column.densify(combined)
        return combined


class _KeyColumn:
    """The distinct values of one key column, and the rank of any value among them."""

    def __init__(self, values: pa.Array) -> None:
        self._pairs: Ints | None = None
        self._text: dict[object, int] | None = None
        if _is_number(values.type):
            self._numbers = np.unique(_comparable(values.drop_null()))
            self.size = len(self._numbers)
        else:
            distinct = pc.unique(values.drop_null()).to_pylist()
            self._text = {value: rank for rank, value in enumerate(distinct)}
            self.size = len(distinct)

    def ranks(self, values: pa.Array) -> Ints:
        if self._text is None:
            numbers = _comparable(values)
            if self.size == 0:
                return np.full(len(numbers), -1, dtype=np.int64)
            position = np.minimum(np.searchsorted(self._numbers, numbers), self.size - 1)
            there = self._numbers[position]
            found = there == numbers
            if there.dtype.kind == "f":
                found |= np.isnan(there) & np.isnan(numbers)
            if values.null_count:
                found &= ~np.asarray(pc.is_null(values))
            return np.where(found, position, -1)
        encoded = pc.dictionary_encode(values)
        rank_of_code = np.array(
            [self._text.get(value, -1) for value in encoded.dictionary.to_pylist()] or [-1],
            dtype=np.int64,
        )
        codes = np.asarray(pc.fill_null(encoded.indices, 0), dtype=np.int64)
        return np.where(np.asarray(pc.is_null(values)), -1, rank_of_code[codes])

    def densify(self, combined: Ints) -> Ints:
        """Ranks of the combinations the table has, so that many columns never overflow 64 bits."""
        if self._pairs is None:
            self._pairs = np.unique(combined[combined >= 0])
        if len(self._pairs) == 0:
            return np.full(len(combined), -1, dtype=np.int64)
        position = np.minimum(np.searchsorted(self._pairs, combined), len(self._pairs) - 1)
        return np.where((self._pairs[position] == combined) & (combined >= 0), position, -1)


def _is_number(kind: pa.DataType) -> bool:
    short = pa.types.is_decimal(kind) and kind.precision <= EXACT_DIGITS
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or short)


def _comparable(values: pa.Array) -> Ints | Floats:
    """Numbers as int64 or float64, -0.0 as 0.0; what stands for NULL is not said."""
    if pa.types.is_decimal(values.type):
        return unscaled(values)
    wanted = pa.float64() if pa.types.is_floating(values.type) else pa.int64()
    if values.type != wanted:
        values = pc.cast(values, wanted)
    if values.null_count:
        values = pc.fill_null(values, 0)
    numbers = np.asarray(values)
    return numbers + 0.0 if wanted == pa.float64() else numbers
