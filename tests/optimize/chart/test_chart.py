import gc
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chart_cases import box, q1, q2, random_points, smooth_costing
from querymesh.errors import OptionError, QueryMeshError, TrainingError
from querymesh.optimize.chart.chart import ChartDimension, ChartReader, best_plans, fidelity
from querymesh.optimize.chart.grid import AdaptiveChart
from querymesh.optimize.chart.regular import DenseChart, SparseChart, regular_chart

SEED = st.integers(0, 1000)
POINT = st.lists(st.floats(-0.5, 3.5), min_size=3, max_size=3)


def charts(seed, dimensions, k):
    costing = smooth_costing(seed, dimensions=dimensions)
    yield costing, regular_chart(box(dimensions), costing, k)
    yield costing, regular_chart(box(dimensions), costing, k, most_regions=1)
    yield costing, AdaptiveChart(box(dimensions), costing, k, coarsest=2)


@given(SEED, st.integers(1, 3), st.integers(1, 9), POINT)
def test_the_looked_up_plan_is_the_best_at_the_regions_centroid(seed, dimensions, k, point):
    for costing, chart in charts(seed, dimensions, k):
        region = chart.look_up(point[:dimensions])
        centroid = chart.centroid(region)
        assert region.plan == best_plans(costing(centroid[None]))[0]
        assert chart.look_up(centroid) == region


@given(SEED, st.integers(1, 3), st.integers(1, 9))
def test_many_points_are_looked_up_as_each_alone(seed, dimensions, k):
    points = random_points(box(dimensions), 20, seed)
    for _, chart in charts(seed, dimensions, k):
        plans = [chart.look_up(point).plan for point in points]
        assert chart.plans_at(points).tolist() == plans


@given(SEED, st.integers(1, 3), st.integers(1, 9), st.integers(1, 30), st.data())
def test_sparse_charts_answer_as_dense_ones_and_hold_no_more_than_they_may(
    seed, dimensions, k, most, data
):
    costing = smooth_costing(seed, dimensions=dimensions)
    dense = DenseChart(box(dimensions), k, costing)
    sparse = SparseChart(box(dimensions), k, costing, most)
    for point in data.draw(st.lists(POINT, max_size=40)):
        assert sparse.look_up(point[:dimensions]) == dense.look_up(point[:dimensions])
        assert sparse.held <= most
    assert sparse.regions == dense.regions == dense.held == k**dimensions


@pytest.mark.parametrize("most", [5, 1])
def test_a_chart_that_does_not_begin_at_nothing(most):
    chart = regular_chart(
        [ChartDimension("rate", 10, 20)], lambda at: np.abs(at - [[11.0, 15.0, 19.0]]), 5, most
    )
    assert [chart.look_up([x]).key for x in (9, 10.1, 12.1, 19.9, 25)] == [
        (0,), (0,), (1,), (4,), (4,),
    ]  # fmt: skip
    assert [chart.look_up([x]).plan for x in (11, 15, 19)] == [0, 1, 2]
    assert chart.centroid(chart.look_up([14.5])) == pytest.approx([15])
    assert chart.plans_at(np.array([[11.0], [19.0]])).tolist() == [0, 2]


@pytest.mark.parametrize("best", [255, 256, 65_535, 65_536, 70_000])
def test_a_chart_of_many_plans_has_the_number_of_each(best):
    def costing(points):
        costs = np.ones((len(points), best + 1))
        costs[points[:, 0] > 0.5, best] = 0.0
        return costs

    chart = regular_chart(box(1), costing, k=2)
    assert [chart.look_up([x]).plan for x in (0.2, 0.7)] == [0, best]
    assert chart.memory_bytes == 2 * (1 if best < 256 else 2 if best < 65_536 else 8)


def test_a_chart_is_dense_if_all_its_regions_may_be_held():
    assert isinstance(regular_chart(box(2), smooth_costing(0), 5, most_regions=25), DenseChart)
    assert isinstance(regular_chart(box(2), smooth_costing(0), 5, most_regions=24), SparseChart)


def test_a_region_held_is_not_costed_again_and_one_forgotten_is():
    chart = regular_chart(box(1), smooth_costing(0, dimensions=1), k=10, most_regions=2)
    for x in (0.05, 0.15, 0.05, 0.25, 0.05):
        chart.look_up([x])
    assert chart.costed == 3
    chart.look_up([0.15])
    assert (chart.costed, chart.held) == (4, 2)


@pytest.mark.parametrize(("k", "dimensions"), [(40, 3), (1000, 12)])
def test_a_chart_too_large_to_hold_stays_within_its_memory(k, dimensions):
    costing = smooth_costing(1, dimensions=dimensions)
    points = random_points(box(dimensions), 1500)
    tracemalloc.start()
    try:
        chart = regular_chart(box(dimensions), costing, k, most_regions=500)
        for point in points:
            chart.look_up(point)
        gc.collect()  # Python keeps freed tuples for itself until then; they shall not count
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert isinstance(chart, SparseChart)
    assert chart.regions == k**dimensions
    assert chart.held == 500
    assert used < chart.memory_bytes + 10_000 < 150_000


def test_a_dense_chart_takes_a_byte_a_region():
    chart = regular_chart(box(2), smooth_costing(2), k=200)
    assert chart.memory_bytes == chart.regions == chart.costed == 40_000
    many = regular_chart(box(1), lambda at: np.abs(at - np.linspace(0, 1, 300)), k=600)
    assert many.memory_bytes == 2 * 600
    assert many.look_up([1.0]).plan == 299


def test_fidelity_grows_with_k_on_random_problems():
    problems = [smooth_costing(seed, plans=5) for seed in range(12)]
    points = random_points(box(2))
    mean = {
        k: np.mean([fidelity(regular_chart(box(2), each, k), each, points) for each in problems])
        for k in (1, 3, 10, 40)
    }
    assert mean[1] < mean[3] < mean[10] < mean[40]
    assert mean[10] > 0.9
    assert mean[40] > 0.97


@pytest.mark.parametrize("seed", range(4))
def test_fidelity_grows_with_k_on_joins_as_in_figure_4(seed):
    query = q2(seed)
    found = []
    for k in (2, 5, 10, 20):
        chart = q2(seed, k=k).join_chart
        found.append(fidelity(chart, query.join_costs, random_points(chart.dimensions)))
    assert found == sorted(found)
    assert found[-1] > 0.94


def test_with_memory_counted_in_tuples_the_papers_q1_has_one_plan():
    chart = q1(keeps=1.0).stream_charts["TCP"]
    assert set(chart.plans_at(random_points(chart.dimensions))) == {0}
    narrow = q1(keeps=0.35).stream_charts["TCP"]
    assert set(narrow.plans_at(random_points(narrow.dimensions))) == {0, 1}


def test_of_plans_that_cost_the_same_the_first_is_taken():
    costs = np.array([[2.0, 1.0 + 1e-14, 1.0], [np.inf, np.inf, np.inf], [3.0, 3.0, 1.0]])
    assert best_plans(costs).tolist() == [1, 0, 2]


def test_of_plans_that_cost_nothing_the_first_is_taken():
    assert best_plans(np.array([[5.0, 0.0, 0.0], [-1.0, -1.0 - 1e-14, 0.0]])).tolist() == [1, 0]


def reader(k=10):
    return ChartReader(regular_chart(box(1), lambda at: np.hstack((at, 1 - at)), k))


def test_moves_switches_and_hits_are_counted_as_in_section_5_1():
    reading = reader()
    seen = [reading.choose([x]) for x in (0.11, 0.19, 0.31, 0.71, 0.72, 1.4)]
    assert [choice.moved for choice in seen] == [False, False, True, True, False, True]
    assert [choice.switched for choice in seen] == [False, False, False, True, False, False]
    assert [choice.plan for choice in seen] == [0, 0, 0, 1, 1, 1]
    assert (reading.rounds, reading.moves, reading.switches, reading.outside) == (6, 3, 1, 1)
    assert math.isnan(reading.fidelity)
    assert reading.judge(np.array([0.3, 0.2]))
    assert not reading.judge(np.array([0.1, 0.2]))
    assert reading.fidelity == 0.5


def test_a_plan_that_costs_nothing_is_a_hit():
    reading = reader()
    reading.choose([0.2])
    assert reading.judge(np.array([0.0, 0.3]))
    assert reading.judge(np.array([1.0 + 1e-14, 1.0]))
    assert reading.judge(np.array([-1.0 + 1e-14, -1.0]))
    assert not reading.judge(np.array([1.0 + 1e-9, 1.0]))


def test_the_edges_of_a_chart_are_within_it():
    reading = reader()
    outside = [reading.choose([x]).outside for x in (0.0, 1.0, -1e-9, 1 + 1e-9)]
    assert outside == [False, False, True, True]
    assert reading.outside == 2


def test_a_plan_is_judged_after_it_was_chosen():
    with pytest.raises(TrainingError, match="choose one"):
        reader().judge(np.zeros(2))


@pytest.mark.parametrize("k", [0, -3, 2.5, True, None])
def test_k_below_one_or_not_whole_is_refused(k):
    with pytest.raises(OptionError, match="k, the partitions of a dimension, must be a whole"):
        regular_chart(box(1), smooth_costing(0), k)
    with pytest.raises(OptionError, match="whole number from 1 on"):
        AdaptiveChart(box(1), smooth_costing(0), k)
    with pytest.raises(OptionError, match="whole number from 1 on"):
        q1(k=k)
    with pytest.raises(OptionError, match="most_regions"):
        regular_chart(box(1), smooth_costing(0), most_regions=k)


def test_wrong_dimensions_and_points_are_refused():
    with pytest.raises(QueryMeshError, match="dimension sel of a chart"):
        ChartDimension("sel", 1, 1)
    with pytest.raises(QueryMeshError, match="dimension sel of a chart"):
        ChartDimension("sel", 0, math.inf)
    with pytest.raises(QueryMeshError, match="at least one dimension"):
        regular_chart([], smooth_costing(0))
    with pytest.raises(OptionError, match="1 to 12 dimensions, not 13"):
        AdaptiveChart(box(13), smooth_costing(0))
    with pytest.raises(TrainingError, match="x0 is not known"):
        reader().choose([math.nan])
    with pytest.raises(TrainingError, match="dimensions x0, the point has 2"):
        reader().choose([0.1, 0.2])
