"""Blocks: what is written is what is mapped, without a copy, or an error that names the file."""

import os
import tempfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from querymesh.errors import StateError
from querymesh.runtime.state import files as state_files
from querymesh.runtime.state.files import BlockEntry, forget, map_block, write_block
from querymesh.storage import Storage


@pytest.fixture(params=["local", "memory"])
def storage(request, tmp_path):
    forget()
    folder = str(tmp_path) if request.param == "local" else f"mock:///{tmp_path.name}"
    made = Storage(folder)
    made.make()
    return made


def rows_of(count):
    numbers = np.arange(count)
    return pa.record_batch(
        {
            "ts": pa.array(numbers, pa.timestamp("us")),
            "id": pa.array(numbers % 7),
            "price": pa.array(numbers / 3, mask=numbers % 5 == 0),
            "symbol": pa.array([f"s{number % 11}" for number in numbers], pa.string()),
        }
    )


PLAIN_TYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?"),
    hnp.datetime64_dtypes(),
    hnp.byte_string_dtypes(min_len=1, max_len=5),
    hnp.unicode_string_dtypes(min_len=1, max_len=5),
)
ARRAYS = st.dictionaries(
    st.text(max_size=5), PLAIN_TYPES.flatmap(lambda kind: hnp.arrays(kind, st.integers(0, 9)))
)
META = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none())


@settings(max_examples=60, deadline=None)
@given(count=st.integers(0, 50), start=st.integers(0, 50), arrays=ARRAYS, meta=META)
def test_a_block_comes_back_as_it_was_written(count, start, arrays, meta):
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(folder)
        rows = rows_of(count).slice(start)
        entry = write_block(storage, "a.block", rows, arrays, meta)
        block = map_block(storage, "a.block", BlockEntry(**entry.to_json()))
        assert block.rows.equals(rows)
        assert block.meta == meta == entry.meta
        assert list(block.arrays) == sorted(arrays)
        for name, array in arrays.items():
            assert block.arrays[name].dtype == array.dtype
            assert block.arrays[name].tobytes() == array.tobytes()
            assert not block.arrays[name].flags.writeable
        assert os.listdir(folder) == ["a.block"]


def test_columns_of_any_arrow_type_are_kept(storage):
    rows = pa.record_batch(
        {
            "d": pa.array(["x", None, "x"]).dictionary_encode(),
            "l": pa.array([[1], None, [2, 3]]),
            "s": pa.array([{"a": 1}, {"a": None}, None]),
            "b": pa.array([True, None, False]),
        }
    )
    entry = write_block(storage, "a.block", rows, {}, {})
    assert map_block(storage, "a.block", entry).rows.equals(rows)


def test_rows_and_arrays_are_views_of_the_file(tmp_path):
    storage = Storage(str(tmp_path))
    rows, order = rows_of(100_000), np.arange(100_000)
    entry = write_block(storage, "a.block", rows, {"order": order}, {})
    forget()
    before_bytes, before_files = pa.total_allocated_bytes(), len(os.listdir("/proc/self/fd"))
    block = map_block(storage, "a.block", entry)
    assert pa.total_allocated_bytes() - before_bytes < 10_000
    assert len(os.listdir("/proc/self/fd")) == before_files
    start = block.rows.column("ts").buffers()[1].address
    assert 0 < block.arrays["order"].ctypes.data - start < entry.size_bytes
    assert block.arrays["order"].ctypes.data % 64 == 0
    assert not block.rows.column("ts").buffers()[1].is_mutable


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 2)), np.array([object()]), np.zeros(2, [("a", "i4")]), np.array(3)],
    ids=["two dimensions", "objects", "fields", "no dimension"],
)
def test_an_array_that_a_file_cannot_hold_is_refused_and_nothing_is_left(storage, array):
    with pytest.raises(ValueError, match="'wide'"):
        write_block(storage, "a.block", rows_of(3), {"wide": array}, {})
    assert storage.names() == []


def written(storage):
    entry = write_block(storage, "a.block", rows_of(20), {"order": np.arange(20)}, {"batch": 3})
    return entry, storage.read("a.block")


def refused(storage, entry):
    forget()
    with pytest.raises(StateError) as raised:
        map_block(storage, "a.block", entry)
    assert storage.where("a.block") in str(raised.value)
    assert "new checkpoint directory" in str(raised.value)
    return str(raised.value)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_byte_changes_unnoticed(data):
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(folder)
        entry, content = written(storage)
        place = data.draw(
            st.integers(0, len(content) - 1) | st.integers(len(content) - 40, len(content) - 1)
        )
        changed = bytearray(content)
        changed[place] ^= data.draw(st.integers(1, 255))
        storage.write("a.block", bytes(changed))
        refused(storage, entry)


@settings(max_examples=40, deadline=None)
@given(kept=st.floats(0, 0.999))
def test_a_file_that_was_cut_is_refused(kept):
    with tempfile.TemporaryDirectory() as folder:
        storage = Storage(folder)
        entry, content = written(storage)
        storage.write("a.block", content[: int(kept * len(content))])
        assert "bytes" in refused(storage, entry)


def test_a_missing_a_longer_and_a_foreign_file_are_refused(storage):
    entry, content = written(storage)
    storage.delete(["a.block"])
    assert "is missing" in refused(storage, entry)
    storage.write("a.block", content + b"\0")
    assert "bytes" in refused(storage, entry)
    storage.write("a.block", content[:-1] + b"2")
    assert "not a block" in refused(storage, entry)


def test_a_whole_block_in_the_place_of_another_is_refused(storage):
    entry, _ = written(storage)
    other = write_block(storage, "a.block", rows_of(20), {"order": np.arange(20)}, {"batch": 4})
    assert other.size_bytes == entry.size_bytes
    assert "not the block that was written" in refused(storage, entry)


def test_a_block_is_checked_once_and_forgotten_when_told(storage):
    entry, _ = written(storage)
    block = map_block(storage, "a.block", entry)
    storage.delete(["a.block"])
    assert map_block(storage, "a.block", entry) is block
    forget([storage.where("b.block")])
    assert map_block(storage, "a.block", entry) is block
    forget([storage.where("a.block")])
    assert block.rows.equals(rows_of(20))
    with pytest.raises(StateError, match="is missing"):
        map_block(storage, "a.block", entry)


def test_blocks_unused_for_longest_are_let_go(tmp_path, monkeypatch):
    forget()
    monkeypatch.setattr(state_files, "_KEPT_BLOCKS", 2)
    storage = Storage(str(tmp_path))
    entries = {name: write_block(storage, name, rows_of(3), {}, {}) for name in "abc"}
    first = {name: map_block(storage, name, entries[name]) for name in "ab"}
    assert map_block(storage, "a", entries["a"]) is first["a"]
    map_block(storage, "c", entries["c"])
    assert map_block(storage, "a", entries["a"]) is first["a"]
    assert map_block(storage, "b", entries["b"]) is not first["b"]


def test_blocks_nobody_asks_for_are_let_go_after_a_while(tmp_path, monkeypatch):
    forget()
    now = [1000.0]
    monkeypatch.setattr(state_files, "monotonic", lambda: now[0])
    storage = Storage(str(tmp_path))
    entries = {name: write_block(storage, name, rows_of(3), {}, {}) for name in "ab"}
    first = {name: map_block(storage, name, entries[name]) for name in "ab"}
    now[0] += 100
    assert map_block(storage, "b", entries["b"]) is first["b"]
    now[0] += 100
    assert map_block(storage, "b", entries["b"]) is first["b"]
    assert map_block(storage, "a", entries["a"]) is not first["a"]
