"""Which rows are audited, and what the records of audits add up to."""

import numpy as np
import pyarrow as pa
import pytest

from querymesh.query.costly.proxy.audit import Audit, is_audited
from querymesh.query.costly.proxy.decision import Split


def test_about_the_share_is_audited_and_always_the_same_rows() -> None:
    texts = [pa.array([f"text {at}" for at in range(20_000)])]
    audited = is_audited(texts, 20_000, 0.02, seed=3)
    assert 320 < audited.sum() < 480
    again = is_audited([texts[0].slice(5000, 5000)], 5000, 0.02, seed=3)
    assert again.tolist() == audited[5000:10_000].tolist()
    other = is_audited(texts, 20_000, 0.02, seed=4)
    assert 0 < (other & audited).sum() < 40


def test_repeats_are_audited_together() -> None:
    texts = [pa.array([f"text {at % 100}" for at in range(1000)])]
    audited = is_audited(texts, 1000, 0.3, seed=0).reshape(10, 100)
    assert (audited == audited[0]).all()


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 50)])
def test_none_or_all_may_be_audited(share: float, expected: int) -> None:
    assert is_audited([pa.array(range(50))], 50, share, seed=0).sum() == expected
    assert len(is_audited([pa.array([], pa.int64())], 0, share, seed=0)) == 0


def made_split() -> Split:
    """Two rows said to be true, two false, one of each audited; two doubtful ones."""
    return Split(
        np.array([True, True, False, False, False, False]),
        np.array([False, False, True, True, False, False]),
        np.array([False, True, False, True, False, False]),
    )


def test_rows_to_ask_are_the_doubtful_and_the_audited_ones() -> None:
    split = made_split()
    assert split.to_ask.tolist() == [1, 3, 4, 5]
    assert split.known.to_pylist() == [True, None, False, None, None, None]
    answers = split.answers(pa.array([False, True, True, None]))
    assert answers.to_pylist() == [True, False, False, True, True, None]


def test_what_was_found_is_counted_by_side() -> None:
    found = made_split().audit(pa.array([False, True, True, None]))
    assert found == Audit(
        asked=2, passed=1,
        clear_true=2, audited_true=1, wrong_true=1,
        clear_false=2, audited_false=1, wrong_false=1,
    )  # fmt: skip
    assert (found.rows, found.saved) == (6, 2)
    right = made_split().audit(pa.array([True, False, False, False]))
    assert (right.wrong_true, right.wrong_false, right.passed) == (0, 0, 0)


def test_rows_without_an_answer_say_nothing_of_the_proxy() -> None:
    found = made_split().audit(pa.array([None, True, True, None]), failed=[0])
    assert (found.audited_true, found.wrong_true, found.wrong_false) == (0, 0, 1)


def test_records_are_added_and_taken_from_each_other() -> None:
    one, other = Audit(1, 1, 2, 1, 0, 3, 1, 1), Audit(5, 2, 0, 0, 0, 1, 1, 0)
    assert one.plus(other).minus(other) == one
    assert one.plus(Audit()) == one
    assert one.plus(other).rows == one.rows + other.rows
