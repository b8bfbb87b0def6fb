"""A proxy in one process: it learns, decides, is watched, and falls back."""

import numpy as np
import pyarrow as pa
import pytest

import querymesh as qm
from querymesh.query.costly.answers import Answers, FailedCall
from querymesh.query.costly.calls.work import Unanswered
from querymesh.query.costly.proxy.in_use import ProxyInUse

OPTIONS = qm.Proxy(recall=0.9, precision=0.9, sample_rows=400)
GOOD, BAD = ["lovely", "fine", "grand", "splendid"], ["broken", "late", "dull", "rotten"]


class Asked:
    """The function itself: whether a text has a bad word; counts the rows it was asked about."""

    def __init__(self, is_true=lambda text: text is not None and text.split()[0] in BAD):
        self.rows = 0
        self.is_true = is_true

    def __call__(self, args, n):
        self.rows += n
        return Answers(pa.array([self.is_true(text) for text in args[0].to_pylist()], pa.bool_()))


def texts(rows, seed):
    rng = np.random.default_rng(seed)
    words = rng.choice([*GOOD, *BAD], rows)
    return [f"{word} thing {number}" for word, number in zip(words, range(rows), strict=True)]


def learned():
    proxy, asked = ProxyInUse(OPTIONS, learns=True), Asked()
    for seed in range(4):
        proxy.answers(asked, [pa.array(texts(100, seed))], 100)
    assert asked.rows == 400, "until it has learned, all rows are asked"
    assert proxy.fitted is not None
    return proxy


def test_once_it_has_learned_clear_rows_are_decided_and_the_answers_are_those_of_all_rows():
    proxy, asked = learned(), Asked()
    rows = texts(2000, 9)
    answers = proxy.answers(asked, [pa.array(rows)], 2000)
    assert answers.values.to_pylist() == [asked.is_true(text) for text in rows]
    assert asked.rows < 200
    assert proxy.audit.saved == 2000 - asked.rows


def test_a_row_without_a_value_is_asked():
    proxy, asked = learned(), Asked()
    assert proxy.answers(asked, [pa.array([None], pa.string())], 1).values.to_pylist() == [False]
    assert asked.rows == 1


def test_of_a_large_batch_only_the_first_rows_are_learned_from():
    proxy, asked = ProxyInUse(OPTIONS, learns=True), Asked()
    rows = texts(3000, 5)
    answers = proxy.answers(asked, [pa.array(rows)], 3000)
    assert answers.values.to_pylist() == [asked.is_true(text) for text in rows]
    assert 400 < asked.rows < 700


def test_what_was_learned_travels_and_decides_alike():
    proxy, other = learned(), ProxyInUse(OPTIONS)
    other.begin(proxy.known, learns=False)
    rows = pa.array(texts(500, 11))
    asked, again = Asked(), Asked()
    assert proxy.answers(asked, [rows], 500).values == other.answers(again, [rows], 500).values
    assert asked.rows == again.rows < 100


def test_where_nothing_was_learned_it_travels_why():
    proxy = ProxyInUse(OPTIONS, learns=True)
    proxy.answers(Asked(), [pa.array(texts(50, 1))], 50)
    proxy.end_learning()
    assert "only 50 of the sampled rows came to it" in proxy.describe(proxy.audit)
    other = ProxyInUse(OPTIONS)
    other.begin(proxy.known, learns=False)
    asked = Asked()
    other.answers(asked, [pa.array(texts(1000, 2))], 1000)
    assert asked.rows == 1000
    assert other.describe(other.audit) == proxy.describe(proxy.audit)


def test_when_the_function_means_something_else_all_rows_are_asked_again():
    proxy = learned()
    turned = Asked(is_true=lambda text: text.split()[0] in GOOD)
    for seed in range(20):
        proxy.answers(turned, [pa.array(texts(1000, 50 + seed))], 1000)
    assert "fell back" in proxy.describe(proxy.audit)
    before = turned.rows
    proxy.answers(turned, [pa.array(texts(300, 99))], 300)
    assert turned.rows == before + 300


def test_rows_that_failed_or_were_not_asked_teach_nothing_and_stay_what_they_are():
    proxy = ProxyInUse(OPTIONS, learns=True)
    call = FailedCall([pa.array(["x"])], 1, ValueError())

    def exactly(args, n):
        return Answers(pa.nulls(n, pa.bool_()), {0: call}, {1: Unanswered()})

    found = proxy.answers(exactly, [pa.array(["a", "b", "c"])], 3)
    assert (list(found.failed), list(found.unasked)) == ([0], [1])
    assert proxy._seen_rows == 1


def test_a_proxy_is_for_conditions_only():
    with pytest.raises(qm.OptionError, match="a proxy decides booleans"):
        qm.function(lambda x: x, name="f", proxy=qm.Proxy())


def test_rows_on_which_the_function_fails_while_it_is_learned_are_as_many_as_there_may_be():
    proxy = ProxyInUse(OPTIONS, learns=True)

    def failing(args, n):
        found = args[0].to_pylist()
        failed = {
            at: FailedCall([args[0].slice(at, 1)], 1, ValueError())
            for at, text in enumerate(found)
            if text == ""
        }
        return Answers(
            pa.array([text.split()[0] in BAD if text else None for text in found], pa.bool_()),
            failed,
        )

        values = [text.split()[0] in BAD if text else None for text in found]
        return Answers(pa.array(values, pa.bool_()), failed)

    rows = texts(399, 3) + [""] * 2000
    answers = proxy.answers(failing, [pa.array(rows)], len(rows))
    assert sorted(answers.failed) == list(range(399, 2399))
