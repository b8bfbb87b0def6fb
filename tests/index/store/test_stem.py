import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.errors import StateError
from querymesh.index.kernels import kernels, kernels_numpy
from querymesh.index.kernels import travel as t
from querymesh.index.probe.one_state import probe
from querymesh.index.store.index_plan import HashPlan
from querymesh.index.store.partition import Partition, address
from querymesh.index.store.request import OrderComparison, Request
from querymesh.index.store.stem import Stem
from soak import random_cases
from stem_cases import KEYS, Row, expected, found, ints, partition_of, requests, states

PATTERNS = st.sets(st.integers(0, KEYS - 1), min_size=1).map(lambda some: tuple(sorted(some)))


def stem_of(partitions, layout=None):
    stem = Stem(plan=HashPlan(layout=layout or ()))
    for rows in partitions:
        part = partition_of(rows)
        stem.insert(part if layout is None else part.in_order_of(layout))
    return stem


@random_cases(150, 300)
@given(states(), requests(), st.none() | PATTERNS, st.sampled_from([1, 2, 7, 1000]))
def test_a_probe_finds_what_a_double_loop_finds(partitions, request, layout, most):
    stem = stem_of(partitions, layout)
    assert found(stem, request, most) == expected(partitions, request)
    assert stem.probes == len(request)


@settings(max_examples=150, deadline=None)
@given(states(), requests(), st.none() | PATTERNS, st.none() | st.integers(0, 60))
def test_merging_changes_no_result(partitions, request, layout, span):
    stem = stem_of(partitions, layout)
    merged = stem.compact(span)
    assert found(stem, request) == expected(partitions, request)
    assert len(stem.partitions) == len(partitions) - sum(len(m.old) - 1 for m in merged)
    for one in merged:
        assert one.new in stem.partitions
        assert len(one.new) == sum(map(len, one.old))


@settings(max_examples=100, deadline=None)
@given(states(), requests(), st.integers(0, 12))
def test_old_rows_go_when_partitions_are_merged(partitions, request, oldest):
    stem = stem_of(partitions)
    untouched = {id(partition) for partition in stem.partitions}
    stem.compact(None, oldest)
    for partition in stem.partitions:
        assert id(partition) in untouched or (partition.times >= oldest).all()
    young = [(i, row) for i, row in found(stem, request) if time_of(partitions, row) >= oldest]
    needed = expected(partitions, request)
    assert young == [(i, row) for i, row in needed if time_of(partitions, row) >= oldest]


def time_of(partitions, number):
    return next(row.time for rows in partitions for row in rows if row.number == number)


@settings(max_examples=100, deadline=None)
@given(states(), requests(), st.integers(0, 13))
def test_eviction_drops_whole_partitions_that_are_too_old(partitions, request, before):
    stem = stem_of(partitions)
    kept = [rows for rows in partitions if any(row.time >= before for row in rows)]
    assert stem.evict(before) == sum(map(len, partitions)) - sum(map(len, kept))
    assert stem.rows == sum(map(len, kept))
    assert found(stem, request) == expected(kept, request)


@settings(max_examples=50, deadline=None)
@given(states(), requests())
def test_settled_rows_are_earlier_than_any_probe(partitions, request):
    stem = stem_of(partitions)
    list(probe(stem, request, 10))
    stem.settle()
    settled = [
        [Row(row.number, row.keys, row.orders, row.time, None) for row in rows]
        for rows in partitions
    ]
    assert found(stem, request) == expected(settled, request)


def test_rows_that_differ_in_one_of_two_attributes_do_not_match_for_their_hash():
    one, other = (1, 3), (2, colliding(1, 3, 2))
    left, right = ints([one[0], other[0]]), ints([one[1], other[1]])
    assert len(set(kernels.fold(left, right).tolist())) == 1
    stem = stem_of([[Row(0, (*one, 0), (0, 0), 5, None), Row(1, (*other, 0), (0, 0), 5, None)]])
    request = Request((0, 1), (left, right), ints([0, 0]), ints([9, 9]))
    assert found(stem, request) == [(0, 0), (1, 1)]


def colliding(first, second, other_first):
    """What beside `other_first` makes the same combined code as `first` and `second`."""
    mixed = kernels_numpy.mix(ints([first, other_first])).tolist()
    number = (second + (mixed[0] - mixed[1]) * 0x9E3779B97F4A7C15) % 2**64
    return number - 2**64 if number >= 2**63 else number


@settings(max_examples=100, deadline=None)
@given(states(), st.data())
def test_columns_are_gathered_in_the_order_of_the_row_ids(partitions, data):
    stem = stem_of(partitions)
    stored = [row for rows in partitions for row in rows]
    ids = st.lists(st.integers(0, len(stored) - 1), max_size=20) if stored else st.just([])
    rows = ints(data.draw(ids | ids.map(sorted)))
    chosen = [stored[i] for i in rows]
    numbers = [row.number for row in chosen]
    if partitions:
        assert stem.take("number", rows).to_pylist() == numbers
        assert stem.take("small", rows).to_pylist() == numbers
        assert stem.take("text", rows).to_pylist() == [f"row {n}" for n in numbers]
        assert stem.take("even", rows).to_pylist() == [n % 2 == 0 for n in numbers]
        assert stem.take("sparse", rows).to_pylist() == [n if n % 3 else None for n in numbers]
        assert stem.take("small", rows).type == pa.int16()
        stem.take("text", rows).validate(full=True)
    assert stem.times(rows).tolist() == [row.time for row in chosen]
    assert stem.key(1, rows).tolist() == [row.keys[1] for row in chosen]
    assert stem.order(0, rows).tolist() == [row.orders[0] for row in chosen]


def row(number, key=0, time=0, order=0):
    return Row(number, (key, 0, 0), (order, 0), time, None)


def ask(keys, low=0, high=100):
    return Request((0,), (ints(keys),), ints([low] * len(keys)), ints([high] * len(keys)))


def test_a_partition_out_of_all_windows_is_not_looked_at():
    stem = stem_of([[row(0, time=5)], [row(1, time=50)]])
    assert found(stem, ask([0], low=40)) == [(0, 1)]
    assert stem.comparisons == 1
    assert stem.partitions[0]._indices == {}


def test_comparisons_count_the_rows_of_a_bucket_and_not_of_the_state():
    stem = stem_of([[row(n, key=n) for n in range(1000)]])
    assert found(stem, ask([7])) == [(0, 7)]
    assert 1 <= stem.comparisons < 10


def test_a_comparison_without_equality_searches_instead_of_scanning():
    stem = stem_of([[row(n, order=n) for n in range(1000)]])
    below = Request((), (), ints([0]), ints([9]), None, (OrderComparison("<", 0, ints([3])),))
    assert found(stem, below) == [(0, 0), (0, 1), (0, 2)]
    assert stem.comparisons < 20


def test_a_band_is_searched_by_the_attribute_that_is_bounded_on_both_sides():
    rows = [Row(n, (0,) * KEYS, (n, n), 0, None) for n in range(1000)]
    stem = stem_of([rows])
    low, high, every = ints([400]), ints([402]), ints([0])
    comparisons = (
        OrderComparison(">=", 0, every),
        OrderComparison(">=", 1, low),
        OrderComparison(">", 0, every),
        OrderComparison("<=", 1, high),
    )
    assert found(stem, Request((), (), every, every, None, comparisons)) == [
        (0, number) for number in (400, 401, 402)
    ]
    assert stem.comparisons < 50


def test_an_empty_stem_has_nothing_of_any_type():
    stem = Stem(pa.schema({"x": pa.string()}))
    assert found(stem, ask([1])) == []
    assert stem.take("x", ints([])).equals(pa.array([], pa.string()))
    assert (stem.rows, stem.nbytes, stem.evict(5), stem.compact(None)) == (0, 0, 0, [])
    assert stem.times(ints([])).tolist() == []


def test_the_schema_outlives_the_last_row():
    stem = stem_of([[row(0)]])
    stem.evict(10)
    assert stem.take("text", ints([])).type == pa.string()


def test_row_ids_that_no_longer_hold_are_refused():
    stem = stem_of([[row(0)], [row(1, time=9)]])
    stem.evict(5)
    with pytest.raises(StateError, match="ids hold only until"):
        stem.times(ints([1]))


def test_a_gather_is_forgotten_when_partitions_change():
    stem = stem_of([[row(0, time=1)], [row(1, time=9)]])
    rows = ints([0])
    assert stem.times(rows).tolist() == [1]
    stem.evict(5)
    assert stem.times(rows).tolist() == [9]


def test_matches_of_an_earlier_piece_are_not_overwritten():
    stem = stem_of([[row(n) for n in range(5)]])
    pieces = list(probe(stem, ask([0]), 2))
    assert [piece.rows.tolist() for piece in pieces] == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (((1, 0), (ints([1]), ints([1])), ints([0]), ints([0])), "rising order"),
        (((0,), (), ints([0]), ints([0])), "0 codes for access pattern"),
        (((0,), (ints([1, 2]),), ints([0]), ints([0])), "other lengths"),
        (((), (), ints([0]), ints([0]), ints([])), "other lengths"),
    ],
)
def test_a_request_that_does_not_fit_together_is_refused(arguments, fault):
    with pytest.raises(ValueError, match=fault):
        Request(*arguments)


def test_matches_cannot_be_asked_for_in_pieces_of_nothing():
    with pytest.raises(ValueError, match="pieces of 0"):
        next(probe(stem_of([[row(0)]]), ask([0]), 0))


def test_an_unknown_comparison_is_refused():
    with pytest.raises(ValueError, match="no comparison '='"):
        OrderComparison("=", 0, ints([]))


def test_what_tables_point_at_outlives_the_end_of_a_step():
    rows = pa.record_batch({"at": pa.array([3, 4], pa.timestamp("ms"))})
    numbers = np.array([0, 1])
    stem = Stem()
    stem.insert(Partition(rows, [], [], numbers, numbers))
    table = stem.described(1, 0, "at")
    stem.settle()
    assert stem.described(1, 0, "at") is table
    assert table[t.P_SERIALS] == 0
    (known,) = stem.partitions[0]._described.values()
    assert [address(array) for array in known.keeps] == [table[t.P_EVENTS]]
