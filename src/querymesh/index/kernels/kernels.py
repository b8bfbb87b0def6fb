"""The inner loops of index and STeM, compiled. `kernels_numpy` has the same functions in numpy.

All of them are in this one file, because numba's cache looks at the file of a kernel to see whether
it changed, and not at those of the functions it calls.
"""

from __future__ import annotations

import numpy as np

from querymesh.arrays import Bytes, Ints, Shorts
from querymesh.index.kernels.compiled import BYTES, INT, INTS, INTS_OUT, inlined, kernel

_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_THREE, _SEVEN = np.uint64(3), np.uint64(7)
_HALF = np.uint64(32)
_SHIFT = np.uint64(33)


@inlined
def mix(number: int | np.uint64) -> np.uint64:
    """Murmur's finalizer: each bit of the number has a say in each bit of the result."""
    x = np.uint64(number)
    x ^= x >> _SHIFT
    x *= _FIRST
    x ^= x >> _SHIFT
    x *= _SECOND
    x ^= x >> _SHIFT
    return x


@kernel(INTS, INTS)
def fold(left: Ints, right: Ints) -> Ints:
    """One number a row for two: (a, b) and (b, a) differ, and so do (a, a) and (b, b)."""
    out = np.empty(len(left), np.int64)
    for i in range(len(left)):
        out[i] = np.int64(mix(left[i]) * _GOLDEN + np.uint64(right[i]))
    return out


@kernel(BYTES, INTS)
def hash_bytes(data: Bytes, offsets: Ints) -> Ints:
    """A number for each piece data[offsets[i] : offsets[i + 1]], eight bytes at a time."""
    count = len(offsets) - 1
    out = np.empty(count, np.int64)
    for i in range(count):
        at = offsets[i]
        end = offsets[i + 1]
        x = np.uint64(end - at) * _GOLDEN
        while at + 8 <= end:
            word = np.uint64(data[at])
            word |= np.uint64(data[at + 1]) << np.uint64(8)
            word |= np.uint64(data[at + 2]) << np.uint64(16)
            word |= np.uint64(data[at + 3]) << np.uint64(24)
            word |= np.uint64(data[at + 4]) << np.uint64(32)
            word |= np.uint64(data[at + 5]) << np.uint64(40)
            word |= np.uint64(data[at + 6]) << np.uint64(48)
            word |= np.uint64(data[at + 7]) << np.uint64(56)
            x = (x ^ word) * _FIRST
            x ^= x >> _HALF
            at += 8
        word = np.uint64(0)
        while at < end:
            word = (word << np.uint64(8)) | np.uint64(data[at])
            at += 1
        out[i] = np.int64(mix(x ^ word))
    return out


@kernel(INTS, INT)
def by_bucket(codes: Ints, bits: int) -> tuple[Shorts, Shorts, Bytes, bool]:
    """Rows by bucket, stable: where each bucket begins, the rows in that order, marks for the codes
    there are, eight bits a bucket, and whether the rows already lay in that order."""
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    rows = len(codes)
    buckets = np.empty(rows, np.int32)
    offsets = np.zeros((np.int64(1) << bits) + 1, np.int32)
    marks = np.zeros(np.int64(1) << bits, np.uint8)
    top = np.uint64(61 - bits)
    last = np.int64(0)
    sorted_already = True
    for i in range(rows):
        mixed = mix(codes[i])
        marks[mixed >> top >> _THREE] |= np.uint8(1) << np.uint8(mixed >> top & _SEVEN)
        bucket = np.int64(mixed & mask)
        if bucket < last:
            sorted_already = False
        last = bucket
        buckets[i] = bucket
        offsets[bucket + 1] += 1
    for b in range(1, len(offsets)):
        offsets[b] += offsets[b - 1]
    order = np.empty(rows, np.int32)
    if not sorted_already:
        # offsets[b] runs from the begin of bucket b to its end while b is filled ...
        for i in range(rows):
            bucket = buckets[i]
            order[offsets[bucket]] = i
            offsets[bucket] += 1
        # ... and so stands, afterwards, one place too early.
        for b in range(len(offsets) - 1, 0, -1):
            offsets[b] = offsets[b - 1]
        offsets[0] = 0
    return offsets, order, marks, sorted_already


@kernel(INTS, BYTES, INT)
def cells(codes: Ints, table: Bytes, bits: int) -> Ints:
    """The cell of each code: the upper bits of its mixed code, through a table where there is one.

    A table has more entries than there are cells, a power of two of them.
    """
    out = np.empty(len(codes), np.int64)
    if bits == 0:
        out[:] = 0
    elif len(table) == 0:
        shift = np.uint64(64 - bits)
        for i in range(len(codes)):
            out[i] = np.int64(mix(codes[i]) >> shift)
    else:
        fine = 0
        while (1 << fine) < len(table):
            fine += 1
        shift = np.uint64(64 - fine)
        for i in range(len(codes)):
            out[i] = table[mix(codes[i]) >> shift]
    return out


@kernel(INTS, INTS, INT)
def evened(counts: Ints, order: Ints, bits: int) -> Bytes:
    """A table from fine cells to 2^bits cells, at most 256, that hold about as many rows each.

    Fine cells are dealt in this order, from the fullest on, each to the cell that is emptiest so
    far; of equals, to the first.
    """
    width = 1 << bits
    loads = np.zeros(width, np.int64)
    table = np.empty(len(counts), np.uint8)
    empty = 0
    for n in range(len(order)):
        fine = order[n]
        if counts[fine] == 0:
            table[fine] = empty % width
            empty += 1
            continue
        best = 0
        for cell in range(1, width):
            if loads[cell] < loads[best]:
                best = cell
        table[fine] = best
        loads[best] += counts[fine]
    return table


@kernel(INTS, INT)
def by_number(buckets: Ints, bits: int) -> tuple[Shorts, Shorts, bool]:
    """Rows by the number of their bucket, stable: where each bucket begins, the rows in that order,
    and whether they lay in it already."""
    rows = len(buckets)
    offsets = np.zeros((np.int64(1) << bits) + 1, np.int32)
    in_order = True
    for i in range(rows):
        offsets[buckets[i] + 1] += 1
        if i > 0 and buckets[i] < buckets[i - 1]:
            in_order = False
    for b in range(1, len(offsets)):
        offsets[b] += offsets[b - 1]
    order = np.empty(rows, np.int32)
    free = offsets.copy()
    for i in range(rows):
        order[free[buckets[i]]] = i
        free[buckets[i]] += 1
    return offsets, order, in_order


@kernel(INTS, INTS)
def by_partition(rows: Ints, bases: Ints) -> tuple[Ints, Ints, Ints, bool]:
    """Row ids by the partition they are of: bases[p] <= id < bases[p + 1], stable.

    Returns the row within its partition, the place in `rows` it came from (empty if they lay in
    that order already), where each partition's begin, and whether all ids are of some partition.
    """
    count = len(bases) - 1
    ends = np.zeros(count + 1, np.int64)
    owner = np.empty(len(rows), np.int32)
    p = 0
    previous = 0
    grouped = True
    for i in range(len(rows)):
        row = rows[i]
        if row < bases[0] or row >= bases[count]:
            nothing = np.empty(0, np.int64)
            return nothing, nothing, np.zeros(count + 1, np.int64), False
        if row < bases[p] or row >= bases[p + 1]:
            p = 0
            if count <= 32:
                # Counting is vectorised, and has no branch that the processor would have to guess.
                for b in range(1, count):
                    p += row >= bases[b]
            else:
                width = count
                while width > 1:
                    half = width >> 1
                    p += half * (row >= bases[p + half])
                    width -= half
        grouped &= p >= previous
        previous = p
        owner[i] = p
        ends[p + 1] += 1
    for p in range(count):
        ends[p + 1] += ends[p]
    local = np.empty(len(rows), np.int64)
    if grouped:
        for i in range(len(rows)):
            local[i] = rows[i] - bases[owner[i]]
        return local, np.empty(0, np.int64), ends, True
    place = np.empty(len(rows), np.int64)
    free = ends[:-1].copy()
    for i in range(len(rows)):
        p = owner[i]
        place[free[p]] = i
        local[free[p]] = rows[i] - bases[p]
        free[p] += 1
    return local, place, ends, True


@kernel(INTS, INTS, INTS, INTS_OUT)
def scatter(column: Ints, local: Ints, place: Ints, out: Ints) -> None:
    """out[place] = column[local]; an empty `place` means one after the other."""
    if len(place) == 0:
        for i in range(len(local)):
            out[i] = column[local[i]]
    else:
        for i in range(len(local)):
            out[place[i]] = column[local[i]]
