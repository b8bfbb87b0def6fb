import math

import pytest

from querymesh.cost.plan_tree import (
    Aggregate,
    Join,
    Project,
    Select,
    Source,
    inputs_of,
    join_shape,
    left_deep_shape,
    plan_text,
    shape_text,
    sources_of,
    window_of,
)
from querymesh.cost.rates import JoinCosts, TupleRates
from querymesh.cost.utility import Statistics, plan_costs
from querymesh.errors import QueryError, UnsupportedError
from querymesh.optimize.rate.cardinality import cardinality_cost, expected_total
from querymesh.optimize.rate.curves import predicted
from querymesh.optimize.rate.heuristics import load, rate_estimate

A, B, C = Source("A", 10, 100), Source("B", 20, 50, window_s=5), Source("C", 5, 1000, window_s=8)


def test_a_tree_is_written_as_in_the_paper():
    tree = Project(Select(Join(Join(A, Select(B, 0.5)), C), 0.1, name="σ2"))
    assert plan_text(tree) == "π(σ2((A ⋈ σ(B)) ⋈ C))"
    assert plan_text(Join(A, Join(B, C))) == "A ⋈ (B ⋈ C)"


def test_a_tree_knows_its_streams_and_the_shortest_of_their_windows():
    tree = Join(Project(A), Select(Join(B, C), 0.5))
    assert [source.name for source in sources_of(tree)] == ["A", "B", "C"]
    assert window_of(tree) == window_of(B) == 5
    assert window_of(A) == math.inf


def test_the_expected_total_is_sizes_times_selectivities():
    tree = Join(Select(A, 0.5), Project(Join(B, C, 0.01)), 0.2)
    assert expected_total(tree) == pytest.approx(100 * 0.5 * 50 * 1000 * 0.01 * 0.2)


def test_nothing_of_an_endless_stream_is_nothing():
    assert expected_total(Join(Source("S", 1), A, 0.5)) == math.inf
    assert expected_total(Select(Source("S", 1), 0.0)) == 0


def test_a_stream_ends_when_its_rows_have_come():
    assert A.end_s == 10
    assert Source("S", 1).end_s == math.inf


@pytest.mark.parametrize("rate", [0, -1, math.nan, math.inf])
def test_a_rate_is_above_zero(rate):
    with pytest.raises(QueryError, match=f"stream A has {rate} rows a second"):
        Source("A", rate)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Source("A", 1, size=-1),
        lambda: Source("A", 1, window_s=-1),
        lambda: Source("A", 1, row_bytes=math.nan),
        lambda: Select(A, 1.5),
        lambda: Select(A, 0.5, cost_s=-1),
        lambda: Project(A, cost_s=-1),
        lambda: Join(A, B, -0.5),
    ],
)
def test_what_has_no_meaning_is_refused_when_it_is_built(build):
    with pytest.raises(QueryError):
        build()


TREE = Aggregate(Join(Project(A), Select(Join(B, C), ("p",))))


def test_a_tree_is_walked_by_its_inputs():
    assert inputs_of(TREE) == (TREE.child,)
    assert inputs_of(TREE.child) == (Project(A), Select(Join(B, C), ("p",)))
    assert inputs_of(A) == ()


def test_a_shape_says_which_streams_are_joined_with_which():
    assert join_shape(TREE) == ("A", ("B", "C"))
    assert shape_text(join_shape(TREE)) == plan_text(Join(A, Join(B, C))) == "A ⋈ (B ⋈ C)"
    assert shape_text(left_deep_shape(("A", "B", "C", "D"))) == "((A ⋈ B) ⋈ C) ⋈ D"
    assert shape_text(left_deep_shape(("A",))) == "A"


def test_both_papers_cost_one_tree():
    """Without overload, and with windows that are full, OM's join gives out what RBO's does for
    each second of work."""
    costs = TupleRates(1000, 500)
    left = Select(Source("A", 50, window_s=2), 0.5, cost_s=0.001)
    tree = Join(left, Source("B", 20, window_s=2), 0.1, costs)
    busy = 25 / 1000 + 20 / 500
    assert load(tree, 60).joins == pytest.approx(busy)
    made = 0.1 * 25 * 20 * 2
    assert rate_estimate(tree, 60) == pytest.approx(made)
    assert plan_costs(tree, Statistics({}, {}, window_s=2)).rate == pytest.approx(made / busy)


def test_what_statistics_say_takes_the_place_of_a_trees_own_figures():
    tree = Select(Source("A", 50), 0.5)
    assert plan_costs(tree, Statistics({"A": 80.0}, {}, 1.0)).rate == 40
    assert plan_costs(tree, Statistics({"B": 80.0}, {}, 1.0)).rate == 25


def test_equally_fast_sides_work_as_one_algorithm_does():
    def plan(costs):
        return Join(Source("A", 50, 500), Source("B", 100, 900), 0.01, costs)

    by_rates, by_hash = plan(TupleRates(100, 100)), plan(JoinCosts(hash_s=0.01))
    assert predicted(by_rates).made == pytest.approx(predicted(by_hash).made)
    assert cardinality_cost(by_rates) == pytest.approx(cardinality_cost(by_hash))


def test_a_slow_left_side_costs_more_than_a_slow_right_side_if_more_comes_from_the_left():
    def cost_s(left_tpr, right_tpr):
        costs = TupleRates(left_tpr, right_tpr)
        return cardinality_cost(Join(Source("A", 1, 300), Source("B", 1, 100), 0.1, costs))

    assert cost_s(10, 1000) == pytest.approx(300 / 10 + 100 / 1000)
    assert cost_s(1000, 10) == pytest.approx(300 / 1000 + 100 / 10)


def test_rate_curves_need_selectivities_that_are_numbers():
    with pytest.raises(QueryError, match="the selectivity of p, q is not known: write a number"):
        predicted(Select(A, ("p", "q")))
    with pytest.raises(QueryError, match="the selectivity of a product is not known"):
        predicted(Join(A, B, ()))


def test_rate_curves_have_no_aggregates():
    with pytest.raises(UnsupportedError, match=r"RBO has no output rate of an aggregate such as Ω"):
        predicted(Aggregate(A))
