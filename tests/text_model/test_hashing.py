"""Words and pieces of texts become the same numbers wherever they stand."""

import numpy as np
import pyarrow as pa

from querymesh.text_model.hashing import SLAB_ROWS, hashed_texts


def sets_of(texts: pa.Array) -> list[set[int]]:
    """The hashes of each row."""
    rows, hashes = hashed_texts(texts)
    return [set(hashes[rows == row].tolist()) for row in range(len(texts))]


def test_a_word_has_one_hash_wherever_it_stands_and_however_it_is_written() -> None:
    one, two, other = sets_of(pa.array(["a GOOD film", "so: good", "bad"]))
    assert len(one & two) >= 1
    assert not other & (one | two)


def test_pairs_know_their_order() -> None:
    one, other = sets_of(pa.array(["not good", "good not"]))
    assert len(one & other) == 2  # the words, not the pairs


def test_nothing_goes_from_one_text_into_the_next() -> None:
    alone = sets_of(pa.array(["abc"]))[0]
    assert sets_of(pa.array(["xyz", "abc", "", "abc", None, "def"]))[1] == alone
    assert sets_of(pa.array(["xyz", "abc", "", "abc", None, "def"]))[3] == alone


def test_rows_do_not_depend_on_what_they_come_with() -> None:
    texts = pa.array([f"text {at % 7} of ümläut {at}" for at in range(3 * SLAB_ROWS + 5)])
    together = sets_of(texts)
    for at in (0, SLAB_ROWS - 1, SLAB_ROWS, len(texts) - 1):
        assert sets_of(texts.slice(at, 1)) == [together[at]]


def test_slices_and_large_strings_are_read_as_what_they_are() -> None:
    texts = pa.array(["first", None, "second text", ""])
    for kind in (pa.string(), pa.large_string()):
        assert sets_of(texts.cast(kind).slice(2)) == sets_of(pa.array(["second text", ""]))


def test_hashes_spread_over_buckets() -> None:
    _, hashes = hashed_texts(pa.array([f"w{at}" for at in range(4000)]))
    filled = np.bincount((hashes % np.uint64(64)).astype(int), minlength=64)
    assert filled.min() > 0.7 * filled.mean()


def test_no_texts_have_no_hashes() -> None:
    for texts in (pa.array([], pa.string()), pa.array(["", None])):
        assert len(hashed_texts(texts)[1]) == 0
