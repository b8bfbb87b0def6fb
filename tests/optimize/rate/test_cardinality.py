import math

import pytest

from querymesh.cost.plan_tree import Join, Project, Select, Source
from querymesh.cost.rates import JoinCosts
from querymesh.optimize.rate.cardinality import cardinality_cost, expected_total, handled
from querymesh_lab.papers.rate.paper_plans import (
    DEEP,
    EVENLY,
    FIVE_DELAYS_S,
    FIVE_PLANS,
    LEAVES,
    OTHER,
    by_text,
)
from rate_cases import paper_query

BYTE_S = 1e-6


def selections(size, first, second):
    return Select(Select(Source("I", 500.0, size), *first), *second)


def test_section_1_of_two_selections_in_series():
    slow, fast = (0.1, 0.02), (0.3, 0.001)
    assert cardinality_cost(selections(1000, slow, fast)) == pytest.approx(
        1000 * 0.02 + 1000 * 0.1 * 0.001
    )
    assert cardinality_cost(selections(1000, fast, slow)) == pytest.approx(
        1000 * 0.001 + 1000 * 0.3 * 0.02
    )


def test_section_1_without_an_end_all_plans_cost_the_same():
    slow, fast = (0.1, 0.02), (0.1, 0.001)
    one = cardinality_cost(selections(math.inf, slow, fast))
    assert one == cardinality_cost(selections(math.inf, fast, slow)) == math.inf


def test_a_join_pays_for_both_inputs():
    a, b, c = Source("A", 1, 100), Source("B", 1, 200), Source("C", 1, 50)
    costs = JoinCosts(hash_s=0.01)
    tree = Project(Join(Join(a, b, 0.1, costs), c, 0.5, costs), 0.002)
    assert cardinality_cost(tree) == pytest.approx(300 * 0.01 + 2050 * 0.01 + 50_000 * 0.002)
    assert handled(tree).rows == pytest.approx(expected_total(tree))


def test_nested_loops_pay_for_each_pair_once():
    costs = JoinCosts("nested loops", move_s=0.01, comp_s=0.001)
    tree = Join(Source("A", 1, 100), Source("B", 1, 200), 0.1, costs)
    assert cardinality_cost(tree) == pytest.approx(300 * 0.01 + 100 * 200 * 0.001)


def test_bytes_are_paid_where_they_are_read():
    a, b = Source("A", 1, 100, row_bytes=10), Source("B", 1, 200, row_bytes=20)
    tree = Select(Join(a, b, 0.1), 0.5)
    assert handled(tree, byte_s=1).cost_s == pytest.approx(100 * 10 + 200 * 20 + 2000 * 30)
    assert handled(tree).row_bytes == 30
    assert cardinality_cost(tree) == 0


def test_table_6_left_deep_is_the_most_expensive():
    trees = by_text(paper_query(FIVE_DELAYS_S))
    deep = cardinality_cost(trees[FIVE_PLANS[DEEP]])
    for other in (FIVE_PLANS[LEAVES], FIVE_PLANS[OTHER], FIVE_PLANS[EVENLY]):
        assert deep > 4 * cardinality_cost(trees[other])


def test_table_6_by_rows_the_bushy_plans_cost_the_same():
    # D ⋈ E and B ⋈ D both have as many rows as D, so that one join is as large as the other.
    trees = by_text(paper_query(FIVE_DELAYS_S))
    leaves, evenly = (
        cardinality_cost(trees[each]) for each in (FIVE_PLANS[OTHER], FIVE_PLANS[EVENLY])
    )
    assert leaves == pytest.approx(evenly)


def test_table_6_by_bytes_fast_leaves_is_the_cheapest():
    # The rows of E are narrower than those of B (Table 4), so that D ⋈ E is than B ⋈ D.
    trees = by_text(paper_query(FIVE_DELAYS_S))
    leaves, evenly, deep = (
        cardinality_cost(trees[name], BYTE_S)
        for name in (FIVE_PLANS[OTHER], FIVE_PLANS[EVENLY], FIVE_PLANS[DEEP])
    )
    assert leaves < evenly < deep


def test_table_6_the_fast_leaves_that_fit_section_5_3_are_not_the_cheapest():
    trees = by_text(paper_query(FIVE_DELAYS_S))
    assert cardinality_cost(trees[FIVE_PLANS[LEAVES]], BYTE_S) > cardinality_cost(
        trees[FIVE_PLANS[EVENLY]], BYTE_S
    )
