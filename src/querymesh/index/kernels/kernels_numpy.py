"""The functions of `kernels` in numpy: slower, plainer, and with the same results to the last bit.

They say what the kernels mean, and tests hold the kernels to it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from querymesh.arrays import Bytes, Ints, Shorts

_FIRST = 0xFF51AFD7ED558CCD
_SECOND = 0xC4CEB9FE1A85EC53
_GOLDEN = 0x9E3779B97F4A7C15
_64_BITS = 2**64 - 1


def mix(numbers: Ints) -> npt.NDArray[np.uint64]:
    """Murmur's finalizer of each number."""
    x = numbers.astype(np.uint64)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(_FIRST)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(_SECOND)
    return x ^ (x >> np.uint64(33))


def fold(left: Ints, right: Ints) -> Ints:
    """Two numbers of each row hashed to one."""
    return (mix(left) * np.uint64(_GOLDEN) + right.astype(np.uint64)).astype(np.int64)


def hash_bytes(data: Bytes, offsets: Ints) -> Ints:
    """A number for each piece data[offsets[i] : offsets[i + 1]]."""
    states = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        piece = data[begin:end].tobytes()
        whole = len(piece) // 8 * 8
        x = len(piece) * _GOLDEN & _64_BITS
        for at in range(0, whole, 8):
            x = (x ^ int.from_bytes(piece[at : at + 8], "little")) * _FIRST & _64_BITS
            x ^= x >> 32
        states.append(x ^ int.from_bytes(piece[whole:], "big"))
    return mix(np.array(states, np.uint64).astype(np.int64)).astype(np.int64)


def by_bucket(codes: Ints, bits: int) -> tuple[Shorts, Shorts, Bytes, bool]:
    """Where each bucket begins, the rows in that order, marks for the codes there are, and whether
    the rows already lay in that order.

    What the order holds is left open where they did.
    """
    buckets = (mix(codes) & np.uint64((1 << bits) - 1)).astype(np.int64)
    order = np.argsort(buckets, kind="stable").astype(np.int32)
    offsets = np.searchsorted(buckets[order], np.arange((1 << bits) + 1)).astype(np.int32)
    marked = np.zeros(8 << bits, np.uint8)
    marked[mix(codes) >> np.uint64(61 - bits)] = 1
    marks = np.packbits(marked, bitorder="little")
    return offsets, order, marks, bool((buckets[1:] >= buckets[:-1]).all())


def cells(codes: Ints, table: Bytes, bits: int) -> Ints:
    """The cell of each code, through a table where there is one."""
    if bits == 0:
        return np.zeros(len(codes), np.int64)
    if not len(table):
        return (mix(codes) >> np.uint64(64 - bits)).astype(np.int64)
    fine = np.uint64(64 - (len(table).bit_length() - 1))
    return np.asarray(table[mix(codes) >> fine], np.int64)


def evened(counts: Ints, order: Ints, bits: int) -> Bytes:
    """A table from fine cells to 2^bits cells: the fullest goes to the emptiest so far."""
    loads = np.zeros(1 << bits, np.int64)
    table = np.empty(len(counts), np.uint8)
    filled = order[counts[order] > 0]
    for fine in filled:
        table[fine] = loads.argmin()
        loads[table[fine]] += counts[fine]
    empty = order[len(filled) :]
    table[empty] = np.arange(len(empty)) % len(loads)
    return table


def by_number(buckets: Ints, bits: int) -> tuple[Shorts, Shorts, bool]:
    """Where each bucket begins, the rows in that order, and whether they lay in it already."""
    order = np.argsort(buckets, kind="stable").astype(np.int32)
    offsets = np.searchsorted(buckets[order], np.arange((1 << bits) + 1)).astype(np.int32)
    return offsets, order, bool((buckets[1:] >= buckets[:-1]).all())


def by_partition(rows: Ints, bases: Ints) -> tuple[Ints, Ints, Ints, bool]:
    """Row ids by partition: the row in it, the place it came from, where each partition's begin,
    and whether all ids are known."""
    none = np.empty(0, np.int64)
    if ((rows < bases[0]) | (rows >= bases[-1])).any():
        return none, none, np.zeros(len(bases), np.int64), False
    owner = np.searchsorted(bases, rows, "right") - 1
    place = np.argsort(owner, kind="stable")
    local = (rows - bases[owner])[place]
    begins = np.searchsorted(owner[place], np.arange(len(bases))).astype(np.int64)
    grouped = bool((owner[1:] >= owner[:-1]).all())
    return local, none if grouped else place, begins, True


def scatter(column: Ints, local: Ints, place: Ints, out: Ints) -> None:
    """out[place] = column[local]; an empty `place` means one after the other."""
    out[place if len(place) else slice(len(local))] = column[local]
