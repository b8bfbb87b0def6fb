"""What there is to gain, way by way, and what advice is made of it."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from placements import BOTH, CATALYST, PYTHON, cases_with_kinds, costs_of
from profiles import profile_of
from querymesh.cost.route_time import Overheads
from querymesh.optimize.placement.advice import REMEMBERING, Advice, ConditionFacts, Verdict
from querymesh.optimize.placement.decide import decide
from querymesh.optimize.placement.gains import conditions_of, gains_of
from querymesh.optimize.placement.worth import Job
from querymesh.query.parse.query import query

FREE = Overheads(0.0, 0.0, 1)


def asked(conditions="f(a)", **functions):
    return query(f"SELECT * FROM t WHERE {conditions}", functions=functions)


def by(gains):
    return {gain.by: gain for gain in gains}


def gains_from(profile, costs, conditions=()):
    decision = decide(asked("a = 1"), profile, costs, FREE)
    return decision, by(gains_of(decision, profile, costs, conditions))


@given(cases_with_kinds())
def test_the_first_three_gains_add_up_to_the_best_that_was_found(case):
    profile, costs = case
    decision, gains = gains_from(profile, costs)
    first = [gains[name].us for name in ("order", "another implementation", "kinds of rows")]
    assert all(us >= 0 for us in first)
    best = min(each.expected_us for each in decision.candidates.values())
    assert decision.plain_us - sum(first) <= best + 1e-9
    assert decision.plain_us - sum(first) >= decision.bound_us - 1e-9


def test_order_is_told_from_another_implementation():
    outcomes = np.array([[1, 0]] * 50 + [[1, 1]] * 50)
    profile = profile_of(outcomes)
    native = costs_of([CATALYST, CATALYST], [3.0, 1.0], 0.0)
    _, gains = gains_from(profile, native)
    assert gains["order"].us == pytest.approx(4.0 - 2.5)
    assert gains["another implementation"].us == 0
    assert "no SQL condition" in gains["another implementation"].note
    arrow = costs_of([BOTH, CATALYST], [3.0, 1.0], 0.1)
    _, gains = gains_from(profile, arrow)
    assert gains["order"].us == pytest.approx(4.0 - 2.5)
    assert gains["another implementation"].us > 0
    assert gains["another implementation"].note.startswith("on Arrow instead of Java: ")


def test_a_good_order_has_nothing_to_gain_and_says_so():
    profile = profile_of(np.array([[0, 1]] * 10 + [[1, 1]] * 10))
    _, gains = gains_from(profile, costs_of([CATALYST, CATALYST], [1.0, 3.0], 0.0))
    assert gains["order"].us == 0
    assert "as good as any" in gains["order"].note
    assert gains[REMEMBERING].note == "there is no Python function"


def facts(values, python_us, chosen_outcomes=None):
    """The facts of `f(a)`, a Python function of these values, and what remembering would save."""
    outcomes = np.ones((len(values), 1)) if chosen_outcomes is None else chosen_outcomes
    sample = pa.table({"a": values})
    bound = asked(f=lambda a: a).bind({"t": sample.schema})
    profile = profile_of(outcomes)
    costs = costs_of([PYTHON], [0.0], python_us)
    decision = decide(bound.query, profile, costs, FREE)
    found = conditions_of(bound, decision, profile, costs, sample)
    return found[0], by(gains_of(decision, profile, costs, found))[REMEMBERING]


def test_repeated_values_of_a_python_function_are_counted_and_priced():
    told, gain = facts([True, False] * 50, 10.0)
    assert (told.sampled, told.distinct, told.rows_per_value) == (100, 2, 50)
    assert told.reach == 1.0
    assert gain.us == pytest.approx(0.98 * 10.0 - 0.1)
    assert "f meets a value 50 times" in gain.note


def test_a_cheap_function_has_nothing_to_remember():
    _, gain = facts([True, False] * 50, 0.05)
    assert gain.us == 0
    assert "hardly meet a value twice, or cost little" in gain.note


def test_nested_values_are_told_apart_too():
    sample = pa.table({"a": [[1, 2], [1, 2], [3], None]})
    bound = asked("g(a)", g=lambda a: [True] * len(a)).bind({"t": sample.schema})
    profile = profile_of(np.ones((4, 1)))
    costs = costs_of([PYTHON], [0.0], 5.0)
    decision = decide(bound.query, profile, costs, FREE)
    (told,) = conditions_of(bound, decision, profile, costs, sample)
    assert told.distinct == 3


def test_values_that_were_not_sampled_are_not_guessed_at():
    sample = pa.table({"a": [1, 2]})
    bound = asked("g(a)", g=lambda a: [True] * len(a)).bind({"t": sample.schema})
    profile = profile_of(np.ones((2, 1)))
    costs = costs_of([PYTHON], [0.0], 5.0)
    decision = decide(bound.query, profile, costs, FREE)
    (told,) = conditions_of(bound, decision, profile, costs, pa.table({"b": [1, 2]}))
    assert told.distinct is None
    assert math.isnan(told.rows_per_value)


def test_an_advice_is_one_line_and_plain_data():
    advice = Advice(
        Verdict.UNKNOWN, "nothing to see", conditions=(ConditionFacts("p", 0.5, math.inf, 2.0),)
    )
    assert repr(advice) == "<Advice: unknown, engine plain>"
    assert not advice.helps
    figures = advice.figures()
    assert figures["plain"] == {"microsPerRow": None, "seconds": None}
    assert figures["conditions"][0]["catalystMicros"] is None
    assert math.isnan(advice.pays_from_rows)


def test_an_advice_says_from_how_many_rows_on_learning_pays():
    profile = profile_of(np.array([[1, 0]] * 500 + [[1, 1]] * 500))
    costs = costs_of([CATALYST, CATALYST], [3.0, 1.0], 0.0)
    job = Job(rows=1_000_000, parallelism=2)
    decision = decide(asked("a = 1"), profile, costs, FREE, job)
    advice = Advice(
        Verdict.YES, decision.why, decision.chosen, decision.plain_us, decision.expected_us,
        learning_s=3.0, job=job, decision=decision,
    )  # fmt: skip
    assert advice.helps
    assert advice.saved_s == pytest.approx(0.75)
    assert advice.pays_from_rows == pytest.approx(4_000_000)
    assert repr(advice) == "<Advice: yes, engine native, plain Spark 4 µs a row, here 2.5>"
