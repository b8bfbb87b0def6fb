"""Profiling within a budget: fewer rows of dear functions, none of them twice."""

import pyarrow as pa

import querymesh as qm
from querymesh.fabric.profile.bounded_profile import FIRST_ROWS, followed_by, profile_within

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
