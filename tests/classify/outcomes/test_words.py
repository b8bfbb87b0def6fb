"""Words of texts as buckets."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.classify.outcomes import words as module
from querymesh.classify.outcomes.words import BUCKETS, MOST_CHARACTERS, column_salt, words


def rows_of(texts, salt=0):
    """The buckets of each row, in the order of its words."""
    bucket, row = words(pa.array(texts, pa.string()), salt)
    assert (np.diff(row) >= 0).all()
    return [bucket[row == number].tolist() for number in range(len(texts))]


def test_the_same_word_has_the_same_bucket_wherever_it_stands():
    first, second, third = rows_of(["A dull, DULL film.", "dull", "film—“film’s” 'a'"])
    a, dull, again, film = first
    assert dull == again == second[0]
    assert third[:2] == [film, film]
    assert third[-1] == a
    assert len(third) == 4


def test_null_is_a_word_and_an_empty_text_has_none():
    assert rows_of([None, "", "null", "?!"]) == [*rows_of(["null"]), [], *rows_of(["null"]), []]
    assert rows_of([]) == []


def test_characters_of_scripts_without_spaces_are_words():
    (found,) = rows_of(["日本 film"])
    assert found[:2] == [*rows_of(["日"])[0], *rows_of(["本"])[0]]
    assert len(found) == 3


def test_a_word_of_another_column_is_another_word():
    assert rows_of(["film"], column_salt("a")) != rows_of(["film"], column_salt("b"))


def test_every_process_finds_the_same_buckets():
    code = (
        "import pyarrow as pa; from querymesh.classify.outcomes.words import words;"
        "print(words(pa.array(['Ein Müsli, 42 films', None]), 7)[0].tolist())"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("0", "4711")
    }  # fmt: skip
    assert told == {f"{words(pa.array(['Ein Müsli, 42 films', None]), 7)[0].tolist()}\n"}
    # Written down, so that no version reads a saved mesh otherwise.
    assert words(pa.array(["Ein Müsli, 42 films"]), 7)[0].tolist() == WRITTEN


WRITTEN = [2394, 464, 610, 816]


@given(st.lists(st.none() | st.text(max_size=40), max_size=12), st.integers(0, 3))
def test_slices_and_pieces_have_the_words_of_the_whole(texts, first):
    whole = pa.array(texts, pa.string())
    each = [words(whole.slice(k, 1), 1)[0].tolist() for k in range(len(texts))]
    assert rows_of(texts, 1) == each
    part = whole.slice(min(first, len(texts)))
    bucket, row = words(part, 1)
    assert bucket.tolist() == [b for found in each[first:] for b in found]
    assert row.tolist() == [k for k, found in enumerate(each[first:]) for _ in found]
    assert all(0 <= b < BUCKETS for b in bucket)


def test_long_texts_are_read_in_pieces_and_to_a_length(monkeypatch):
    texts = ["film " * 1000, "dull film", None] * 20
    whole = rows_of(texts)
    assert len(whole[0]) == -(-MOST_CHARACTERS // len("film "))
    monkeypatch.setattr(module, "MOST_BYTES", 6000)
    assert rows_of(texts) == whole


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_other_kinds_of_texts_have_the_same_words(kind):
    texts = pa.array(["A dull film", None, "dull"])
    for own, plain in zip(words(texts.cast(kind), 3), words(texts, 3), strict=True):
        assert own.tolist() == plain.tolist()
