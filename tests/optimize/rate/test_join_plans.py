import math
import random
from itertools import combinations

import pytest

from querymesh.cost.plan_tree import Join, Source, join_shape, plan_text, sources_of
from querymesh.cost.rates import JoinCosts
from querymesh.errors import QueryError, UnsupportedError
from querymesh.optimize.rate import join_plans
from querymesh.optimize.rate.heuristics import rate_estimate
from querymesh.optimize.rate.join_plans import Space, best_plan, count_plans, plan_of, plans
from querymesh.optimize.rate.stream_query import JoinPredicate, Projection, RateQuery, Selection
from rate_cases import graph, random_edges

LINEAR = Space("linear")


def double_factorial(number):
    return math.prod(range(number, 0, -2))


@pytest.mark.parametrize("count", range(1, 7))
def test_a_chain_has_catalan_many_plans(count):
    query = graph(count, [(at, at + 1) for at in range(count - 1)])
    assert count_plans(query) == math.comb(2 * count - 2, count - 1) // count
    assert count_plans(query, LINEAR) == max(1, 2 ** (count - 2))


@pytest.mark.parametrize("count", range(2, 7))
def test_a_star_adds_its_arms_in_any_order(count):
    query = graph(count, [(0, at) for at in range(1, count)])
    assert count_plans(query) == count_plans(query, LINEAR) == math.factorial(count - 1)


@pytest.mark.parametrize("count", range(2, 7))
def test_a_clique_has_every_plan(count):
    query = graph(count, [*combinations(range(count), 2)])
    assert count_plans(query) == double_factorial(2 * count - 3)
    assert count_plans(query, LINEAR) == math.factorial(count) // 2


def brute_force(names, edges):
    """All plans, joined pair by pair in any order: each forest leads to every next one."""
    finished = set()
    shapes = {frozenset([(frozenset([name]), name) for name in names])}
    while shapes:
        following = set()
        for forest in shapes:
            if len(forest) == 1:
                finished.add(next(iter(forest))[1])
            for (left, one), (right, other) in combinations(forest, 2):
                if any(len({a, b} & left) == len({a, b} & right) == 1 for a, b in edges):
                    joined = (left | right, frozenset([one, other]))
                    rest = forest - {(left, one), (right, other)}
                    following.add(rest | {joined})
        shapes = following
    return finished


def shape(tree):
    if isinstance(tree, Source):
        return int(tree.name[1:])
    return frozenset([shape(tree.left), shape(tree.right)])


def is_linear(tree):
    if isinstance(tree, Source):
        return True
    one_stream = isinstance(tree.left, Source) or isinstance(tree.right, Source)
    return one_stream and is_linear(tree.left) and is_linear(tree.right)


@pytest.mark.parametrize("seed", range(25))
def test_the_plans_are_those_of_brute_force(seed):
    rng = random.Random(seed)
    count = rng.randint(2, 5)
    edges = random_edges(rng, count)
    found = plans(graph(count, edges))
    assert {shape(tree) for tree in found} == brute_force(range(count), edges)
    assert len(found) == len(set(found)) == len({plan_text(tree) for tree in found})
    linear = plans(graph(count, edges), LINEAR)
    assert sorted(map(plan_text, linear)) == sorted(
        plan_text(tree) for tree in found if is_linear(tree)
    )


def test_a_join_has_all_predicates_between_its_sides():
    streams = tuple(Source(name, 1.0) for name in "ABC")
    predicates = (
        JoinPredicate("A", "B", 0.5, 1),
        JoinPredicate("B", "C", 0.1, 2),
        JoinPredicate("C", "A", 0.2, 4),
    )
    query = RateQuery(streams, predicates, costs=JoinCosts(hash_s=8, handling_s=16))
    top = next(tree for tree in plans(query) if plan_text(tree) == "(A ⋈ B) ⋈ C")
    assert top.selectivity == pytest.approx(0.02)
    assert top.costs == JoinCosts(hash_s=8, handling_s=22)
    assert top.left.selectivity == 0.5
    assert top.left.costs.handling_s == 17


def top_of(query, text):
    return next(tree for tree in plans(query) if plan_text(tree) == text)


def test_predicates_of_one_key_count_by_their_least_selective_spanning_tree():
    streams = tuple(Source(name, 1.0) for name in "ABC")
    predicates = (
        JoinPredicate("A", "B", 0.1, handling_s=1, group="k"),
        JoinPredicate("B", "C", 0.2, handling_s=2, group="k"),
        JoinPredicate("C", "A", 0.4, handling_s=4, group="k"),
    )
    query = RateQuery(streams, predicates, costs=JoinCosts(hash_s=8))
    # All three streams keep F = 0.4 · 0.2 of their combinations.
    for text, below, top in (
        ("(A ⋈ B) ⋈ C", 0.1, 0.08 / 0.1),
        ("(B ⋈ C) ⋈ A", 0.2, 0.08 / 0.2),
        ("(A ⋈ C) ⋈ B", 0.4, 0.08 / 0.4),
    ):
        tree = top_of(query, text)
        assert tree.left.selectivity == below
        assert tree.selectivity == pytest.approx(top)
    # The key is compared once, at the price of the dearer predicate, not at that of both.
    assert top_of(query, "(A ⋈ B) ⋈ C").costs.handling_s == 4
    assert top_of(query, "(A ⋈ C) ⋈ B").costs.handling_s == 2
    assert top_of(query, "(A ⋈ C) ⋈ B").left.costs.handling_s == 4


def test_a_join_never_passes_more_than_all_pairs():
    streams = tuple(Source(name, 1.0) for name in "ABC")
    predicates = (
        JoinPredicate("A", "B", 0.1, group="k"),
        JoinPredicate("B", "C", 0.9, group="k"),
        JoinPredicate("C", "A", 0.9, group="k"),
    )
    assert top_of(RateQuery(streams, predicates), "(A ⋈ B) ⋈ C").selectivity == 1


def test_a_key_that_nothing_shares_passes_nothing():
    streams = tuple(Source(name, 1.0) for name in "ABC")
    predicates = tuple(
        JoinPredicate(*pair, 0.0, group="k") for pair in (("A", "B"), ("B", "C"), ("C", "A"))
    )
    assert top_of(RateQuery(streams, predicates), "(A ⋈ B) ⋈ C").selectivity == 0


def test_the_plan_of_a_shape_is_the_plan_that_has_it():
    streams = tuple(Source(name, 1.0) for name in "ABCD")
    predicates = (
        JoinPredicate("A", "B", 0.1, handling_s=1),
        JoinPredicate("B", "C", 0.2, handling_s=2, group="k"),
        JoinPredicate("C", "D", 0.3, handling_s=4, group="k"),
        JoinPredicate("D", "B", 0.4, handling_s=8, group="k"),
    )
    steps = tuple(Selection(name, 0.5, name=f"σ{name}") for name in "ABCD")
    query = RateQuery(streams, predicates, steps, JoinCosts(hash_s=16, handling_s=32))
    for space in (Space(placing="pushed"), Space("linear", "pushed")):
        found = plans(query, space)
        assert len(found) == count_plans(query, space)
        assert {plan_of(query, join_shape(tree)) for tree in found} == {*found}
    assert {"(σA(A) ⋈ σB(B)) ⋈ (σC(C) ⋈ σD(D))"} <= {plan_text(tree) for tree in plans(query)}


def test_steps_that_stay_on_their_streams_are_counted_in_their_orders():
    streams = (Source("A", 1.0), Source("B", 1.0))
    predicates = (JoinPredicate("A", "B", 0.1),)
    pushed = Space(placing="pushed")
    one = (Selection("A", 0.5), Selection("B", 0.5))
    two = (*one, Selection("A", 0.1, name="σ2"))
    over_all = (*one, Projection())
    for steps, count in ((one, 1), (two, 2), (over_all, 1)):
        query = RateQuery(streams, predicates, steps)
        assert count_plans(query, pushed) == len(plans(query, pushed)) == count
        best = best_plan(query, lambda tree: rate_estimate(tree, 1.0), pushed)
        assert best in plans(query, pushed)


def test_selections_stand_anywhere_above_their_stream_and_in_any_order():
    streams = (Source("A", 1.0), Source("B", 1.0))
    steps = (Selection("A", 0.1, name="σ1"), Selection("A", 0.1, name="σ2"), Projection())
    query = RateQuery(streams, (JoinPredicate("A", "B", 0.1),), steps)
    assert {plan_text(tree) for tree in plans(query, Space(placing="pushed"))} == {
        "π(σ1(σ2(A)) ⋈ B)",
        "π(σ2(σ1(A)) ⋈ B)",
    }
    anywhere = {plan_text(tree) for tree in plans(query)}
    assert len(anywhere) == count_plans(query)
    assert {"π(σ1(σ2(A ⋈ B)))", "σ1(π(σ2(A) ⋈ B))", "π(σ1(σ2(A) ⋈ B))"} <= anywhere
    # Below the join are both (2 orders), one (2 choices) or none; π and the others permute above.
    assert len(anywhere) == 2 * 1 + 2 * 2 + 6


def test_one_stream_with_two_selections_has_figure_1s_two_plans():
    query = RateQuery(
        (Source("I", 500.0),), (), (Selection("I", 0.1, 0.02, "σ1"), Selection("I", 0.1, 0, "σ2"))
    )
    assert {plan_text(tree) for tree in plans(query)} == {"σ1(σ2(I))", "σ2(σ1(I))"}


def test_products_are_made_only_if_allowed():
    query = graph(4, [(0, 1), (2, 3)])
    with pytest.raises(QueryError, match=r"S0, S1, S2, S3.*allow products"):
        plans(query)
    found = plans(query, Space(products=True))
    assert len(found) == double_factorial(5)
    top = next(tree for tree in found if plan_text(tree) == "(S0 ⋈ S1) ⋈ (S2 ⋈ S3)")
    assert (top.selectivity, top.left.selectivity) == (1, 0.1)


def test_too_many_plans_are_not_listed(monkeypatch):
    monkeypatch.setattr(join_plans, "MOST_PLANS", 10)
    query = graph(5, [*combinations(range(5), 2)])
    with pytest.raises(UnsupportedError, match="the query has 105 plans"):
        plans(query)
    tree = best_plan(query, lambda tree: rate_estimate(tree, 1.0))
    assert isinstance(tree, Join)
    assert len([*sources_of(tree)]) == 5
