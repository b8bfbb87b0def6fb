import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.operators import expand

NUMBERS = st.none() | st.integers(-3, 3)
FLOATS = st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf])
DECIMALS = st.none() | st.sampled_from(  # the last two are one DOUBLE
    [*map(Decimal, ("0.0", "-0.1", "2.5", "9007199254740993.0", "9007199254740993.1"))]
)
TEXT = st.none() | st.sampled_from(["", "a", "b", "ä", "a\x00"])


def matches_of(table, keys):
    starts, counts = table.probe(keys)
    found = []
    for ranges, elements in expand(starts, counts, most=3):
        assert len(ranges) <= 3
        found += zip(ranges.tolist(), table.rows(elements).tolist(), strict=True)
    return sorted(found)


def same(a, b):
    if a is None or b is None:
        return False
    return a == b or (a != a and b != b)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (NUMBERS, pa.int32()),
        (FLOATS, pa.float64()),
        (TEXT, pa.string()),
        (DECIMALS, pa.decimal128(18, 1)),
        (DECIMALS, pa.decimal128(38, 20)),
    ],
)
def test_one_column_keys_find_exactly_the_equal_rows(values, kind):
    @given(st.lists(values, max_size=12), st.lists(values, max_size=12))
    def check(build, probe):
        batch = pa.record_batch({"row": np.arange(len(build))})
        table = LookupTable(batch, [pa.array(build, kind)])
        expected = [(i, j) for i, p in enumerate(probe) for j, b in enumerate(build) if same(p, b)]
        assert matches_of(table, [pa.array(probe, kind)]) == expected

    check()


@given(
    st.lists(st.tuples(NUMBERS, TEXT, FLOATS), max_size=12),
    st.lists(st.tuples(NUMBERS, TEXT, FLOATS), max_size=12),
)
def test_keys_of_several_columns_match_in_every_part(build, probe):
    kinds = (pa.int64(), pa.string(), pa.float64())

    def columns(rows):
        return [pa.array([row[k] for row in rows], kind) for k, kind in enumerate(kinds)]

    table = LookupTable(pa.record_batch({"row": np.arange(len(build))}), columns(build))
    expected = [
        (i, j)
        for i, p in enumerate(probe)
        for j, b in enumerate(build)
        if all(same(x, y) for x, y in zip(p, b, strict=True))
    ]
    assert matches_of(table, columns(probe)) == expected


def test_many_wide_columns_do_not_overflow():
    rng = np.random.default_rng(0)
    build = rng.integers(0, 2**40, (500, 8))
    table = LookupTable(
        pa.record_batch({"row": np.arange(500)}), [pa.array(build[:, k]) for k in range(8)]
    )
    assert matches_of(table, [pa.array(build[:, k]) for k in range(8)]) == [
        (i, i) for i in range(500)
    ]
