from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chart_cases import q2
from querymesh.cost.plan_tree import Aggregate, plan_text
from querymesh.cost.rates import TupleRates, tpr_at
from querymesh.cost.utility import Statistics, plan_costs
from querymesh.errors import QueryError, QueryMeshError
from querymesh.optimize.chart.candidates import (
    QueryShape,
    StreamJoin,
    StreamProjection,
    StreamSelection,
    join_plan,
    stream_plans,
    whole_plan,
)
from querymesh.optimize.chart.left_deep import (
    candidate_orders,
    exchanged,
    left_deep_orders,
    searched_orders,
    spread_points,
)

STREAM = QueryShape(
    ("s",),
    selections=(StreamSelection("a > 5", "s", 200e3), StreamSelection("a < 10", "s", 200e3)),
    projections=(StreamProjection("s", 500e3),),
)


def joined(names, pairs, key=None, **kwargs):
    joins = tuple(StreamJoin(f"{a}{b}", (a, b), 3e3, key) for a, b in pairs)
    return QueryShape(tuple(names), joins=joins, **kwargs)


def test_heuristic_1_groups_the_predicates_of_a_stream():
    first, second = stream_plans(STREAM, "s")
    assert first.child.selectivity == second.selectivity == ("a > 5", "a < 10")
    assert tpr_at(second.cost_s) == pytest.approx(100e3)
    known = Statistics({"s": 100.0}, {"a > 5": 0.5, "a < 10": 0.4}, 1.0)
    assert plan_costs(second, known).rate == pytest.approx(20.0), "both hold: AND, not OR"


def test_heuristic_2_gives_both_orders_of_selection_and_projection():
    assert [plan_text(plan) for plan in stream_plans(STREAM, "s")] == ["π(σ(s))", "σ(π(s))"]


def test_a_projection_that_drops_what_the_selection_reads_comes_after_it():
    projection = StreamProjection("s", 500e3, first=False)
    shape = QueryShape(("s",), STREAM.selections, (projection,))
    assert [plan_text(plan) for plan in stream_plans(shape, "s")] == ["π(σ(s))"]


def test_a_stream_with_less_to_do_has_one_plan():
    assert [plan_text(each) for each in stream_plans(QueryShape(("s",)), "s")] == ["s"]
    only = QueryShape(("s",), projections=STREAM.projections)
    assert [plan_text(each) for each in stream_plans(only, "s")] == ["π(s)"]


def test_the_three_plans_of_the_papers_q2():
    texts = {plan_text(join_plan(q2().shape, order)) for order in left_deep_orders(q2().shape)}
    assert texts == {"(TCP ⋈ UDP) ⋈ SF", "(TCP ⋈ SF) ⋈ UDP", "(UDP ⋈ SF) ⋈ TCP"}


def test_without_the_equality_that_follows_one_of_them_is_a_product_and_left_out():
    chain = joined("abc", ["ab", "bc"])
    assert [*left_deep_orders(chain)] == [("a", "b", "c"), ("b", "c", "a")]


@pytest.mark.parametrize("streams", range(2, 7))
def test_streams_of_one_key_have_half_of_all_orders(streams):
    orders = [*left_deep_orders(q2(streams=streams).shape)]
    assert len(orders) == len(set(orders)) == factorial(streams) // 2


def test_a_product_is_made_where_nothing_else_is_left():
    two_pairs = joined("abcd", ["ab", "cd"])
    orders = [*left_deep_orders(two_pairs)]
    assert orders[0] == ("a", "b", "c", "d")
    assert {order[:2] for order in orders} == {("a", "b"), ("c", "d")}
    second = join_plan(two_pairs, orders[0]).left
    assert (second.selectivity, second.costs.left_tpr) == ((), 3e3)


def test_a_join_is_as_slow_as_its_slowest_predicate_and_a_product_as_the_slowest_of_all():
    joins = (
        StreamJoin("x", ("a", "b"), 5e3),
        StreamJoin("y", ("b", "a"), 2e3),
        StreamJoin("z", ("c", "d"), 3e3),
    )
    plan = join_plan(QueryShape(tuple("abcd"), joins=joins), ("a", "b", "c", "d"))
    third, second, first = plan, plan.left, plan.left.left
    assert (first.selectivity, first.costs) == (("x", "y"), TupleRates(2e3, 2e3))
    assert (second.selectivity, second.costs) == ((), TupleRates(2e3, 2e3))
    assert (third.selectivity, third.costs) == (("z",), TupleRates(3e3, 3e3))


def test_a_key_links_a_stream_only_to_streams_of_that_key():
    joins = (
        StreamJoin("ab", ("a", "b"), 3e3, key="k"),
        StreamJoin("cd", ("c", "d"), 3e3, key="l"),
        StreamJoin("de", ("d", "e"), 3e3, key="l"),
    )
    shape = QueryShape(tuple("abcde"), joins=joins)
    plan = join_plan(shape, ("a", "b", "c", "e", "d"))
    assert plan.left.left.selectivity == (), "c has nothing to do with a and b"
    assert plan.left.selectivity == ("de",), "c.l = e.l follows"
    assert plan.selectivity == ("cd",), "one predicate of a key is enough"


@given(st.permutations(["TCP", "UDP", "SF", "FTP"]))
def test_every_order_of_one_key_joins_by_the_same_selectivities(order):
    shape = q2(streams=4).shape
    plan, used = join_plan(shape, tuple(order)), []
    while hasattr(plan, "left"):
        used += plan.selectivity
        plan = plan.left
    assert len(used) == 3


def test_heuristic_4_aggregates_last():
    shape = joined("abc", ["ab", "bc"], aggregate_tpr=1e5)
    for order in left_deep_orders(shape):
        plan = whole_plan(shape, order, {})
        assert isinstance(plan, Aggregate)
        assert plan_text(plan).count("Ω") == 1


def test_a_whole_plan_has_the_plan_chosen_for_each_stream():
    shape = QueryShape(
        ("s", "t"), STREAM.selections, STREAM.projections, (StreamJoin("j", ("s", "t"), 3e3),)
    )
    assert plan_text(whole_plan(shape, ("s", "t"), {"s": 1})) == "σ(π(s)) ⋈ t"
    assert plan_text(whole_plan(shape, ("s", "t"), {})) == "π(σ(s)) ⋈ t"


def test_all_orders_of_six_streams_are_candidates_and_none_is_costed():
    def never(order):
        raise AssertionError(order)

    assert len(candidate_orders(q2(streams=6).shape, never)) == factorial(6) // 2
    assert len(candidate_orders(q2(streams=4).shape, never, most_orders=12)) == 12
    with pytest.raises(AssertionError):
        candidate_orders(q2(streams=4).shape, never, most_orders=11)


def test_too_many_orders_are_searched_for_and_few_found():
    query = q2(seed=4, streams=8)
    assert 1 <= len(query.orders) <= 64
    assert all(sorted(order) == sorted(query.shape.streams) for order in query.orders)


@pytest.mark.parametrize("seed", range(5))
def test_local_search_finds_nearly_the_best_order_of_five_streams(seed):
    query = q2(seed, streams=5)
    points = spread_points([10] * 5, [1500] * 5, 40)
    costs = query.join_costs(points)
    column = dict(zip(query.orders, costs.T, strict=True))
    found = searched_orders(query.shape, lambda order: column[order])
    best_found = np.min([column[order] for order in found], axis=0)
    assert len(found) < len(query.orders)
    assert np.mean(best_found <= costs.min(axis=1) * 1.01) > 0.9


def test_two_streams_have_nothing_to_exchange():
    shape = joined("ab", ["ab"])
    assert [*exchanged(("a", "b"))] == []
    assert searched_orders(shape, lambda order: np.ones(3)) == (("a", "b"),)
    assert candidate_orders(shape) == (("a", "b"),)


def test_points_are_spread_evenly():
    points = spread_points([0.0, 10.0], [1.0, 30.0], 256)
    assert points[0].tolist() == [0.5, 20.0]
    golden = (1 + 5**0.5) / 2
    line = spread_points([0.0], [1.0], 3)[:, 0]
    assert line == pytest.approx([0.5, (0.5 + 1 / golden) % 1, (0.5 + 2 / golden) % 1])
    counts, *_ = np.histogram2d(*points.T, bins=4, range=[[0, 1], [10, 30]])
    assert counts.min() >= 12


def test_a_shape_that_makes_no_sense_is_refused():
    with pytest.raises(QueryError, match="no stream tpc: did you mean 'tcp'"):
        QueryShape(("tcp",), (StreamSelection("a", "tpc", 1),))
    with pytest.raises(QueryError, match="each once"):
        QueryShape(("s", "s"))
    with pytest.raises(QueryError, match="two predicates are called a"):
        QueryShape(("s",), (StreamSelection("a", "s", 1), StreamSelection("a", "s", 1)))
    with pytest.raises(QueryError, match="one on one is a selection"):
        joined("ab", ["aa"])
    with pytest.raises(QueryError, match="one projection"):
        QueryShape(("s",), projections=(StreamProjection("s", 1), StreamProjection("s", 2)))
    with pytest.raises(QueryMeshError, match="selection processes more than 0"):
        QueryShape(("s",), (StreamSelection("a", "s", 0),))
    with pytest.raises(QueryError, match="without a predicate"):
        join_plan(QueryShape(("s", "t")), ("s", "t"))
