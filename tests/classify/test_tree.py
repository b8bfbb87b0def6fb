import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.classify import tree as trees
from querymesh.classify.tree import (
    Leaf,
    Member,
    Missing,
    Split,
    Threshold,
    answerable,
    answers,
    as_condition,
    as_text,
    attributes_of,
    leaves,
    leaves_of,
)
from querymesh.query.evaluate import evaluate

NUMBERS = st.lists(st.none() | st.floats() | st.just(2.0), max_size=20)
TESTS = st.one_of(
    st.builds(Threshold, st.just("x"), st.floats(-3, 3), st.booleans()), st.just(Missing("x"))
)


@given(NUMBERS, TESTS)
def test_the_numpy_and_the_expression_form_of_a_numeric_test_agree(values, test):
    column = pa.array(values, pa.float64())
    expected = evaluate(as_condition(test), lambda _: column, len(column), {})
    assert expected.null_count == 0
    assert answers(test, column).tolist() == expected.to_pylist()


@given(
    st.lists(st.none() | st.sampled_from("abcz"), max_size=20),
    st.lists(st.sampled_from("abc"), min_size=1, unique=True),
)
def test_both_forms_of_a_membership_test_agree(values, wanted):
    column = pa.array(values, pa.string())
    test = Member("x", tuple(wanted))
    expected = evaluate(as_condition(test), lambda _: column, len(column), {})
    assert answers(test, column).tolist() == expected.to_pylist()


def test_null_nan_and_values_never_seen_have_a_place():
    column = pa.array([1.0, None, math.nan])
    assert answers(Threshold("x", 2.0, True), column).tolist() == [True, True, False]
    assert answers(Threshold("x", 2.0, False), column).tolist() == [True, False, False]
    text = pa.array(["new", None, "a"])
    assert answers(Member("x", ("a",)), text).tolist() == [False, False, True]
    assert answers(Missing("x"), text).tolist() == [False, True, False]


def test_every_row_reaches_exactly_one_leaf():
    tree = Split(
        Threshold("x", 0.5, False),
        Split(Member("k", ("a",)), Leaf(0), Leaf(1)),
        Split(Missing("x"), Leaf(2), Leaf(0)),
    )
    columns = {"x": pa.array([0.1, 0.9, None, 0.2]), "k": pa.array(["a", "a", "b", "b"])}
    reached = [rows.tolist() for rows in leaves_of(tree, columns.__getitem__, 4)]
    assert reached == [[0], [3], [2], [1]]
    assert attributes_of(tree) == {"x", "k"}
    assert [r.tolist() for r in leaves_of(Leaf(0), columns.__getitem__, 2)] == [[0, 1]]


@pytest.mark.parametrize(
    ("test", "yes", "no"),
    [
        (Threshold("price", 10.5, False), "price <= 10.5", "price > 10.5"),
        (Threshold("price", 10.5, True), "price <= 10.5 or NULL", "price > 10.5"),
        (Member("k", ("a", "b")), "k in {a, b}", "k not in {a, b}"),
        (Member("k", tuple(range(9))), "k in {0, 1, 2, 3, 4, 5, … 3 more}", None),
        (Missing("k"), "k is NULL", "k is not NULL"),
    ],
)
def test_a_test_reads_as_its_answer(test, yes, no):
    assert as_text(test) == yes
    if no:
        assert as_text(test, answer=False) == no


def test_integer_columns_meet_thresholds_and_sets():
    column = pa.array([1, 2, None, 300], pa.int16())
    assert answers(Threshold("x", 2.5, False), column).tolist() == [True, True, False, False]
    assert answers(Member("x", (2, 300)), column).tolist() == [False, True, False, True]
    assert np.asarray(answers(Member("x", (2,)), column)).dtype == bool


@pytest.mark.parametrize(
    ("test", "kind", "has_answers"),
    [
        (Threshold("x", 1.5, False), pa.int8(), True),
        (Threshold("x", 1.5, False), pa.float32(), True),
        (Threshold("x", 1.5, False), pa.decimal128(9, 2), True),
        (Threshold("x", 1.5, False), pa.string(), False),
        (Threshold("x", 1.5, False), pa.bool_(), False),
        (Threshold("x", 1.5, False), pa.timestamp("s"), False),
        (Member("x", ("a",)), pa.string(), True),
        (Member("x", ("a",)), pa.int64(), False),
        (Member("x", (1,)), pa.int64(), True),
        (Missing("x"), pa.list_(pa.int64()), True),
    ],
    ids=str,
)
def test_a_column_of_another_type_has_no_answers(test, kind, has_answers):
    assert answerable(test, kind) == has_answers


def test_leaves_come_from_left_to_right_with_the_tests_before_them():
    tree = Split(Missing("x"), Leaf(4), Split(Threshold("x", 1.0, True), Leaf(5), Leaf(4)))
    assert list(leaves(tree)) == [(Leaf(4), 1), (Leaf(5), 2), (Leaf(4), 2)]
    assert list(leaves(Leaf(9))) == [(Leaf(9), 0)]
    assert list(trees.tests_of(tree)) == [Missing("x"), Threshold("x", 1.0, True)]


def test_null_is_no_zero_among_whole_numbers():
    column = pa.array([0, None, 3])
    assert answers(Member("x", (0, 3)), column).tolist() == [True, False, True]
    assert answers(Member("x", tuple(range(17))), column).tolist() == [True, False, True]
    assert answers(Member("x", (0,)), pa.array([0, 3])).tolist() == [True, False]


def test_whole_numbers_beside_null_are_compared_to_the_last_digit():
    column = pa.array([2**53, None, 2**53 + 1])
    assert answers(Member("x", (2**53 + 1,)), column).tolist() == [False, False, True]


def test_null_among_numbers_without_a_sign_is_no_number():
    column = pa.array([0, None, 255], pa.uint8())
    assert answers(Member("x", (0, 255)), column).tolist() == [True, False, True]


def test_six_values_are_shown_and_none_is_left_to_count():
    assert as_text(Member("k", tuple(range(6)))) == "k in {0, 1, 2, 3, 4, 5}"
