"""Answers in the order of their keys: found, made one, written, and never believed when damaged."""

from hashlib import blake2b
from math import log2

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arrow_cases import any_types, told_apart
from querymesh.query.costly.store.kept_answers import (
    FOREVER,
    answers_of,
    merged,
    together,
    unpacked,
)
from soak import TIMES

CASES = settings(max_examples=100 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
few_keys = st.sampled_from([bytes([high] * 8 + [low] * 8) for high in (0, 1) for low in range(5)])
"""Of which many share a half."""
keys = st.binary(min_size=16, max_size=16) | few_keys
times = st.floats(0, 100, width=16)
numbers = st.dictionaries(keys, st.tuples(st.integers(0, 9), times))


@st.composite
def typed_answers(draw):
    kind, values = draw(any_types)
    drawn = draw(st.dictionaries(keys, st.tuples(values, times), max_size=6))
    plain = pa.array([value for value, _ in drawn.values()], kind).to_pylist()
    return kind, {
        key: (value, at) for (key, (_, at)), value in zip(drawn.items(), plain, strict=True)
    }


@CASES
@given(case=typed_answers(), others=st.lists(keys, max_size=3))
def test_answers_of_any_type_come_back_from_a_file(case, others):
    kind, answers = case
    found = unpacked(answers_of(answers, kind).packed(), kind).find([*answers, *others], FOREVER)
    for key, (value, at) in answers.items():
        assert told_apart(found[key][0]) == told_apart(value)
        assert found[key][1] == at
    assert set(found) == set(answers)


@CASES
@given(parts=st.lists(numbers, min_size=1), asked=st.lists(keys), not_before=times)
def test_of_many_the_newest_answers_are_found_and_none_that_is_too_old(parts, asked, not_before):
    expected = {}
    for part in parts:
        for key, (value, at) in part.items():
            if at >= max(not_before, expected.get(key, (None, FOREVER))[1]):
                expected[key] = (value, at)
    one = merged([answers_of(part, pa.int64()) for part in parts], not_before)
    found = one.find([*expected, *asked], FOREVER)
    assert {key: at for key, (_, at) in found.items()} == {
        key: at for key, (_, at) in expected.items()
    }
    for key, (value, at) in found.items():
        assert (value, at) in [part[key] for part in parts if key in part]
    every = merged([answers_of(part, pa.int64()) for part in parts], FOREVER)
    assert set(every.find(list(expected), not_before)) == set(expected)
    assert len(every) == len({key for part in parts for key in part})


@given(sizes=st.lists(st.integers(1, 10**6), min_size=1, max_size=200))
def test_few_files_remain_whatever_their_sizes(sizes):
    sizes.sort()
    count = together(sizes)
    remaining = [sum(sizes[:count]), *sizes[count:]]
    assert len(remaining) <= log2(sum(sizes)) / log2(3) + 2
    assert all(size > 2 * sum(remaining[:at]) for at, size in enumerate(remaining) if at)


def test_an_answer_is_written_few_times_while_files_come_one_by_one():
    files, written, many = [], 0, 5_000
    for _ in range(many):
        files = sorted([*files, 1])
        if len(files) > 64:
            count = together(files)
            written += sum(files[:count])
            files = [sum(files[:count]), *files[count:]]
    assert written < 8 * many


def a_file():
    answers = {bytes([at]) * 16: (at % 2 == 0, float(at)) for at in range(20)}
    return answers_of(answers, pa.bool_()).packed()


@CASES
@given(data=st.data())
def test_no_bit_changes_unnoticed(data):
    content = bytearray(a_file())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match="it is not"):
        unpacked(bytes(content), pa.bool_())


@CASES
@given(kept=st.floats(0, 0.999))
def test_no_file_is_cut_unnoticed(kept):
    content = a_file()
    with pytest.raises(ValueError, match="it is not"):
        unpacked(content[: int(kept * len(content))], pa.bool_())


def a_whole_file_of(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content = bytes(sink.getvalue())
    return b"QMANSWR1" + blake2b(content, digest_size=16).digest() + content


def test_a_whole_file_of_something_else_is_refused():
    key = pa.array([b"k" * 16], pa.binary(16))
    columns = {"key": key, "value": pa.array([True]), "at": pa.array([1.0])}
    assert len(unpacked(a_whole_file_of(pa.table(columns)), pa.bool_())) == 1
    assert len(unpacked(a_whole_file_of(pa.table(columns).slice(1)), pa.bool_())) == 0
    wrong = [
        {"value": pa.array(["yes"])},
        {"key": pa.array([b"k" * 16])},
        {"key": pa.array([None], pa.binary(16))},
        {"at": pa.array([1])},
        {"at": pa.array([None], pa.float64())},
        {"more": pa.array([1])},
    ]
    for each in wrong:
        with pytest.raises(ValueError, match="it has other columns"):
            unpacked(a_whole_file_of(pa.table({**columns, **each})), pa.bool_())
    with pytest.raises(ValueError, match="File is too small"):
        unpacked(b"QMANSWR1" + blake2b(b"x", digest_size=16).digest() + b"x", pa.bool_())


def test_several_batches_in_a_file_are_one():
    one = pa.table({
        "key": pa.array([b"a" * 16], pa.binary(16)),
        "value": pa.array([True]),
        "at": pa.array([1.0]),
    })  # fmt: skip
    other = one.set_column(0, "key", pa.array([b"b" * 16], pa.binary(16)))
    found = unpacked(a_whole_file_of(pa.concat_tables([one, other])), pa.bool_())
    assert len(found) == 2


def test_an_answer_takes_little_space():
    rows = 10_000
    random = np.random.default_rng(1).bytes(16 * rows)
    answers = answers_of(
        {random[16 * at : 16 * at + 16]: (True, 1.0) for at in range(rows)}, pa.bool_()
    )
    assert answers.size_bytes < 25 * rows
    assert len(answers.packed()) < 26 * rows
