import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.cost.rates import (
    FREE,
    JoinCosts,
    TupleRates,
    cost_at,
    join_rate,
    product_rate,
    projection_rate,
    selection_rate,
    tpr_at,
)
from querymesh.errors import QueryError, QueryMeshError

RATE = st.floats(0.1, 1e4)
COST = st.floats(0, 0.1)
HASH = JoinCosts("symmetric hash", move_s=0.001, comp_s=9, hash_s=0.002, probe_s=0.003)
LOOPS = JoinCosts("nested loops", move_s=0.001, comp_s=0.0005, hash_s=9, probe_s=9)


def test_figure_1_the_slow_selection_first_gives_half_a_row_a_second():
    assert selection_rate(selection_rate(500, 0.1, 1 / 50), 0.1, 0) == pytest.approx(0.5)


def test_figure_1_the_fast_selection_first_gives_five():
    assert selection_rate(selection_rate(500, 0.1, 0), 0.1, 1 / 50) == pytest.approx(5)


@pytest.mark.parametrize(
    ("cost_s", "expected"), [(0, 100), (0.005, 100), (0.01, 100), (0.02, 50), (1, 1)]
)
def test_a_projection_keeps_pace_until_a_row_takes_longer_than_the_next_needs_to_come(
    cost_s, expected
):
    assert projection_rate(100, cost_s) == pytest.approx(expected)
    assert selection_rate(100, 0.3, cost_s) == pytest.approx(0.3 * expected)


def test_table_3_symmetric_hash_join_costs_the_same_at_any_time():
    assert HASH.arrival_s(0.0) == HASH.arrival_s(1e6) == pytest.approx(0.006)


def test_table_3_nested_loops_compare_with_all_that_came():
    seconds, rate = 20, 30
    assert LOOPS.arrival_s(rate * seconds) == pytest.approx(0.001 + 30 * 20 * 0.0005)


def test_an_expensive_predicate_is_paid_on_top():
    assert JoinCosts(hash_s=0.001, handling_s=0.005).arrival_s(0.0) == pytest.approx(0.006)


def test_equation_2_with_less_work_than_time():
    assert join_rate(50, 100, 0.005, 4, HASH) == pytest.approx(0.005 * 50 * 100 * 4)


def test_equation_2_with_more_work_than_time():
    work = 50 * 0.006 + 500 * 0.006
    assert work > 1
    assert join_rate(50, 500, 0.002, 4, HASH) == pytest.approx(0.002 * 50 * 500 * 4 / work)


def test_equation_2_with_costs_that_grow():
    seconds = 10
    work = 5 * (0.001 + 8 * seconds * 0.0005) + 8 * (0.001 + 5 * seconds * 0.0005)
    assert work < 1
    assert join_rate(5, 8, 0.1, seconds, LOOPS) == pytest.approx(0.1 * 5 * 8 * seconds)
    work = 5 * (0.001 + 8 * 100 * 0.0005) + 8 * (0.001 + 5 * 100 * 0.0005)
    assert work > 1
    assert join_rate(5, 8, 0.1, 100, LOOPS) == pytest.approx(0.1 * 5 * 8 * 100 / work)


def test_a_product_is_a_join_of_which_every_pair_passes():
    assert product_rate(3, 4, 5, FREE) == join_rate(3, 4, 1, 5, FREE) == 60


@pytest.mark.parametrize("costs", [HASH, LOOPS, FREE])
def test_a_window_bounds_the_time(costs):
    windows_s = (7, 7)
    assert join_rate(5, 8, 0.1, 100, costs, windows_s) == join_rate(5, 8, 0.1, 7, costs)
    assert join_rate(5, 8, 0.1, 3, costs, windows_s) == join_rate(5, 8, 0.1, 3, costs)


def test_half_of_the_results_come_from_either_side_of_two_windows():
    rate = join_rate(5, 8, 0.1, 100, FREE, (4, 10))
    assert rate == pytest.approx(0.1 * (5 * 8 * 10 + 8 * 5 * 4) / 2)


def test_nested_loops_compare_an_arrival_with_the_window_of_the_other_side():
    left, right, left_s, right_s = 50, 20, 4, 1
    met_by_left, met_by_right = right * right_s, left * left_s
    work = left * (0.001 + met_by_left * 0.0005) + right * (0.001 + met_by_right * 0.0005)
    assert work > 1
    rate = 0.1 * left * right * (left_s + right_s) / 2 / work
    assert join_rate(left, right, 0.1, 100, LOOPS, (left_s, right_s)) == pytest.approx(rate)
    assert LOOPS.busy(left, right, 300, 7) == pytest.approx(
        left * LOOPS.arrival_s(7) + right * LOOPS.arrival_s(300)
    )


@given(RATE, RATE, RATE, st.floats(0.1, 100), COST, st.sampled_from(["hash", "loops"]))
def test_more_input_never_gives_less_output(left, more, right, at_s, cost_s, which):
    costs = (
        JoinCosts(hash_s=cost_s)
        if which == "hash"
        else JoinCosts("nested loops", move_s=cost_s, comp_s=cost_s)
    )
    rate = join_rate(left, right, 0.01, at_s, costs)
    assert join_rate(left + more, right, 0.01, at_s, costs) >= rate * (1 - 1e-12)


@pytest.mark.parametrize("name", ["move_s", "comp_s", "hash_s", "probe_s", "handling_s"])
@pytest.mark.parametrize("cost_s", [-1, math.nan, math.inf])
def test_costs_below_zero_are_refused(name, cost_s):
    with pytest.raises(QueryError, match=f"{name} of a join costs {cost_s} s"):
        JoinCosts(**{name: cost_s})


def test_a_processing_rate_is_the_inverse_of_a_cost():
    assert cost_at("selection", 400) == 1 / 400
    assert tpr_at(cost_at("selection", 400)) == 400
    assert tpr_at(0) == math.inf
    with pytest.raises(QueryMeshError, match="a selection processes more than 0 tuples a second"):
        cost_at("selection", -1)


def test_what_is_not_said_of_a_join_takes_no_time():
    for algorithm in ("nested loops", "symmetric hash"):
        assert JoinCosts(algorithm).work_s(10, 20, 200) == 0


def test_the_work_of_a_join_is_that_of_its_rows_and_pairs():
    assert HASH.work_s(10, 20, 200) == pytest.approx(30 * 0.006)
    assert LOOPS.work_s(10, 20, 200) == pytest.approx(30 * 0.001 + 200 * 0.0005)
    rates = TupleRates(100, 50)
    assert rates.work_s(10, 20, 200) == pytest.approx(10 / 100 + 20 / 50)
    assert rates.busy(10, 20, 1e6, 1e6) == pytest.approx(10 / 100 + 20 / 50)
    assert (rates.row_s, rates.pair_s) == ((0.01, 0.02), 0)
    assert (LOOPS.row_s, LOOPS.pair_s) == ((0.001, 0.001), 0.0005)
    assert HASH.pair_s == 0


def test_other_bad_input_is_refused():
    with pytest.raises(QueryError, match="did you mean 'nested loops'"):
        JoinCosts("nested loop")
    with pytest.raises(QueryError, match="a projection costs -1"):
        projection_rate(1, -1)
    with pytest.raises(QueryError, match="a selection costs -1"):
        selection_rate(1, 0.5, -1)
    with pytest.raises(QueryError, match="selectivity 2"):
        join_rate(1, 1, 2, 1, FREE)
