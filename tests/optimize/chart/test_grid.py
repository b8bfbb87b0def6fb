import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chart_cases import box, q1, q2, random_points, smooth_costing
from querymesh.optimize.chart.chart import best_plans, fidelity
from querymesh.optimize.chart.grid import AdaptiveChart
from querymesh.optimize.chart.regular import regular_chart


@pytest.mark.parametrize("seed", range(8))
def test_on_smooth_problems_it_reaches_the_regular_grids_fidelity_with_fewer_cells(seed):
    costing, points = smooth_costing(seed, plans=5), random_points(box(2))
    regular = regular_chart(box(2), costing, k=64)
    adaptive = AdaptiveChart(box(2), costing, finest=128)
    assert fidelity(adaptive, costing, points) >= fidelity(regular, costing, points)
    assert adaptive.regions < regular.regions / 3
    assert adaptive.costed < regular.costed


@pytest.mark.parametrize("seed", range(4))
def test_on_joins_of_three_streams_it_does_so_too(seed):
    query = q2(seed, k=40)
    regular, adaptive = query.join_chart, q2(seed, k=64, adaptive=True).join_chart
    points = random_points(regular.dimensions)
    found, wanted = (fidelity(each, query.join_costs, points) for each in (adaptive, regular))
    assert found >= wanted
    assert adaptive.regions < regular.regions / 2


def test_regions_are_narrow_only_along_a_border():
    chart = q1(k=64, adaptive=True).stream_charts["TCP"]
    assert chart.regions < 64
    assert (
        fidelity(chart, lambda at: q1().stream_costs("TCP", *at.T), random_points(chart.dimensions))
        > 0.98
    )


@given(st.integers(0, 500), st.integers(1, 3), st.integers(1, 16), st.integers(1, 60))
def test_it_has_no_more_regions_than_it_may_and_says_when_it_wanted_more(
    seed, dimensions, finest, most
):
    costing = smooth_costing(seed, dimensions=dimensions)
    chart = AdaptiveChart(box(dimensions), costing, finest, coarsest=2, most_regions=most)
    free = AdaptiveChart(box(dimensions), costing, finest, coarsest=2)
    assert chart.regions == min(most, free.regions)
    assert chart.complete == (free.regions <= most)
    assert free.complete


def test_more_regions_are_spent_where_they_matter_most():
    costing, points = smooth_costing(3, plans=5), random_points(box(2))
    found = [
        fidelity(AdaptiveChart(box(2), costing, 256, most_regions=most), costing, points)
        for most in (16, 64, 256, 1024)
    ]
    assert found == sorted(found)
    regular = regular_chart(box(2), costing, k=16)
    assert found[2] > fidelity(regular, costing, points), "256 regions each"


def test_the_points_at_which_plans_were_costed_are_counted_once_each():
    asked = []

    def costing(points):
        asked.extend(map(tuple, points))
        return smooth_costing(1)(points)

    chart = AdaptiveChart(box(2), costing, finest=16)
    assert chart.costed == len(asked) == len(set(asked))


def test_a_centroid_is_the_middle_of_its_region():
    chart = AdaptiveChart(box(2), smooth_costing(0, plans=1), coarsest=2)
    middles = {tuple(chart.centroid(chart.look_up(x))) for x in random_points(box(2), 50)}
    assert middles == {(x, y) for x in (0.25, 0.75) for y in (0.5, 1.5)}
    whole = AdaptiveChart(box(2), smooth_costing(0), finest=1)
    assert whole.centroid(whole.look_up([0.1, 0.1])).tolist() == [0.5, 1]


def test_one_plan_needs_only_the_coarsest_regions():
    chart = AdaptiveChart(box(3), smooth_costing(0, plans=1, dimensions=3), coarsest=4)
    assert chart.regions == 64
    assert AdaptiveChart(box(2), smooth_costing(0), finest=1).regions == 1


def test_an_island_between_the_corners_is_found_if_the_coarsest_regions_meet_it():
    def island(points):
        return np.stack((np.ones(len(points)), 20 * ((points - 0.55) ** 2).sum(axis=1)), axis=1)

    square = [each for each in box(1) for _ in range(2)]
    points = random_points(square)
    assert set(best_plans(island(points))) == {0, 1}
    assert fidelity(AdaptiveChart(square, island, 64), island, points) > 0.97


def test_its_memory_is_a_few_numbers_a_region():
    chart = AdaptiveChart(box(3), smooth_costing(5, dimensions=3), 32)
    assert chart.memory_bytes < 100 * chart.regions
