from collections import Counter

import numpy as np
import pytest

import querymesh as qm
from equivalence import FUNCTIONS, rows_of
from querymesh.classify.tree import Leaf
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.lottery import FLOOR, Lottery
from querymesh.fabric.core.router import MeshRouter
from querymesh.mesh.mesh import LeafStats, Mesh, OperatorStats, TrainedOn

PLACE = (0, frozenset({1, 3}), 1)


def test_wheels_start_equal():
    lottery = Lottery([1.0, 1.0, 50.0])
    assert lottery.slices(PLACE, [3, 1]) == [0.5, 0.5]
    draws = [lottery.draw(PLACE, [3, 1]) for _ in range(2000)]
    assert draws.count(3) == pytest.approx(1000, abs=120)


def test_the_slice_of_an_operator_that_drops_more_grows():
    lottery = Lottery([1.0, 1.0, 1.0])
    lottery.learn(PLACE, 3, arrived=100, passed=10)
    lottery.learn(PLACE, 1, arrived=100, passed=70)
    three, one = lottery.slices(PLACE, [3, 1])
    assert three == pytest.approx(FLOOR + 0.9 * 0.9 / 1.2)
    assert three + one == pytest.approx(1.0)


def test_what_costs_more_must_drop_more():
    lottery = Lottery([1.0, 1.0, 10.0])
    for index in (1, 3):
        lottery.learn(PLACE, index, arrived=100, passed=50)
    three, one = lottery.slices(PLACE, [3, 1])
    assert one > 0.85 > three


def test_each_subset_and_place_has_a_wheel_of_its_own():
    lottery = Lottery([1.0] * 4)
    lottery.learn(PLACE, 3, arrived=100, passed=0)
    lottery.learn(PLACE, 1, arrived=100, passed=100)
    assert lottery.slices(PLACE, [3, 1])[0] > 0.9
    assert lottery.slices((1, *PLACE[1:]), [3, 1]) == [0.5, 0.5]
    assert lottery.slices((0, frozenset({1, 3, 4}), 1), [3, 1]) == [0.5, 0.5]


def test_no_slice_vanishes_and_a_wheel_can_turn_back():
    lottery = Lottery([1.0] * 3)
    for _ in range(50):
        lottery.learn(PLACE, 3, arrived=10_000, passed=0)
        lottery.learn(PLACE, 1, arrived=10_000, passed=20_000)
    assert min(lottery.slices(PLACE, [3, 1])) >= FLOOR
    for _ in range(20):
        lottery.learn(PLACE, 3, arrived=10_000, passed=10_000)
        lottery.learn(PLACE, 1, arrived=10_000, passed=0)
    assert lottery.slices(PLACE, [3, 1])[1] > 0.9


def uncertain_mesh(after=(frozenset(), frozenset(), frozenset())):
    query = qm.query(
        "SELECT * FROM Src s WHERE s.a > 3 AND is_even(s.a) AND s.ok", functions=FUNCTIONS
    )
    names = ("s.a > 3", "is_even", "s.ok")
    operators = tuple(OperatorStats(n, b, 1.0, 0.5) for n, b in zip(names, after, strict=True))
    stats = (LeafStats(1.0, 1.0, 1.0),)
    return Mesh(
        query, operators, Leaf(0), ((1, 2, 3),), stats, (1, 2, 3), 1.0, 1.0, 1.0,
        TrainedOn(1), (), "made", uncertain=(((1, 2, 3),),),
    )  # fmt: skip


class Recording(MeshRouter):
    """Remembers which operator of the whole choice was drawn first."""

    def __init__(self, mesh, seed):
        super().__init__(mesh, seed=seed)
        self.first_drawn = Counter()

    def choose(self, ruster):
        [chosen] = super().choose(ruster)
        if len(ruster.token.choices) == 3:
            self.first_drawn[chosen.token.top] += 1
        return [chosen]


def visits_of(mesh, batches=60, seed=0):
    source = rows_of(np.random.default_rng(0), 100 * batches)
    fabric = Fabric(mesh.query.bind({"Src": source.schema}))
    router = Recording(mesh, seed)
    for batch in source.to_batches(max_chunksize=100):
        list(fabric.run(batch, router))
    return fabric.metrics.by_operator(), router


def test_a_run_draws_every_order_and_comes_to_favour_what_drops_most():
    visits, router = visits_of(uncertain_mesh())
    wheel = dict(
        zip([1, 2, 3], router.lottery.slices((0, frozenset({1, 2, 3}), 1), [1, 2, 3]), strict=True)
    )
    dropped = {k: 1 - v.passed / v.evaluations for k, v in visits.items()}
    assert max(wheel, key=wheel.get) == max(dropped, key=dropped.get)
    assert set(router.first_drawn) == {1, 2, 3}
    assert min(router.first_drawn.values()) >= 2


def test_a_seed_draws_the_same_orders_again():
    first, second, other = (visits_of(uncertain_mesh(), seed=s)[0] for s in (1, 1, 2))
    calls = [{k: v.evaluations for k, v in visits.items()} for visits in (first, second, other)]
    assert calls[0] == calls[1] != calls[2]


def test_a_draw_respects_precedence():
    mesh = uncertain_mesh(after=(frozenset({3}), frozenset({3}), frozenset()))
    visits, _ = visits_of(mesh, batches=20)
    assert visits[3].evaluations == 2000, "3 is first for every tuple"
    assert visits[1].evaluations < 2000
    assert visits[2].evaluations < 2000
