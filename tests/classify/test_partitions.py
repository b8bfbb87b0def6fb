import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.classify.partitions import (
    Partitions,
    can_partition,
    each_of,
    hashed,
    is_continuous,
    size_of,
)

VALUES = {
    pa.int8(): [-3, 0, 7],
    pa.int64(): [-(2**63), 2**63 - 1, 0, 12],
    pa.uint64(): [0, 2**64 - 1, 12],
    pa.bool_(): [True, False],
    pa.string(): ["", "a", "Ä", "a" * 300],
    pa.large_string(): ["", "a"],
    pa.binary(): [b"", b"\x00\xff"],
    pa.large_binary(): [b"x"],
    pa.binary(2): [b"ab", b"cd"],
    pa.date32(): [dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    pa.date64(): [dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
    pa.time32("s"): [dt.time(0), dt.time(23, 59)],
    pa.time64("us"): [dt.time(0), dt.time(23, 59)],
    pa.duration("us"): [dt.timedelta(-1), dt.timedelta(3)],
    pa.timestamp("us"): [dt.datetime(1969, 12, 31), dt.datetime(2024, 2, 29, 1)],
    pa.timestamp("s", "UTC"): [dt.datetime(2024, 2, 29, tzinfo=dt.UTC)],
    pa.float32(): [0.0, -1.5, math.nan, math.inf],
    pa.float64(): [0.0, -1e308, 1e308, math.nan, math.inf, -math.inf],
    pa.decimal128(10, 2): [Decimal("-1.50"), Decimal("99.99")],
    pa.decimal256(50, 3): [Decimal("-1.500"), Decimal("99.990")],
    pa.dictionary(pa.int32(), pa.string()): ["a", "b"],
    pa.dictionary(pa.int8(), pa.int64()): [1, 2],
}


def code(values, count=24, partitions=None):
    """Each value's partition, by ranges of the values themselves unless others are known."""
    if partitions is None:
        partitions = Partitions()
        partitions.see("x", values)
    return partitions.codes(("x",), count, lambda name: values).tolist()


@settings(max_examples=20, deadline=None)
@pytest.mark.parametrize("kind", VALUES, ids=str)
@given(data=st.data())
def test_the_same_value_is_in_the_same_partition_in_any_batch(kind, data):
    pool = [*VALUES[kind], None]
    first = data.draw(st.lists(st.sampled_from(pool), max_size=8))
    second = data.draw(st.lists(st.sampled_from(pool), max_size=8))
    partitions = Partitions()
    partitions.see("x", pa.array(pool, kind))
    found = {}
    for values in (first, second, first[::-1]):
        for value, number in zip(values, code(pa.array(values, kind), 24, partitions), strict=True):
            assert found.setdefault(repr(value), number) == number
            assert (number == 24) == (value is None), "NULL has one of its own"
            assert 0 <= number <= 24


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_batches_may_be_empty_or_all_null(kind):
    assert code(pa.array([], kind)) == []
    assert code(pa.array([None, None], kind)) == [24, 24]
    assert can_partition(kind)


def test_the_width_of_a_number_and_the_coding_of_a_text_do_not_matter():
    narrow, wide = pa.array([5, -7, None], pa.int8()), pa.array([5, -7, None], pa.int64())
    assert code(narrow) == code(wide)
    texts = pa.array(["b", None, "a", "b"])
    assert code(texts) == code(texts.dictionary_encode()) == code(texts.cast(pa.large_string()))
    other = pa.DictionaryArray.from_arrays([1, None, 0, 1], ["a", "b"])
    assert code(other) == code(texts), "in whatever order the dictionary is"


def test_parts_of_arrays_are_partitioned_as_the_whole():
    for kind, pool in VALUES.items():
        whole = pa.array([*pool, None] * 3, kind)
        partitions = Partitions()
        partitions.see("x", whole)
        assert code(whole.slice(2, 4), 24, partitions) == code(whole, 24, partitions)[2:6]


def test_values_that_hold_others_cannot_be_partitioned():
    for kind in (pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.null()):
        assert not can_partition(kind)


@pytest.mark.parametrize("first", [0, 1, -6, 1000, 20_240_101])
def test_a_dozen_neighbouring_numbers_have_partitions_of_their_own(first):
    assert len(set(hashed(pa.array(range(first, first + 12)), 24).tolist())) == 12


def test_many_values_fill_all_partitions_evenly():
    for values in (range(24_000), [f"name {i}" for i in range(24_000)], range(0, 240_000, 10)):
        filled = np.bincount(hashed(pa.array(values), 24), minlength=24)
        assert filled.min() > 800
        assert filled.max() < 1200


def whole(numbers, kind):
    return pa.array(numbers, pa.int64() if pa.types.is_timestamp(kind) else None).cast(kind)


@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(21, 2), pa.timestamp("s")])
def test_continuous_values_lie_in_equal_ranges_between_least_and_greatest(kind):
    assert is_continuous(kind)
    partitions = Partitions()
    partitions.see("x", whole([100, 0], kind))
    asked = whole([0, 9, 10, 55, 99, 100], kind)
    assert code(asked, 10, partitions) == [0, 0, 1, 5, 9, 9]
    beyond = whole([-500, 101, 10_000], kind)
    assert code(beyond, 10, partitions) == [0, 9, 9], "what lies outside is in the nearest range"


def test_nan_and_infinities_widen_no_range_and_nan_is_in_the_last():
    partitions = Partitions()
    partitions.see("x", pa.array([math.nan, None, 2.0, math.inf, -math.inf, 4.0]))
    assert partitions.ranges == {"x": (2.0, 4.0)}
    asked = pa.array([math.nan, -math.inf, math.inf, None, 2.9])
    assert code(asked, 4, partitions) == [3, 0, 3, 4, 1]
    partitions.see("x", pa.array([math.nan]))
    assert partitions.ranges == {"x": (2.0, 4.0)}


def test_nan_is_told_from_a_value_that_is_always_the_same():
    assert code(pa.array([5.0, math.nan, 5.0])) == [0, 23, 0]


def test_ranges_grow_with_what_is_seen_and_only_of_continuous_attributes():
    partitions = Partitions()
    partitions.see("x", pa.array([1.0, 2.0]))
    partitions.see("x", pa.array([-3.0]))
    partitions.see("y", pa.array([1, 2]))
    partitions.see("z", pa.array([], pa.float64()))
    assert partitions.ranges == {"x": (-3.0, 2.0)}
    assert code(pa.array([7.0, 8.0]), 24, Partitions()) == [0, 0], "of one never seen: all alike"


def test_two_ranges_make_one_that_holds_both():
    one = Partitions({"x": (0.0, 5.0), "y": (1.0, 2.0)})
    other = Partitions({"x": (-1.0, 4.0), "z": (8.0, 9.0)})
    both = one.widened(other)
    assert both.ranges == {"x": (-1.0, 5.0), "y": (1.0, 2.0), "z": (8.0, 9.0)}
    assert other.widened(one).ranges == both.ranges
    assert one.ranges["x"] == (0.0, 5.0), "neither is changed"


def test_what_is_known_by_range_moves_with_the_range():
    narrow, wide = Partitions({"x": (0.0, 10.0)}), Partitions({"x": (-10.0, 12.0)})
    known = np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    assert wide.moved(narrow, ("x",), known).tolist() == [0.1, 0.1, 0.2, 0.4, 0.9]
    assert narrow.moved(wide, ("x",), known).tolist() == [0.3, 0.3, 0.3, 0.4, 0.9]
    assert wide.moved(wide, ("x",), known).tolist() == known.tolist()
    assert wide.moved(narrow, ("h",), known).tolist() == known.tolist(), "a hash has no range"


def test_a_set_of_two_has_the_product_of_coarser_partitions():
    a, b = pa.array([0, 0, 1, 1, None]), pa.array(["x", "y", "x", "y", None])
    columns = {"a": a, "b": b}
    codes = Partitions().codes(("a", "b"), 24, columns.__getitem__)
    assert each_of(("a", "b"), 24) == 5
    assert len(set(codes.tolist())) == 5, "four combinations, and NULL with NULL"
    assert codes.max() < size_of(("a", "b"), 24) == 36
    assert size_of(("a",), 24) == 25
    assert each_of(("a", "b"), 2) == 2, "a set is cut in two each way at least"


def test_hashes_never_change_since_stored_estimates_go_by_them():
    assert hashed(pa.array([0, 1, 2, -1, 1000, 2**40]), 1000).tolist() == [
        0,
        618,
        236,
        381,
        33,
        290,
    ]
    assert hashed(pa.array(["", "a", "ab", "Ä"]), 1000).tolist() == [471, 878, 945, 133]
    assert hashed(pa.array([b"a"]), 1000).tolist() == [878]
    assert hashed(pa.array([True, False]), 1000).tolist() == [618, 0]
    assert hashed(pa.array([dt.date(2024, 2, 29)]), 1000).tolist() == [948]


def test_the_partition_of_a_set_is_that_of_its_attributes_one_after_the_other():
    columns = {
        "a": pa.array([0.0, 4.9, 5.0, 10.0, None]),
        "b": pa.array([0.0, 10.0, 10.0, 0.0, 0.0]),
    }
    partitions = Partitions({"a": (0.0, 10.0), "b": (0.0, 10.0)})
    codes = partitions.codes(("a", "b"), 4, columns.__getitem__)
    assert codes.tolist() == [0, 1, 3 + 1, 3, 2 * 3]
