"""Rows that differ, and keys of rows: equal exactly where no function could tell two rows apart."""

import os
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arrow_cases import PLAIN, any_types, batches, columns, told_apart
from querymesh.query.costly.distinct import KEY_BYTES, distinct_rows, keys_of, taken
from soak import random_cases

CASES = random_cases(60, 150)


def rows_of(args):
    return [tuple(map(told_apart, row)) for row in zip(*(a.to_pylist() for a in args), strict=True)]


def first_and_kinds(rows):
    """The oracle: in Python, one row after the other."""
    kinds = {}
    kind_of = [kinds.setdefault(row, len(kinds)) for row in rows]
    return [kind_of.index(kind) for kind in range(len(kinds))], kind_of


@CASES
@given(args=batches())
def test_rows_are_of_one_kind_where_nothing_tells_them_apart(args):
    found = distinct_rows(args)
    first, kind_of = first_and_kinds(rows_of(args))
    assert (found.first.tolist(), found.kind_of.tolist()) == (first, kind_of)
    assert rows_of(found.take(args)) == [rows_of(args)[at] for at in first]
    values = pa.array([f"kind {at}" for at in range(len(found))], pa.string())
    assert found.spread(values).to_pylist() == [f"kind {kind}" for kind in kind_of]


@CASES
@given(args=batches())
def test_keys_are_equal_where_nothing_tells_rows_apart(args):
    keys = keys_of(args)
    assert all(len(key) == KEY_BYTES for key in keys)
    assert first_and_kinds(keys) == first_and_kinds(rows_of(args))


@CASES
@given(array=columns(8), cut=st.integers(0, 8))
def test_a_key_is_the_same_in_whichever_batch_its_row_comes(array, cut):
    keys = keys_of([array])
    assert keys_of([array.slice(cut)]) == keys[cut:]
    assert keys_of([array.slice(0, cut)]) == keys[:cut]
    assert keys_of([pa.concat_arrays([array.slice(cut), array.slice(0, cut)])]) == [
        *keys[cut:], *keys[:cut],
    ]  # fmt: skip
    if not pa.types.is_dictionary(array.type):
        assert keys_of([pa.array(array.to_pylist(), array.type)]) == keys


@CASES
@given(one=any_types, other=any_types)
def test_values_of_different_types_have_different_keys(one, other):
    arrays = [pa.nulls(1, kind) for kind, _ in (one, other)]
    alike = [str(kind).replace("large_", "").replace("_view", "") for kind, _ in (one, other)]
    if alike[0] != alike[1] and "fixed_size" not in "".join(alike):
        assert keys_of(arrays[:1]) != keys_of(arrays[1:])


LOOK_ALIKES = {
    "a number, its text and its truth": [
        pa.array([1]), pa.array(["1"]), pa.array([True]), pa.array([1.0]), pa.array([b"1"]),
        pa.array([1], pa.int32()), pa.array([Decimal("1")]), pa.array([1], pa.date32()),
        pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("us", "UTC")),
        pa.array([1], pa.duration("us")),
    ],
    "numbers": [pa.array([Decimal("1.0")]), pa.array([Decimal("1.00")]), pa.array([Decimal("1")])],
    "zeros": [pa.array([0.0]), pa.array([-0.0]), pa.array([0]), pa.array([0.0], pa.float32())],
    "nothing": [
        pa.array([None]), pa.array([None], pa.string()), pa.array([None], pa.int64()),
        pa.array([""]), pa.array([[]]), pa.array([[None]]), pa.array([{"a": None}]),
        pa.array([None], pa.struct([("a", pa.null())])), pa.array(["None"]),
    ],
    "lists": [
        pa.array([["a", "b"]]), pa.array([["ab"]]), pa.array([["a,b"]]), pa.array([["", "ab"]]),
        pa.array([["ab", ""]]), pa.array([["a", None, "b"]]), pa.array([[["a"], ["b"]]]),
        pa.array([[["a", "b"]]]), pa.array(["['a', 'b']"]),
    ],
    "structs": [
        pa.array([{"a": 1, "b": 2}]), pa.array([{"a": 1, "c": 2}]), pa.array([{"b": 2, "a": 1}]),
        pa.array([{"a": 1}]), pa.array([{"a": {"b": 1}}]), pa.array([{"a: int64, b": 1}]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("arrays", LOOK_ALIKES.values(), ids=LOOK_ALIKES)
def test_values_that_look_alike_have_different_keys(arrays):
    assert len({keys_of([array])[0] for array in arrays}) == len(arrays)


def test_names_of_fields_do_not_run_into_their_types():
    one = pa.array([{"a": "x", "b": "y"}])
    names = ["a', 'string'), ('b", "a: string, b"]
    others = [pa.array([{name: "xy"}]) for name in names]
    assert len({keys_of([array])[0] for array in [one, *others]}) == 3


def test_columns_do_not_run_into_each_other():
    pairs = [("a", "b"), ("ab", ""), ("", "ab"), ("a", "b|"), ("a|", "b"), ("a\0", "b")]
    args = [pa.array(side) for side in zip(*pairs, strict=True)]
    assert len(set(keys_of(args))) == len(pairs)
    assert len(distinct_rows(args)) == len(pairs)
    assert set(keys_of(args[:1])).isdisjoint(keys_of(args))


def test_how_an_array_holds_its_values_does_not_matter():
    texts = pa.array(["a", None, "b" * 30, "a", ""])
    forms = [
        texts,
        texts.cast(pa.large_string()),
        texts.cast(pa.string_view()),
        texts.dictionary_encode(),
        pc.run_end_encode(texts),
    ]
    assert len({tuple(keys_of([form])) for form in forms}) == 1
    assert {tuple(distinct_rows([form]).kind_of.tolist()) for form in forms} == {(0, 1, 2, 0, 3)}
    lists = pa.array([["a"], None, [], ["a", None]])
    makers = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
    forms = [pa.array(lists.to_pylist(), make(pa.string())) for make in makers]
    assert len({tuple(keys_of([form])) for form in forms}) == 1


def test_what_lies_beneath_a_null_does_not_matter():
    numbers = pa.Array.from_buffers(
        pa.int64(), 2, [pa.py_buffer(b"\0"), pa.py_buffer(np.array([1, 2]))]
    )
    mask = pa.array([True, True])
    beneath = [
        numbers,
        pa.StructArray.from_arrays([pa.array([1, 2])], ["a"], mask=mask),
        pa.ListArray.from_arrays(pa.array([0, 1, 3]), pa.array([1, 2, 3]), mask=mask),
        pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), pa.array([None, "a"])),
    ]
    for array in beneath:
        assert array.to_pylist() == [None, None]
        assert len(distinct_rows([array])) == 1
        assert len(set(keys_of([array]))) == 1


def test_nans_are_equal_by_their_bits():
    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0x7FF8000000000000], np.int64)
    array = pa.array(bits).view(pa.float64())
    assert distinct_rows([array]).kind_of.tolist() == [0, 1, 0]
    nested = pa.StructArray.from_arrays([array], ["x"])
    assert distinct_rows([nested]).kind_of.tolist() == [0, 1, 0]


def test_values_that_cannot_be_compared_are_all_asked_about():
    kinds = pa.array([0, 0, 1], pa.int8())
    union = pa.UnionArray.from_sparse(kinds, [pa.array([1, 1, 0]), pa.array(["", "", "a"])])
    assert distinct_rows([union]).first.tolist() == [0, 1, 2]
    assert len({*keys_of([union]), *keys_of([union])}) == 6
    assert taken(union, np.array([2, 0])).to_pylist() == ["a", 1]


def test_texts_that_are_not_utf8_are_told_apart_by_their_bytes():
    broken = pa.array([b"\xff", b"\xfe", b"\xff"]).view(pa.string())
    assert distinct_rows([broken]).kind_of.tolist() == [0, 1, 0]
    assert len(set(keys_of([broken]))) == 2


def test_a_function_without_columns_is_of_one_kind():
    found = distinct_rows([], 3)
    assert (found.first.tolist(), found.kind_of.tolist(), found.take([])) == ([0], [0, 0, 0], [])
    assert len(set(keys_of([], 3))) == 1
    assert keys_of([], 3) == keys_of([], 1) * 3
    assert (len(distinct_rows([], 0)), keys_of([], 0)) == (0, [])
    with pytest.raises(ValueError, match="give n"):
        distinct_rows([])


@pytest.mark.parametrize("kind", [kind for kind, _ in PLAIN], ids=str)
def test_no_rows_have_no_kinds(kind):
    nothing = pa.array([], kind)
    found = distinct_rows([nothing, nothing])
    assert (len(found), found.take([nothing])[0].type, keys_of([nothing])) == (0, kind, [])


def test_many_columns_of_many_kinds_are_still_told_apart():
    """Codes are numbered anew after each column, so that their product stays small."""
    rows = 3_000
    args = [pa.array((np.arange(rows) * 7919) % (rows - at)) for at in range(12)]
    found = distinct_rows(args)
    assert len(found) == rows
    assert len(distinct_rows([pa.concat_arrays([arg, arg]) for arg in args])) == rows


PRINTED = """
import datetime as dt, decimal, pyarrow as pa
from querymesh.query.costly.distinct import keys_of
args = [
    pa.array(["text", None]), pa.array([1.5, float("nan")]), pa.array([True, None]),
    pa.array([[1, None], []]), pa.array([{"a": "x", "b": None}, None]),
    pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    pa.array([decimal.Decimal("1.50"), None]), pa.array([dt.date(2024, 2, 29), None]),
    pa.array([dt.datetime(2024, 2, 29), None], pa.timestamp("us", "UTC")), pa.nulls(2),
]
print([key.hex() for key in keys_of(args)])
"""


@pytest.mark.parametrize("seed", ["0", "1"])
def test_keys_are_the_same_in_every_process(seed):
    """Written out: a change of them would make everybody's stored answers useless."""
    found = subprocess.run(
        [sys.executable, "-c", PRINTED],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    written = ["d118e777d949ab867559c7fc62c7f367", "fc47c43b30c26f6b9e8f8e32e01288c0"]
    assert found.stdout.strip() == str(written)
