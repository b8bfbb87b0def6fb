from itertools import permutations

import numpy as np
import pytest

from querymesh_lab.bench.guest.condition import Sql, matches
from querymesh_lab.bench.guest.orders import (
    Outcomes,
    _step_by_step,
    best_orders,
    fastest_order,
    levelled,
    outcomes_of,
    worst_order,
)


def drawn(conditions: int, seed: int) -> Outcomes:
    rng = np.random.default_rng(seed)
    passes = np.array(np.meshgrid(*[[False, True]] * conditions)).reshape(conditions, -1).T
    return Outcomes(passes, rng.random(len(passes)), rng.uniform(0.5, 2.0, conditions))


def test_a_row_pays_for_the_conditions_it_reaches():
    outcomes = Outcomes(
        np.array([[True, False], [False, True]]), np.array([3.0, 1.0]), np.array([10.0, 1.0])
    )
    assert outcomes.cost_of((0, 1)) == pytest.approx(10 + 0.75 * 1)
    assert outcomes.cost_of((1, 0)) == pytest.approx(1 + 0.25 * 10)
    assert outcomes.selectivities().tolist() == [0.75, 0.25]
    assert best_orders(outcomes, 1) == [(1, 0)]
    assert worst_order(outcomes) == (0, 1)


def test_joint_outcomes_put_the_independent_condition_first():
    same, other = 0.3, 0.3
    passes = np.array([[a, a, b] for a in (True, False) for b in (True, False)])
    counts = np.array([same * other, same * (1 - other), (1 - same) * other,
                       (1 - same) * (1 - other)])  # fmt: skip
    outcomes = Outcomes(passes, counts, np.ones(3))
    assert {order[-1] for order in best_orders(outcomes, 4)} == {0, 1}
    assert worst_order(outcomes)[-1] == 2


@pytest.mark.parametrize("seed", range(5))
def test_an_order_built_step_by_step_is_near_the_best(seed: int):
    outcomes = drawn(5, seed)
    least = min(map(outcomes.cost_of, permutations(range(5))))
    assert outcomes.cost_of(best_orders(outcomes, 1)[0]) == least
    assert least <= outcomes.cost_of(_step_by_step(outcomes, worst=False)) <= 1.3 * least


def test_many_conditions_are_ordered_without_trying_every_order():
    outcomes = drawn(9, 0)
    (best,) = best_orders(outcomes, 3)
    assert sorted(best) == list(range(9))
    assert outcomes.cost_of(best) < outcomes.cost_of(worst_order(outcomes))


def test_conditions_of_a_sort_may_be_taken_to_cost_the_same():
    conditions = (matches("s", "a"), matches("s", "b"), Sql("id > 1"))
    passes = np.array([[True, False, True], [False, False, True], [True, True, True]])
    noisy = Outcomes(passes, np.ones(3), np.array([1.0, 9.0, 0.1]))
    assert best_orders(noisy, 1)[0][0] == 0
    level = levelled(noisy, conditions)
    assert level.cost_us.tolist() == [5.0, 5.0, 0.1]
    assert best_orders(level, 1)[0][0] == 1


def test_outcomes_count_every_row_and_null_as_no(spark):
    df = spark.createDataFrame([(1, "ab"), (2, "b"), (3, None), (4, "ab")], "id long, s string")
    conditions = (Sql("id > 1"), matches("s", "a"))
    outcomes = outcomes_of(df, conditions, "")
    assert outcomes.counts.sum() == 4
    assert outcomes.selectivities().tolist() == [0.75, 0.5]
    order, tried = fastest_order(df, conditions, "", outcomes, 1)
    assert sorted(order) == [0, 1]
    assert set(tried) == {"1, 2", "2, 1"}
