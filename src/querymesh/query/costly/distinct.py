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
        return [arg.take(pa.array(self.first)) for arg in args]

    def spread(self, values: pa.Array) -> pa.Array:
        """The values of kinds, for all rows."""
        return values if len(self) == len(self.kind_of) else values.take(pa.array(self.kind_of))


def distinct_rows(args: Sequence[pa.Array]) -> Distinct:
    """The kinds of rows, in the order of their first ones; NULL is a value like any.

    Floats are told apart as Python writes them, so that 0.0 is not -0.0 and NaN equals NaN.

    >>> distinct_rows([pa.array(["a", "b", "a", None, None])]).first.tolist()
    [0, 1, 3]
    """
    codes = _codes(args[0])
    for arg in args[1:]:
        further = _codes(arg)
        width = int(further.max(initial=0)) + 1
        codes = _encoded(pa.array(codes.astype(np.int64) * width + further))
    kinds = int(codes.max(initial=-1)) + 1
    first = np.empty(kinds, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return Distinct(first, codes)


def keys_of(args: Sequence[pa.Array]) -> list[bytes]:
    """A hash of each row, by which its answer is found again, here and elsewhere.

    128 bits of a cryptographic hash: no two inputs that anybody will see share one.
    """
    head = "|".join(str(arg.type) for arg in args).encode()
    return [
        blake2b(head + repr(row).encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()
        for row in zip(*(arg.to_pylist() for arg in args), strict=True)
    ]


def _codes(array: pa.Array) -> Ints:
    if pa.types.is_floating(array.type):  # Arrow takes 0.0 and -0.0 for one
        as_bits = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[array.type.bit_width]
        return _encoded(array.view(as_bits))
    if pa.types.is_nested(array.type) or pa.types.is_dictionary(array.type):
        return _encoded(pa.array([repr(value) for value in array.to_pylist()], pa.string()))
    return _encoded(array)


def _encoded(array: pa.Array) -> Ints:
    encoded = array.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64, copy=False)
