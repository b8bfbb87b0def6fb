import numpy as np
import pytest
from hypothesis import given, settings

from placements import (
    BOTH,
    CATALYST,
    PYTHON,
    allowed_placements,
    cheapest_by_brute_force,
    costs_of,
    fits,
    placed_cases,
    transport_by_columns,
)
from profiles import profile_of
from querymesh.mesh.route import route_fault
from querymesh.mesh.stages import Stage
from querymesh.optimize.placement.costs import in_python, parts_of, staged_us
from querymesh.optimize.placement.exact import MOST_PAIRS, exact_placement, is_exact
from querymesh.optimize.placement.local_search import (
    MOST_LOOKUPS,
    local_placement,
    stages_left,
)
from querymesh.optimize.placement.place import best_parts, best_placement
from querymesh.stats.profile import survivors
from soak import random_cases

B, P, A = Stage


def mean_us(profile, costs, placement, crossing_us=None):
    parts = best_parts(profile, costs, placement)
    crossing = (crossing_us or costs.crossing_us)(in_python(placement))
    return float(staged_us(profile, costs, parts, crossing).mean())


@given(placed_cases())
@random_cases(150, 300)
def test_the_exact_placement_is_the_cheapest_of_all(case):
    profile, costs = case
    cheapest = cheapest_by_brute_force(profile, costs)
    placement = best_placement(profile, costs)
    if placement is None:
        assert cheapest == np.inf
    else:
        assert mean_us(profile, costs, placement) == pytest.approx(cheapest)


@given(placed_cases(most_operators=3))
@settings(max_examples=100, deadline=None)
def test_the_exact_placement_is_the_cheapest_where_every_row_left_crosses(case):
    profile, costs = case
    cheapest = cheapest_by_brute_force(profile, costs, lambda operators: 1.5)
    placement = best_placement(profile, costs, lambda operators: 1.5)
    if placement is not None:
        assert mean_us(profile, costs, placement, lambda operators: 1.5) == pytest.approx(cheapest)


@given(placed_cases())
@settings(deadline=None)
def test_the_exact_search_foretells_what_its_order_costs(case):
    profile, costs = case
    table = survivors(profile.outcomes, np.zeros(profile.rows, np.int64), 1)[0]
    found = exact_placement(table, costs, profile.after, costs.crossing_us)
    if found is not None:
        placement, total_us = found
        assert total_us / profile.rows == pytest.approx(mean_us(profile, costs, placement))


@given(placed_cases(most_operators=6, most_rows=40))
@settings(max_examples=200, deadline=None)
def test_every_search_keeps_precedence_and_the_stages(case):
    profile, costs = case
    local = local_placement(profile, costs, costs.crossing_us)
    exact = best_placement(profile, costs)
    assert (local is None) == (exact is None)
    for placement in (exact, local and local[0]):
        if placement is not None:
            assert fits(placement, costs, profile.after)
            parts = best_parts(profile, costs, placement)
            assert route_fault(parts.route, profile.after) == ""
            assert parts == parts_of(parts.route, placement)


@given(placed_cases(most_operators=5))
@settings(deadline=None)
def test_the_stages_left_to_an_operator_are_those_of_some_placement(case):
    profile, costs = case
    room = stages_left(costs, profile.after)
    placements = list(allowed_placements(costs, profile.after))
    if room is None:
        assert not placements
    else:
        used = [frozenset(stages) for stages in zip(*placements, strict=True)]
        assert all(some <= left for some, left in zip(used, room.stages, strict=True))
        assert all(used)


def test_a_condition_that_drops_most_rows_stays_in_catalyst_before_a_dear_crossing():
    rng = np.random.default_rng(0)
    profile = profile_of(rng.random((400, 2)) < [0.02, 0.5])
    costs = costs_of([BOTH, PYTHON], [0.5, 0], [0.01, 5.0])
    assert best_placement(profile, costs) == (B, P)


def test_a_regular_expression_moves_to_python_when_rows_must_cross_anyway():
    rng = np.random.default_rng(0)
    profile = profile_of(rng.random((400, 2)) < 0.9)
    costs = costs_of([BOTH, PYTHON], [8.0, 0], [0.1, 5.0])
    assert best_placement(profile, costs) == (P, P)


def test_an_opaque_condition_that_drops_little_comes_after_a_function_that_drops_much():
    rng = np.random.default_rng(0)
    profile = profile_of(rng.random((400, 2)) < [0.99, 0.05])
    costs = costs_of([CATALYST, PYTHON], [4.0, 0], [0, 1.0])
    assert best_placement(profile, costs) == (A, P)


def test_a_column_that_is_sent_anyway_brings_its_other_condition_along():
    rng = np.random.default_rng(0)
    profile = profile_of(rng.random((400, 3)) < 0.8)
    shared = transport_by_columns([{"text"}, {"text"}, {"wide"}], base_us=0.1, column_us=3.0)
    costs = costs_of([PYTHON, BOTH, BOTH], [0, 2.0, 2.0], [1.0, 0.1, 0.1], shared)
    assert best_placement(profile, costs)[1:] == (P, A)


def test_a_condition_between_two_functions_leaves_no_placement():
    after = [frozenset(), frozenset({1}), frozenset({1, 2})]
    profile = profile_of(np.ones((5, 3)), after=after)
    costs = costs_of([PYTHON, CATALYST, PYTHON], [1.0] * 3, [1.0] * 3)
    assert best_placement(profile, costs) is None
    assert local_placement(profile, costs, costs.crossing_us) is None


def fifty(rows=2000, operators=50, seed=0):
    rng = np.random.default_rng(seed)
    profile = profile_of(rng.random((rows, operators)) < rng.uniform(0.6, 0.99, operators))
    where = rng.choice([CATALYST, PYTHON, BOTH, BOTH], operators)
    columns = [{f"c{k}"} for k in rng.integers(0, 8, operators)]
    return profile, costs_of(
        where,
        rng.choice([0.05, 2.0, 8.0], operators),
        rng.choice([0.05, 0.3, 6.0], operators),
        transport_by_columns(columns),
    )


@pytest.mark.parametrize("seed", range(4))
def test_fifty_operators_are_placed_with_bounded_work_and_better_than_by_engine(seed):
    profile, costs = fifty(seed=seed)
    placement, lookups = local_placement(profile, costs, costs.crossing_us)
    assert lookups <= 3 * (MOST_LOOKUPS + 2)
    assert fits(placement, costs, profile.after)
    pure = [
        tuple(P if k in costs.python_only else B for k in range(1, 51)),
        tuple(B if k in costs.catalyst_only else P for k in range(1, 51)),
    ]
    found_us = mean_us(profile, costs, placement)
    assert found_us <= min(mean_us(profile, costs, each) for each in pure)


@pytest.mark.parametrize("seed", range(8))
def test_the_local_search_comes_close_to_the_exact_one(seed):
    profile, costs = fifty(400, 9, seed)
    exact_us = mean_us(profile, costs, best_placement(profile, costs))
    local_us = mean_us(profile, costs, local_placement(profile, costs, costs.crossing_us)[0])
    assert exact_us <= local_us <= 1.1 * exact_us


def test_the_exact_search_is_asked_for_up_to_eleven_operators_of_both_engines_or_more_of_one():
    assert 3**11 <= MOST_PAIRS < 3**12
    assert is_exact(costs_of([BOTH] * 11, [1.0] * 11, [1.0] * 11))
    assert not is_exact(costs_of([BOTH] * 12, [1.0] * 12, [1.0] * 12))
    assert is_exact(costs_of([BOTH, CATALYST] * 6, [1.0] * 12, [1.0] * 12))
    assert not is_exact(costs_of([PYTHON] * 50, [1.0] * 50, [1.0] * 50))
