import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.cost.plan_tree import Join, Project, Select, Source, sources_of
from querymesh.cost.rates import JoinCosts, join_rate
from querymesh.errors import QueryError
from querymesh.optimize.rate.cardinality import expected_total
from querymesh.optimize.rate.curves import Curve, crossings, predicted, predicted_until, settled_s
from querymesh.optimize.rate.goals import Last, achieved
from querymesh.optimize.rate.join_plans import plans
from rate_cases import random_query

READINGS = ["queue", "mean", "printed"]
LIGHT = JoinCosts(hash_s=0.001)
HEAVY = JoinCosts(hash_s=0.01)
CLOSE = 1e-3
FIGURE_1 = Source("I", 500.0)
SLOW, FAST = (0.1, 0.02, "σ1"), (0.1, 0.0, "σ2")


def join(costs, left=50.0, right=100.0, selectivity=0.01, **streams):
    return Join(Source("A", left, **streams), Source("B", right, **streams), selectivity, costs)


@pytest.mark.parametrize("reading", READINGS)
def test_figure_1_as_a_curve(reading):
    slow_first = predicted(Select(Select(FIGURE_1, *SLOW), *FAST), 100, reading)
    fast_first = predicted(Select(Select(FIGURE_1, *FAST), *SLOW), 100, reading)
    assert slow_first.outputs(100) / 100 == pytest.approx(0.5)
    assert fast_first.outputs(100) / 100 == pytest.approx(5)
    assert fast_first.outputs(50) == pytest.approx(250)


@pytest.mark.parametrize("reading", READINGS)
def test_a_projection_of_a_stream_that_ends_works_off_what_is_left(reading):
    tree = Project(Source("A", 100, 1000), 0.02)
    curve = predicted(tree, reading=reading)
    assert curve.outputs(10) == pytest.approx(500, rel=CLOSE)
    assert curve.total == pytest.approx(1000)
    assert curve.time_of(curve.total) == pytest.approx(20, rel=0.01)


@pytest.mark.parametrize(
    ("reading", "light", "heavy"),
    [("queue", 1, 1 / 1.5**2), ("mean", 1, 1 / 1.5), ("printed", 1 / 2, 1 / 2 / 1.5)],
)
def test_equation_3_has_closed_forms_for_two_streams(reading, light, heavy):
    pairs = 0.01 * 50 * 100 * 20**2
    assert predicted(join(LIGHT), 20, reading).outputs(20) == pytest.approx(
        light * pairs, rel=CLOSE
    )
    assert predicted(join(HEAVY), 20, reading).outputs(20) == pytest.approx(
        heavy * pairs, rel=CLOSE
    )
    halfway = predicted(join(HEAVY), 20, reading).outputs(10)
    assert halfway == pytest.approx(heavy * pairs / 4, rel=CLOSE)


@pytest.mark.parametrize("costs", [LIGHT, HEAVY])
def test_equation_2_is_the_mean_rate_when_everything_that_came_is_out(costs):
    tree = join(costs)
    work = max(1, 150 * costs.hash_s)
    rate = join_rate(50, 100, 0.01, 20, costs)
    assert predicted(tree, 20, "mean").outputs(20) / 20 == pytest.approx(rate, rel=CLOSE)
    curve = predicted(tree, 20 * work, "queue")
    assert curve.outputs(20 * work) / (20 * work) == pytest.approx(rate, rel=CLOSE)


@pytest.mark.parametrize(("reading", "share"), [("queue", 1), ("mean", 1), ("printed", 1 / 4)])
def test_without_overload_every_shape_of_four_streams_makes_the_same(reading, share):
    streams = [Source(name, rate) for name, rate in zip("ABCD", (5, 6, 7, 8), strict=True)]
    a, b, c, d = streams
    linear = Join(Join(Join(a, b, 0.1), c, 0.1), d, 0.1)
    bushy = Join(Join(a, b, 0.1), Join(c, d, 0.1), 0.1)
    expected = share * 0.1**3 * 5 * 6 * 7 * 8 * 10**4
    for tree in (linear, bushy):
        assert predicted(tree, 10, reading).outputs(10) == pytest.approx(expected, rel=CLOSE)


def test_a_stream_that_has_ended_is_still_met():
    tree = Join(Source("A", 10, 50), Source("B", 20, 1000), 0.1, LIGHT)
    curve = predicted(tree)
    assert curve.outputs(5) == pytest.approx(0.1 * 50 * 100)
    assert curve.outputs(30) - curve.outputs(20) == pytest.approx(0.1 * 50 * 200, rel=CLOSE)
    assert curve.time_of(curve.total) == pytest.approx(50, rel=CLOSE)


def test_with_a_window_it_is_not():
    tree = Join(Source("A", 10, 50, window_s=3), Source("B", 20, 1000, window_s=3), 0.1, LIGHT)
    curve = predicted(tree)
    assert curve.outputs(9) == pytest.approx(curve.total)
    # Rows meet at a distance of at most 3 s while both come, then B meets what A left.
    both = 10 * 20 * (2 * 3 * 5 - 3**2)
    left = 10 * 20 * 3**2 / 2
    assert curve.total == pytest.approx(0.1 * (both + left), rel=CLOSE)


def test_nested_loops_are_done_when_every_pair_was_compared():
    costs = JoinCosts("nested loops", move_s=0.001, comp_s=0.0001)
    tree = Join(Source("A", 100, 1000), Source("B", 100, 1000), 0.1, costs)
    for reading in ("queue", "mean"):
        curve = predicted(tree, reading=reading)
        assert curve.total == pytest.approx(100_000)
        assert curve.time_of(curve.total) == pytest.approx(2000 * 0.001 + 1e6 * 0.0001, rel=0.01)


@pytest.mark.parametrize("reading", READINGS)
def test_an_overloaded_plan_makes_all_its_results_in_the_end(reading):
    rng = random.Random(4)
    for _ in range(5):
        for tree in plans(random_query(rng))[:6]:
            curve = predicted(tree, reading=reading)
            assert curve.ends
            assert curve.total == pytest.approx(expected_total(tree), rel=1e-6)


TREES = (
    st.integers(0, 10_000).map(random.Random).map(lambda rng: rng.choice(plans(random_query(rng))))
)


def with_windows(tree, seconds):
    match tree:
        case Source():
            return Source(tree.name, tree.rate, tree.size, seconds)
        case Join(left, right, selectivity, costs):
            sides = with_windows(left, seconds), with_windows(right, seconds)
            return Join(*sides, selectivity, costs)
        case Select(child, selectivity, cost_s):
            return Select(with_windows(child, seconds), selectivity, cost_s)


@settings(deadline=None, max_examples=40)
@given(TREES, st.sampled_from(READINGS), st.sampled_from([math.inf, 5.0]))
def test_outputs_never_fall(tree, reading, window_s):
    curve = predicted(with_windows(tree, window_s), reading=reading)
    assert curve.made[0] == curve.times_s[0] == 0
    assert (np.diff(curve.made) >= 0).all()
    assert (np.diff(curve.times_s) > 0).all()


@settings(deadline=None, max_examples=40)
@given(TREES, st.sampled_from(READINGS), st.floats(0.001, 0.999))
def test_the_time_of_the_outputs_of_a_time_is_that_time(tree, reading, part):
    curve = predicted(tree, reading=reading)
    time_s = part * curve.time_of(curve.total)
    assert curve.time_of(curve.outputs(time_s)) == pytest.approx(time_s, rel=1e-6)


def random_plan(seed):
    rng = random.Random(seed)
    return rng.choice(plans(random_query(rng)))


@pytest.mark.parametrize("seed", [59, 80, 180, 387, 476, 670, 711])
@pytest.mark.parametrize("reading", READINGS)
def test_the_last_digit_of_a_total_is_not_waited_for(seed, reading):
    curve = predicted(random_plan(seed), reading=reading)
    nearly_s = curve.time_of(curve.total * (1 - 1e-9))
    assert curve.time_of(curve.total) == pytest.approx(nearly_s, rel=1e-5)


def test_times_and_outputs_lead_to_each_other_in_many_plans():
    for seed in range(120):
        for reading in READINGS:
            curve = predicted(random_plan(seed), reading=reading)
            for part in (0.001, 0.1, 0.5, 0.9, 0.99, 0.999):
                time_s = part * curve.time_of(curve.total)
                assert curve.time_of(curve.outputs(time_s)) == pytest.approx(time_s, rel=1e-6)


def test_the_last_result_of_a_plan_that_keeps_pace_comes_with_the_last_row():
    # S2 is the last to end; a fast join above it must not put off the end by what is rounded.
    ends_s = max(source.end_s for source in sources_of(random_plan(387)))
    assert achieved(random_plan(387), Last()) == pytest.approx(ends_s, rel=1e-9)
    assert achieved(random_plan(59), Last()) == pytest.approx(1114.9525585637325, rel=1e-9)


def test_a_stream_that_has_ended_has_all_its_rows_though_products_are_rounded():
    source = Source("A", 7, 115)
    assert source.rate * source.end_s < source.size
    curve = predicted(source)
    assert curve.outputs(source.end_s) == source.size


def test_a_flat_tail_is_as_long_as_it_is_and_its_rounding_is_no_result():
    made = np.array([0.0, 60.0, 100 * (1 - 1e-15), 100.0])
    curve = Curve(np.array([0.0, 10.0, 20.0, 900.0]), made, True)
    assert curve.time_of(100) == 20
    assert curve.time_of(100 * (1 - 1e-15)) == 20
    assert curve.time_of(80) == pytest.approx(15)
    # A rest that is more than rounding is waited for.
    made = np.array([0.0, 60.0, 99.999, 100.0])
    assert Curve(curve.times_s, made, True).time_of(100) == 900


def test_work_that_is_small_beside_the_time_is_no_delay():
    # A nanosecond a row: after some hours the clock's last digit is more than the work of a row.
    costs = JoinCosts(hash_s=1e-9)
    tree = Join(Source("A", 3, 1e5), Source("B", 7, 2e5), 1e-3, costs)
    free = Join(Source("A", 3, 1e5), Source("B", 7, 2e5), 1e-3)
    assert (predicted(tree, 1e5).made == predicted(free, 1e5).made).all()


@settings(deadline=None, max_examples=40)
@given(TREES, st.sampled_from(["mean", "printed"]), st.floats(0.1, 100), st.floats(1, 10))
def test_windows_never_increase_outputs(tree, reading, window_s, longer):
    until_s = 100
    narrow = predicted(with_windows(tree, window_s), until_s, reading)
    wide = predicted(with_windows(tree, window_s * longer), until_s, reading)
    endless = predicted(tree, until_s, reading)
    for time_s in (1, 10, 50, 100):
        assert narrow.outputs(time_s) <= endless.outputs(time_s) * (1 + CLOSE)
        assert narrow.outputs(time_s) <= wide.outputs(time_s) * (1 + CLOSE)


@settings(deadline=None, max_examples=40)
@given(
    st.tuples(st.floats(1, 1000), st.floats(1, 1000)),
    st.tuples(st.floats(0, 0.01), st.floats(0, 0.001)),
    st.sampled_from(["nested loops", "symmetric hash"]),
    st.floats(0.1, 100),
)
def test_windows_never_increase_the_outputs_of_a_queue_at_one_join(rates, costs_s, way, window_s):
    tree = join(JoinCosts(way, move_s=costs_s[0], comp_s=costs_s[1]), *rates)
    narrow, endless = predicted(with_windows(tree, window_s), 100), predicted(tree, 100)
    for time_s in (1, 10, 50, 100):
        assert narrow.outputs(time_s) <= endless.outputs(time_s) * (1 + CLOSE)


def test_in_a_queue_a_window_below_can_help_what_is_above():
    # A ⋈ B swamps the join above, which gets to the rows of C late; with a window at A less so.
    def plan(window_s):
        below = Join(Source("A", 50, window_s=window_s), Source("B", 50), 0.1)
        return Join(below, Source("C", 10), 0.1, JoinCosts(hash_s=0.02))

    narrow, endless = predicted(plan(5), 500), predicted(plan(math.inf), 500)
    assert narrow.outputs(500) > 1.01 * endless.outputs(500)


@pytest.mark.parametrize("reading", READINGS)
def test_a_curve_for_a_number_of_results_goes_far_enough(reading):
    curve = predicted_until(join(HEAVY), 1e9, reading)
    assert not curve.ends
    assert curve.total == math.inf
    assert curve.outputs(curve.time_of(1e9)) == pytest.approx(1e9)


def test_curves_cross_where_one_overtakes_the_other():
    times_s = np.array([0.0, 10.0, 20.0])
    early, late = Curve(times_s, np.array([0.0, 60, 80]), True), Curve(times_s, times_s * 5, True)
    # early is at 60 + 2 (t - 10), late at 5 t.
    assert crossings(early, late) == [(pytest.approx(40 / 3), pytest.approx(200 / 3))]
    assert crossings(late, early) == crossings(early, late)
    assert crossings(early, early) == []


def test_curves_are_compared_as_far_as_both_are_known():
    early = Curve(np.array([0.0, 10.0, 20.0]), np.array([0.0, 60, 80]), False)
    late = Curve(np.array([0.0, 12.0]), np.array([0.0, 60.0]), False)
    assert crossings(early, late) == [], "early is ahead up to 12 s"
    longer = Curve(np.array([0.0, 5.0, 16.0]), np.array([0.0, 25.0, 80.0]), False)
    assert crossings(early, longer) == [(pytest.approx(40 / 3), pytest.approx(200 / 3))]
    # Both end: the shorter one makes nothing more, and is overtaken after its end.
    early = Curve(np.array([0.0, 5.0, 10.0]), np.array([0.0, 30.0, 60.0]), True)
    late = Curve(np.array([0.0, 10.0, 20.0]), np.array([0.0, 40.0, 80.0]), True)
    assert crossings(early, late) == [(pytest.approx(15), pytest.approx(60))]
    assert crossings(late, early) == crossings(early, late)
    # One of them goes on: what it will make later is not known.
    assert crossings(early, Curve(late.times_s, late.made, False)) == []


def test_a_lead_of_less_than_points_are_apart_is_none():
    times_s = np.array([0.0, 10.0, 20.0, 30.0])
    made = np.array([0.0, 1000.0, 2000.0, 3000.0])
    for part, crosses in ((1e-4, 0), (1e-3, 1)):
        swinging = made * (1 + part * np.array([0, 1, 1, -1]))
        assert len(crossings(Curve(times_s, made, True), Curve(times_s, swinging, True))) == crosses


def test_nobody_leads_before_the_first_result():
    times_s = np.array([0.0, 10.0, 20.0])
    one, other = np.array([0.0, 0.9, 50.0]), np.array([0.0, 0.1, 60.0])
    assert crossings(Curve(times_s, one, True), Curve(times_s, other, True)) == []
    assert len(crossings(Curve(times_s, one * 2, True), Curve(times_s, other * 2, True))) == 1


def test_work_that_grows_until_it_is_too_much_is_late_from_then_on():
    # Nested loops on pairs that grow as 50 · t² take 0.05 · t² s: from 10 s on more than there is.
    costs = JoinCosts("nested loops", comp_s=0.001)
    tree = Join(Source("A", 5), Source("B", 10), 0.1, costs)
    curve = predicted(tree, 40)
    assert curve.outputs(8) == pytest.approx(0.1 * 50 * 8**2, rel=CLOSE)
    # Until 10 s half of the time was idle; after 20 s, 15 s of work are done, of 20.
    assert curve.outputs(20) == pytest.approx(0.1 * 15 / 0.001, rel=CLOSE)
    assert curve.outputs(40) == pytest.approx(0.1 * 35 / 0.001, rel=CLOSE)


def test_all_is_settled_when_the_last_row_has_come_and_all_work_is_done_in_turn():
    left = Select(Source("A", 10, 100), 0.5, cost_s=0.02)
    tree = Project(Join(left, Source("B", 10, 300), 0.1, JoinCosts(hash_s=0.01)), cost_s=0.001)
    work_s = 100 * 0.02 + (50 + 300) * 0.01 + 0.1 * 50 * 300 * 0.001
    assert settled_s(tree) == pytest.approx(30 + work_s)
    assert settled_s(Join(left, Source("C", 10))) == math.inf


def test_what_a_curve_does_not_know_is_an_error():
    endless = join(LIGHT)
    with pytest.raises(QueryError, match="say up to which time"):
        predicted(endless)
    with pytest.raises(QueryError, match="write a time above 0"):
        predicted(endless, 0)
    curve = predicted(endless, 10)
    with pytest.raises(QueryError, match="predicted up to 10 s"):
        curve.outputs(11)
    with pytest.raises(QueryError, match="expected to make 5000 by 10 s"):
        curve.time_of(1e6)
    finite = predicted(join(LIGHT, size=100))
    assert finite.outputs(1e9) == pytest.approx(100)
    with pytest.raises(QueryError, match=r"101 results are not reached.*make 100 in all"):
        finite.time_of(101)
    with pytest.raises(QueryError, match="rate of stream A is not known"):
        predicted(Source("A"), 1)
