"""Profiling within a budget: fewer rows of dear functions, none of them twice."""

import numpy as np
import pyarrow as pa
import pytest

import querymesh as qm
from querymesh.fabric.profile.bounded_profile import (
    FIRST_ROWS,
    LEAST_SHARE,
    _sloped,
    followed_by,
    profile_within,
)
from querymesh.stats.profile import Profile

ROWS = 500


def bound_with(fn):
    predicate = qm.predicate(fn, columns=["a"], name="fn", vectorised=False)
    query = qm.query("SELECT * FROM t WHERE fn(a) AND a % 3 = 0", functions={"fn": predicate})
    return query.bind({"t": pa.schema([("a", pa.int64())])})


def sample(rows=ROWS):
    return pa.table({"a": list(range(rows))})


def test_without_a_budget_only_the_first_rows_are_asked():
    asked = []
    bound = bound_with(lambda a: asked.append(a) or True)
    profile = profile_within(bound, sample(), {}, "raise", lambda row_s: 0.0)
    assert profile.rows == FIRST_ROWS == len(asked)
    assert profile.sample.num_rows == FIRST_ROWS


def test_a_large_budget_asks_every_row_once():
    asked = []
    bound = bound_with(lambda a: asked.append(a) or a % 2 == 0)
    profile = profile_within(bound, sample(), {}, "raise", lambda row_s: 1e6)
    assert sorted(asked) == list(range(ROWS))
    assert profile.outcomes[:, 0].tolist() == [float(a % 2 == 0) for a in range(ROWS)]


def test_the_budget_is_told_what_a_row_takes_and_pays_for_so_many():
    asked = []
    bound = bound_with(lambda a: asked.append(a) or True)
    told = []

    def budget_s(row_s):
        told.append(row_s)
        return 100.5 * row_s

    profile = profile_within(bound, sample(), {}, "raise", budget_s)
    assert len(told) == 2, "asked again, and no row more is paid for"
    assert told[0] > 0
    assert profile.rows == 100 == len(asked)


def test_sql_alone_needs_no_budget():
    bound = qm.query("SELECT * FROM t WHERE a > 3 AND a % 2 = 0").bind(
        {"t": pa.schema([("a", pa.int64())])}
    )
    assert profile_within(bound, sample(), {}, "raise", lambda row_s: 0.0).rows == ROWS


def test_further_rows_follow_those_already_known():
    bound = bound_with(lambda a: a % 2 == 0)
    first = profile_within(bound, sample(10), {}, "raise", lambda row_s: 0.0)
    both = followed_by(first, bound, sample(30).slice(10), {}, "raise")
    assert both.sample["a"].to_pylist() == list(range(30))
    assert both.outcomes[:, 0].tolist() == [float(a % 2 == 0) for a in range(30)]


def priced(us, after=frozenset()):
    """A profile of a function that took so long for a row, on average, and of another."""
    costs, nothing = np.array([us, 9.0]), frozenset()
    return Profile(sample(10), ("fn", "other"), (after, nothing), np.ones((10, 2)), costs, costs)


@pytest.mark.parametrize(("fewer_us", "us", "told_us"), [
    (100.5, 34.0, 0.75),  # a call takes 5.8 ms, and a row next to nothing: a tenth at least
    (7.0, 3.0, 1.0),      # 348 µs and one
    (2.0, 2.0, 2.0),      # by the row alone
    (1.0, 2.0, 2.0),      # no row costs more than the mean of all
])  # fmt: skip
def test_what_a_call_costs_is_not_taken_for_what_a_row_costs(fewer_us, us, told_us):
    told = _sloped(priced(us), [0], (58, np.array([fewer_us, 9.0])), 174).cost_us[0]
    assert told == pytest.approx(max(told_us, LEAST_SHARE * us), rel=1e-3)


def test_a_function_that_is_asked_about_what_others_leave_keeps_its_mean():
    told = _sloped(priced(3.0, frozenset({2})), [0], (58, np.array([7.0, 9.0])), 174)
    assert told.cost_us[0] == 3.0 == told.drop_us[0]


def test_rows_that_tell_the_cost_are_asked_in_two_calls():
    calls = []
    predicate = qm.predicate(
        lambda a: calls.append(len(a)) or pa.array([True] * len(a)), columns=["a"], name="fn"
    )
    query = qm.query("SELECT * FROM t WHERE fn(a)", functions={"fn": predicate})
    bound = query.bind({"t": pa.schema([("a", pa.int64())])})
    assert profile_within(bound, sample(256), {}, "raise", lambda row_s: 1e6).rows == 256
    assert calls == [24, 58, 174]
