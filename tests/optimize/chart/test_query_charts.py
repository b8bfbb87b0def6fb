from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chart_cases import q1, q2, random_points
from querymesh.cost.plan_tree import plan_text
from querymesh.cost.utility import Statistics, Weights, capped_costs, plan_costs, utility
from querymesh.errors import TrainingError
from querymesh.optimize.chart.candidates import (
    QueryShape,
    StreamJoin,
    StreamProjection,
    StreamSelection,
    stream_plans,
    whole_plan,
)
from querymesh.optimize.chart.left_deep import left_deep_orders
from querymesh.optimize.chart.query_charts import ChartedQuery, ChosenPlan
from querymesh.optimize.chart.regular import SparseChart

SHAPE = QueryShape(
    ("a", "b", "c"),
    (StreamSelection("pa", "a", 4e5), StreamSelection("pb", "b", 3e3)),
    (StreamProjection("a", 5e5, 0.3), StreamProjection("b", 1e4, 0.6)),
    (StreamJoin("ab", ("a", "b"), 3e3), StreamJoin("bc", ("b", "c"), 2e3)),
    aggregate_tpr=1e5,
)


@given(
    st.tuples(*[st.floats(1, 2000)] * 3),
    st.tuples(*[st.floats(0.01, 1)] * 2),
    st.tuples(*[st.floats(1e-4, 0.1)] * 2),
    st.floats(0, 1e4),
    st.floats(0.01, 10),
)
def test_choosing_by_parts_gives_the_best_whole_plan(rates, shares, joins, by_rate, by_memory):
    rates = dict(zip("abc", rates, strict=True))
    shares = dict(zip("ab", shares, strict=True))
    joins = dict(zip(("ab", "bc"), joins, strict=True))
    weights = Weights(by_rate, by_memory)
    query = ChartedQuery(SHAPE, 2.0, dict.fromkeys("abc", (1, 2000)), joins, weights=weights)
    known = Statistics(rates, {"pa": shares["a"], "pb": shares["b"], **joins}, 2.0)

    def cost(plan):
        return float(utility(plan_costs(plan, known), weights))

    plans = [
        whole_plan(SHAPE, order, dict(zip("abc", chosen, strict=True)))
        for order in left_deep_orders(SHAPE)
        for chosen in product(*(range(len(stream_plans(SHAPE, each))) for each in "abc"))
    ]
    assert len(plans) == 2 * 4
    best = query.plan(query.best(rates, shares))
    assert cost(best) == pytest.approx(min(map(cost, plans)))


def test_there_is_a_chart_only_where_there_is_a_choice():
    assert q1().join_chart is None
    assert [*q1().stream_charts] == ["TCP"]
    assert q2().stream_charts == {}
    assert q2().join_chart.regions == 1000
    both = ChartedQuery(SHAPE, 1.0, dict.fromkeys("abc", (1, 9)), {"ab": 0.1, "bc": 0.1})
    assert [*both.stream_charts] == ["a", "b"]
    assert both.join_chart.dimensions[0].low == 0, "a selection may let nothing through"
    assert both.join_chart.dimensions[2].low == 1


def test_a_stream_comes_to_the_joins_between_what_its_selection_lets_through():
    shares = {"a": (0.2, 0.5)}
    query = ChartedQuery(SHAPE, 1.0, dict.fromkeys("abc", (10, 90)), {"ab": 0.1, "bc": 0.1}, shares)
    ranges = [(each.low, each.high) for each in query.join_chart.dimensions]
    assert ranges == [(2, 45), (0, 90), (10, 90)]
    sel, rate = query.stream_charts["a"].dimensions
    assert (sel.low, sel.high, rate.low, rate.high) == (0.2, 0.5, 10, 90)


def test_a_chart_of_six_streams_is_sparse_and_answers_at_once():
    query = q2(streams=6, k=40)
    chart = query.join_chart
    assert isinstance(chart, SparseChart)
    assert chart.regions == 40**6
    assert chart.held == 0
    point = random_points(chart.dimensions, 1)
    assert chart.look_up(point[0]).plan == chart.plans_at(point)[0]


def test_a_selectivity_estimated_anew_builds_the_joins_chart_and_no_other():
    query = ChartedQuery(SHAPE, 1.0, dict.fromkeys("abc", (1, 900)), {"ab": 0.1, "bc": 0.001})
    other = query.with_join_selectivities({"ab": 0.001, "bc": 0.1})
    assert other.stream_charts is query.stream_charts
    points = random_points(query.join_chart.dimensions)
    assert (query.join_chart.plans_at(points) != other.join_chart.plans_at(points)).any()


def test_weights_change_what_is_on_a_chart():
    for_rate, for_memory = (q2(weights=weights) for weights in (Weights(1, 0), Weights(0, 1)))
    points = random_points(for_rate.join_chart.dimensions)
    assert (for_rate.join_chart.plans_at(points) != for_memory.join_chart.plans_at(points)).any()


def test_another_model_of_costs_can_be_given():
    point = np.array(0.1), np.array(600e3)
    capped = q1(keeps=1.0, model=capped_costs, weights=Weights(1, 0)).stream_costs("TCP", *point)
    assert capped[0].tolist() == pytest.approx([1 / 40e3, 1 / 40e3])


def test_a_choice_names_a_plan():
    chosen = ChosenPlan(("TCP", "SF", "UDP"), (0, 0, 0))
    assert plan_text(q2().plan(chosen)) == "(TCP ⋈ SF) ⋈ UDP"


def test_what_charts_cannot_do_without_is_asked_for():
    with pytest.raises(TrainingError, match=r"arrival rates stream c moves.*rates=\{'c'"):
        ChartedQuery(SHAPE, 1.0, {"a": (0, 1), "b": (0, 1)}, {})
    with pytest.raises(TrainingError, match=r"selectivity of join bc.*\{'bc': \.\.\.\}"):
        ChartedQuery(SHAPE, 1.0, dict.fromkeys("abc", (0, 1)), {"ab": 0.1})
