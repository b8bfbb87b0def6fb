"""A hash index: the rows of a partition by the bucket of their code, in one access pattern.

    offsets  [ 0     2  2        5 ... ]   bucket b owns slots offsets[b] to offsets[b + 1]
    codes    [ 17 4     9  9  51   ... ]   the code of the row in each slot
    order    [ 3  0     1  4  2    ... ]   and the row's number, unless rows lie in this order
    marks    [ 00100000 01000010   ... ]   one bit for each code there is, eight bits a bucket

There are about as many buckets as rows. The lower bits of the mixed code are the bucket, the upper
bits the position of its mark. A code that is not stored most likely has no mark, and its bucket is
not looked into: most probes find nothing in most partitions, and this is what they cost.

What is found has the same code. That is the same key where the code is exact and of one attribute.
The program compares the codes of several attributes one by one; the values behind codes that are
hashes are compared by who has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from querymesh.arrays import Array, Bytes, Ints, Shorts
from querymesh.index.kernels import kernels


@dataclass(frozen=True, eq=False)
class HashIndex:
    """The arrays; they may be read-only, such as mapped files. Marks can be left out."""

    offsets: Shorts
    codes: Ints
    order: Shorts | None
    marks: Bytes | None = None

    @classmethod
    def build(cls, codes: Ints) -> HashIndex:
        """An index of rows that have these codes, one a row."""
        bits = max(len(codes) - 1, 0).bit_length()
        offsets, order, marks, in_order = kernels.by_bucket(codes, bits)
        if in_order:
            return cls(offsets, codes, None, marks)
        return cls(offsets, codes[order], order, marks)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return sum(array.nbytes for array in self.arrays())

    def arrays(self) -> tuple[Array, ...]:
        """The arrays that the index consists of."""
        given = (self.offsets, self.codes, self.order, self.marks)
        return tuple(array for array in given if array is not None)
