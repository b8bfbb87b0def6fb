"""Random states and requests for tests, and the plain double loop they are held to."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from querymesh.index.probe.one_state import probe
from querymesh.index.store.partition import Partition
from querymesh.index.store.request import OPS, OrderComparison, Request

KEYS, ORDERS = 3, 2
SMALL = st.integers(-2, 2)
TIMES = st.integers(0, 12)


@dataclass(frozen=True)
class Row:
    """A stored row; `number` tells it from all others."""

    number: int
    keys: tuple[int, ...]
    orders: tuple[int, ...]
    time: int
    serial: int | None


def ints(values):
    return np.array(list(values), np.int64)


def partition_of(rows):
    batch = pa.record_batch(
        {
            "number": pa.array([row.number for row in rows], pa.int64()),
            "small": pa.array([row.number for row in rows], pa.int16()),
            "text": pa.array([f"row {row.number}" for row in rows], pa.string()),
            "even": pa.array([row.number % 2 == 0 for row in rows], pa.bool_()),
            "sparse": pa.array(
                [row.number if row.number % 3 else None for row in rows], pa.int32()
            ),
        }
    )
    settled = not rows or rows[0].serial is None
    return Partition(
        batch,
        [ints(row.keys[j] for row in rows) for j in range(KEYS)],
        [ints(row.orders[j] for row in rows) for j in range(ORDERS)],
        ints(row.time for row in rows),
        None if settled else ints(row.serial for row in rows),
    )


@st.composite
def states(draw, most_partitions=5):
    """Rows, partition by partition; those of some have serials."""
    partitions = []
    number = 0
    for _ in range(draw(st.integers(0, most_partitions))):
        serial = draw(st.booleans())
        rows = []
        for _ in range(draw(st.integers(0, 8))):
            keys = draw(st.tuples(*[SMALL] * KEYS))
            orders = draw(st.tuples(*[SMALL] * ORDERS))
            rows.append(Row(number, keys, orders, draw(TIMES), draw(SMALL) if serial else None))
            number += 1
        partitions.append(rows)
    return partitions


@st.composite
def requests(draw):
    pattern = tuple(sorted(draw(st.sets(st.integers(0, KEYS - 1)))))
    size = draw(st.integers(0, 6))

    def column(values):
        return ints(draw(st.lists(values, min_size=size, max_size=size)))

    compared = draw(st.lists(st.tuples(st.sampled_from([*OPS]), st.integers(0, 1)), max_size=3))
    return Request(
        pattern,
        tuple(column(SMALL) for _ in pattern),
        column(st.integers(0, 7)),
        column(st.integers(4, 12)),
        column(SMALL) if draw(st.booleans()) else None,
        tuple(OrderComparison(op, order, column(SMALL)) for op, order in compared),
    )


def expected(partitions, request):
    """Pairs of probing position and the number of the stored row, by looking at all of them."""
    return sorted(
        (i, row.number)
        for rows in partitions
        for row in rows
        for i in range(len(request))
        if matches(row, request, i)
    )


def matches(row, request, i):
    asked = zip(request.pattern, request.codes, strict=True)
    return (
        all(row.keys[j] == codes[i] for j, codes in asked)
        and request.low[i] <= row.time <= request.high[i]
        and (request.before is None or row.serial is None or row.serial < request.before[i])
        and all(OPS[c.op](row.orders[c.order], c.values[i]) for c in request.comparisons)
    )


def found(stem, request, most=1000):
    pairs = []
    for positions, rows in probe(stem, request, most):
        assert 0 < len(rows) <= most
        numbers = stem.take("number", rows).to_pylist()
        pairs += zip(positions.tolist(), numbers, strict=True)
    return sorted(pairs)
