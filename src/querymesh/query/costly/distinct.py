"""The rows of some arrays that differ, so that a function need not be asked twice about equal ones.

::

    args      a a b a b c          first   0 2 5        the first row of each kind
    kind_of   0 0 1 0 1 2          spread  values[kind_of]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.query.canonical import canonical_rows, type_name

KEY_BYTES = 16


@dataclass(frozen=True)
class Distinct:
    """`first` has the first row of each kind, and `kind_of` the kind of each row."""

    first: Ints
    kind_of: Ints

    def __len__(self) -> int:
        return len(self.first)

    def take(self, args: Sequence[pa.Array]) -> list[pa.Array]:
        """Of each array the first row of each kind."""
        if len(self.first) == len(self.kind_of):
            return list(args)
        return [taken(arg, self.first) for arg in args]

    def spread(self, values: pa.Array) -> pa.Array:
        """The values of kinds, for all rows."""
        return values if len(self) == len(self.kind_of) else taken(values, self.kind_of)


def distinct_rows(args: Sequence[pa.Array], n: int | None = None) -> Distinct:
    """The kinds of n rows, in the order of their first ones; NULL is a value like any.

    Rows are equal where no function could tell them apart: 0.0 is not -0.0, and NaN equals NaN.
    Without columns all are. `n` need not be given where there is a column.

    >>> distinct_rows([pa.array(["a", "b", "a", None, None])]).first.tolist()
    [0, 1, 3]
    """
    codes = np.zeros(_rows(args, n), dtype=np.int64)
    for at, arg in enumerate(args):
        of_arg = _codes(arg)
        # Both are below the number of rows, and so their product is far from what an int64 holds.
        kinds = int(of_arg.max(initial=-1)) + 1
        codes = _encoded(pa.array(codes * kinds + of_arg)) if at else of_arg
    first = np.empty(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return Distinct(first, codes)


def keys_of(args: Sequence[pa.Array], n: int | None = None) -> list[bytes]:
    """A hash of each row, by which its answer is found again, here and elsewhere.

    128 bits of a cryptographic hash of values and types: no two inputs that anybody will see share
    one, not even those that somebody looked for.
    """
    head = repr([type_name(arg.type) for arg in args]).encode("utf-8", "surrogatepass")
    empty = blake2b(len(head).to_bytes(8, "little") + head, digest_size=KEY_BYTES)
    if not args:
        return [empty.digest()] * _rows(args, n)
    keys = []
    for row in canonical_rows(args).to_pylist():
        key = empty.copy()
        key.update(row)
        keys.append(key.digest())
    return keys


def taken(array: pa.Array, rows: Ints) -> pa.Array:
    """Some rows of an array of any type, also of those that Arrow takes no rows of."""
    try:
        return array.take(pa.array(rows, pa.int64()))
    except pa.ArrowNotImplementedError:
        return pa.concat_arrays([array.slice(0, 0), *(array.slice(row, 1) for row in rows)])


def _rows(args: Sequence[pa.Array], n: int | None) -> int:
    if args:
        return len(args[0])
    if n is None:
        raise ValueError("how many rows there are cannot be seen where there is no column: give n")
    return n


def _codes(array: pa.Array) -> Ints:
    """A number for each value, those of equal ones equal, counted as they come."""
    if pa.types.is_floating(array.type):  # by their bits, whatever Arrow takes for equal
        as_bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[array.type.bit_width]
        return _encoded(array.view(as_bits))
    is_plain = not (pa.types.is_nested(array.type) or pa.types.is_dictionary(array.type))
    try:
        return _encoded(array if is_plain else canonical_rows([array]))
    except pa.ArrowNotImplementedError:
        return _encoded(canonical_rows([array]))


def _encoded(array: pa.Array) -> Ints:
    encoded = array.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64, copy=False)
