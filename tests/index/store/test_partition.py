import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.errors import StateError
from querymesh.index.store.hash_index import HashIndex
from querymesh.index.store.partition import Indexed, Partition, concat
from querymesh.index.store.stem import Stem
from stem_cases import KEYS, Row, expected, found, ints, partition_of, requests, states


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return tmp_path_factory


PATTERNS = st.sets(st.integers(0, KEYS - 1), min_size=1).map(lambda some: tuple(sorted(some)))


def holding(partition):
    stem = Stem()
    stem.insert(partition)
    return stem


def numbers(partition):
    return partition.rows.column("number").to_pylist()


@given(states(most_partitions=1), PATTERNS)
def test_rows_laid_out_for_a_pattern_need_no_row_numbers(state, pattern):
    partition = partition_of([row for rows in state for row in rows])
    there = partition.in_order_of(pattern)
    index = there.index_for(pattern)
    assert index.order is None
    assert sorted(numbers(there)) == numbers(partition)
    again = Partition(there.rows, there.keys, there.orders, there.times).index_for(pattern)
    assert again.order is None
    np.testing.assert_array_equal(again.codes, index.codes)
    np.testing.assert_array_equal(again.offsets, index.offsets)


@settings(deadline=None)
@given(states(), requests(), st.data())
def test_filtered_rows_are_found_and_no_others(state, request, data):
    rows = [row for rows in state for row in rows if row.serial is None]
    mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    filtered = partition_of(rows).filter(np.array(mask, np.bool_))
    kept = [row for row, keep in zip(rows, mask, strict=True) if keep]
    assert numbers(filtered) == [row.number for row in kept]
    assert found(holding(filtered), request) == expected([kept], request)


@settings(deadline=None)
@given(states(), requests(), st.integers(0, 9), st.integers(0, 9))
def test_a_slice_is_found_as_its_rows(state, request, start, length):
    rows = [row for rows in state for row in rows if row.serial is None]
    part = partition_of(rows).slice(min(start, len(rows)), length)
    assert numbers(part) == [row.number for row in rows[start : start + length]]
    assert found(holding(part), request) == expected([rows[start : start + length]], request)


@settings(deadline=None)
@given(states(), requests())
def test_partitions_put_together_hold_all_their_rows(state, request):
    partitions = [partition_of(rows) for rows in state]
    if not partitions:
        return
    together = concat(partitions)
    assert len(together) == sum(map(len, partitions))
    assert found(holding(together), request) == expected(state, request)
    if len(together):
        assert together.first == together.times.min()
        assert together.last == together.times.max()


@settings(deadline=None, max_examples=30)
@given(states(most_partitions=1), requests(), PATTERNS)
def test_a_partition_mapped_from_a_file_is_probed_as_it_lies(folders, state, request, pattern):
    rows = [row for rows in state for row in rows if row.serial is None]
    there = partition_of(rows).in_order_of(pattern)
    columns = {f"key{j}": key for j, key in enumerate(there.keys)}
    columns |= {f"order{j}": order for j, order in enumerate(there.orders)}
    batch = pa.record_batch({**columns, "time": there.times, "number": there.rows["number"]})
    path = folders.mktemp("state") / "part.arrow"
    with pa.ipc.new_file(path, batch.schema) as writer:
        writer.write(batch)
    mapped = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)

    def column(name):
        return mapped[name].to_numpy()

    partition = Partition(
        mapped,
        [column(f"key{j}") for j in range(len(there.keys))],
        [column(f"order{j}") for j in range(len(there.orders))],
        column("time"),
        bounds=(there.first, there.last),
    )
    assert not partition.times.flags.writeable
    assert found(holding(partition), request) == expected([rows], request)


def test_an_index_is_built_once_and_only_if_asked_for():
    partition = partition_of([Row(0, (1, 2, 3), (0, 0), 5, None)])
    small = partition.nbytes
    assert partition.index_for((0, 2)) is partition.index_for((0, 2))
    assert partition.nbytes > small


def test_given_indices_are_used():
    partition = partition_of([Row(0, (1, 2, 3), (0, 0), 5, None)])
    index = HashIndex.build(partition.keys[0])
    given = Partition(
        partition.rows, partition.keys, (), partition.times, indexed=Indexed({(0,): index})
    )
    assert given.index_for((0,)) is index


def test_memory_that_is_shared_counts_once():
    numbers = pa.array(np.arange(1000))
    rows = pa.record_batch({"x": numbers})
    key = numbers.to_numpy()
    assert Partition(rows, [key], [], key).nbytes == 8000
    copy = key.copy()
    assert Partition(rows, [copy], [copy], copy).nbytes == 16000


def test_nothing_is_neither_early_nor_late():
    nothing = partition_of([])
    assert nothing.first > nothing.last
    assert len(nothing.in_order_of((0,))) == 0
    assert len(concat([nothing, nothing])) == 0
    assert holding(nothing).evict(-(2**62)) == 0


def test_codes_of_another_length_are_refused():
    with pytest.raises(StateError, match="partition of 2 rows has codes"):
        Partition(pa.record_batch({"x": [1, 2]}), [ints([1])], [], ints([1, 2]))


def test_rows_of_which_no_column_is_kept_are_taken_as_others():
    bare = pa.record_batch({"x": [1, 2, 3]}).select([])
    partition = Partition(bare, [np.array([7, 8, 9])], [], np.array([1, 2, 3]))
    some = partition.taken(np.array([2, 0]))
    assert (len(some), some.rows.num_rows, some.keys[0].tolist()) == (2, 2, [9, 7])
