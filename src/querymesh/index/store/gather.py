"""Columns of rows that lie in many partitions, in the order asked for.

Row ids are sorted by partition once; each column is then taken from one partition after the other
and put where it belongs::

    rows      [ 7 2 9 1 ]     bases [ 0 5 10 ]: ids from 0 are of the first partition, from 5 of
    position  [ 1 3   0 2 ]   the next; the rows at 1 and 3 are of the first, 0 and 2 of the second,
    local     [ 2 1   2 4 ]   and have these numbers in them
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Array, Ints
from querymesh.errors import StateError
from querymesh.index.kernels import kernels
from querymesh.index.store.columns import NO_INTS, Columns, plain_width_bytes


class Gather:
    """Some rows, by id, of partitions whose first ids are `bases` (and the end of the last)."""

    def __init__(self, rows: Ints, bases: Ints) -> None:
        self._size = len(rows)
        self._local, self._position, self._begins, known = kernels.by_partition(rows, bases)
        if not known:
            raise StateError(
                f"row ids beyond the {int(bases[-1])} rows of the state: ids hold only until rows "
                "are inserted, evicted or merged; gather before that"
            )
        self._grouped = len(self._position) == 0

    def _parts(self) -> Iterator[tuple[int, slice]]:
        """The partitions that rows are of, and which rows of the sorted ones."""
        begins = self._begins.tolist()
        for number, (begin, end) in enumerate(pairwise(begins)):
            if begin < end:
                yield number, slice(begin, end)

    def ints(self, columns: Sequence[Ints]) -> Ints:
        """From one array of numbers for each partition."""
        return self._wide([(columns[number], part) for number, part in self._parts()])

    def arrow(self, batches: Sequence[Columns], name: str, kind: pa.DataType) -> pa.Array:
        """A column, from the rows of each partition, all of one type."""
        used = [(batches[number], part) for number, part in self._parts()]
        if not used:
            return pa.array([], kind)
        width = plain_width_bytes(kind)
        numbers = [columns.numbers(name) for columns, _ in used] if width else []
        parts = [part for _, part in used]
        plain = [
            (each, part) for each, part in zip(numbers, parts, strict=False) if each is not None
        ]
        if len(plain) == len(used):
            out = self._wide(plain) if width == 8 else self._narrow(plain, width)
            return pa.Array.from_buffers(kind, self._size, [None, pa.py_buffer(out)])
        taken = [
            pc.take(columns.whole(name), pa.array(self._local[part]), boundscheck=False)
            for columns, part in used
        ]
        together = pa.concat_arrays(taken)
        return together if self._grouped else pc.take(together, self._back(), boundscheck=False)

    def _wide(self, used: list[tuple[Ints, slice]]) -> Ints:
        """Numbers of 64 bits, for which there is a kernel."""
        out = np.empty(self._size, np.int64)
        for column, part in used:
            if self._grouped:
                kernels.scatter(column, self._local[part], NO_INTS, out[part])
            else:
                kernels.scatter(column, self._local[part], self._position[part], out)
        return out

    def _narrow(self, used: list[tuple[Array, slice]], width: int) -> Array:
        """Numbers of one, two or four bytes."""
        out = np.empty(self._size, f"i{width}")
        for column, part in used:
            if self._grouped:
                column.take(self._local[part], out=out[part], mode="clip")
            else:
                out[self._position[part]] = column[self._local[part]]
        return out

    def _back(self) -> pa.Array:
        """Where, in the order by partition, each row is."""
        back = np.empty(self._size, np.int64)
        back[self._position] = np.arange(self._size)
        return pa.array(back)
