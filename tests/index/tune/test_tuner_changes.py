"""When a tuner chooses anew, and what it counts until then."""

from dataclasses import replace

import pytest

from querymesh.index.store.configuration import Configuration
from querymesh.index.store.index_plan import BitPlan, HashPlan
from querymesh.index.tune.tuner import Attributes
from tuners import COMPARING, ONE, load, tuner


@pytest.mark.parametrize(("worth", "changes"), [(0.5, 0), (0.49, 1)])
def test_another_configuration_must_save_its_share(worth, changes):
    """A tenth bit halves what is compared."""
    amri = tuner("amri", attributes=ONE, prices=COMPARING, worth=worth)
    amri.start_with("s", BitPlan(Configuration((9,), 1)))
    assert len(amri.see({"s": load({(0,): 1000}, stored=1024, largest=1024)})) == changes


def test_what_has_more_buckets_than_rows_is_changed_whatever_that_saves():
    for had, has in (((12, 0), (5, 5)), ((6, 4), (6, 4))):
        amri = tuner("amri", attributes=Attributes(2, 0), prices=COMPARING, worth=0.99)
        amri.start_with("s", BitPlan(Configuration(had, 2)))
        amri.see({"s": load({(0,): 500, (1,): 500}, stored=1024, largest=1024)})
        assert amri.plans["s"].configuration.bits == has


def test_half_of_what_a_comparison_asks_is_left_open():
    amri = tuner("amri", attributes=Attributes(1, 1))
    amri.see({"s": load({(0, 1): 600, (1,): 400})})
    assert amri._states["s"].workload.frequencies == {
        (0, 1): 0.3,
        (0,): 0.3,
        (1,): 0.2,
        (): 0.2,
    }


@pytest.mark.parametrize("visits", [True, False])
def test_attributes_compared_by_order_get_bits_whether_visits_count_or_not(visits):
    amri = tuner("amri", attributes=Attributes(1, 1), prices=COMPARING, visits=visits)
    amri.see({"s": load({(0, 1): 500, (1,): 500})})
    assert all(amri.plans["s"].configuration.bits)


def test_hash_indices_are_for_what_is_compared_for_equality():
    hashes = tuner("hash", attributes=Attributes(1, 1), hashes=2)
    hashes.see({"s": load({(0,): 10, (0, 1): 500, (1,): 300})})
    assert hashes.plans["s"] == HashPlan(((0,),), (0,))


def test_of_patterns_asked_as_often_the_first_has_the_hash_index():
    hashes = tuner("hash", hashes=1, budget=8)
    hashes.see({"s": load({(1,): 500, (0,): 500})})
    assert hashes.plans["s"] == HashPlan(((0,),), (0,)), "a budget is of bits, and has no say"
    none = tuner("hash", hashes=0)
    none.see({"s": load({(1,): 500})})
    assert none.plans["s"] == HashPlan(())
    only_ranges = tuner("hash", attributes=Attributes(1, 1), hashes=1)
    only_ranges.see({"s": load({(1,): 500})})
    assert only_ranges.plans["s"] == HashPlan(())


def test_a_budget_gives_no_state_more_bits_than_it_has_rows_for():
    amri = tuner("amri", ("s", "t"), ONE, COMPARING, budget=20)
    amri.see({"s": load({(0,): 1000}, largest=16), "t": load({(0,): 1000}, largest=1024)})
    bits = {name: plan.configuration.total for name, plan in amri.plans.items()}
    assert bits == {"s": 4, "t": 10}


def test_bits_of_a_budget_move_to_a_state_that_needs_them_later():
    amri = tuner("amri", ("s", "t"), ONE, COMPARING, budget=8)
    amri.see({"s": load({(0,): 100})})
    assert amri.plans["s"].configuration.total == 8
    changed = amri.see({"t": load({(0,): 100_000})})
    assert [change.state for change in changed] == ["s", "t"]
    assert amri.plans["s"].configuration.total + amri.plans["t"].configuration.total == 8
    assert amri.plans["s"].configuration.total < amri.plans["t"].configuration.total
    assert [change.requests for change in amri.changes] == [100, 100_100, 100_100]


def test_a_first_choice_takes_as_many_requests_as_it_is_set_to_and_counts_since_the_beginning():
    amri = tuner("amri", first=100)
    assert amri.see({"s": load({(0,): 60}, arrived=30)}) == []
    assert amri.see({"s": load({(1,): 39}, arrived=20)}) == []
    (change,) = amri.see({"s": load({(1,): 1}, arrived=10)})
    assert change.frequencies == {(0,): 0.6, (1,): 0.4}
    assert change.requests == amri.requests == 100
    assert amri.stored("s") == 10_000
    workload = amri._states["s"].workload
    assert (workload.arrivals, workload.requests, workload.stored) == (60, 100, 10_000)


def test_an_assessment_that_ends_before_the_first_choice_chooses_nothing():
    amri = tuner("amri", first=5000)
    for _ in range(4):
        assert amri.see({"s": load({(0,): 1000})}) == []
    (change,) = amri.see({"s": load({(0,): 1000})})
    assert change.why == "the first choice"


def test_a_later_choice_counts_what_came_since_the_one_before():
    amri = tuner("amri", window=2000, memory=0.0)
    amri.see({"s": load({(0,): 2000}, arrived=70)})
    amri.see({"s": load({(1,): 500, (2,): 500}, arrived=30)})
    (change,) = amri.see({"s": load({(2,): 1000}, arrived=20)})
    assert change.why == "continuous"
    assert change.frequencies == {(1,): 0.25, (2,): 0.75}
    assert amri._states["s"].workload.arrivals == 50
    amri.see({"s": load({(0,): 2000}, arrived=10)})
    assert amri._states["s"].workload.arrivals == 10


def test_a_state_that_is_not_assessed_is_not_counted():
    """Hybrid assesses s first and then t."""
    amri = tuner("amri", ("s", "t"), schedule="hybrid", memory=0.0, every=10**6)
    both = {"s": load({(0,): 500}, arrived=10), "t": load({(0,): 500}, arrived=10)}
    amri.see(both)
    assert [change.state for change in amri.changes] == ["s", "t"]
    t_only = {name: load({(2,): 500}, arrived=7) for name in "st"}
    amri.see(t_only)
    assert amri.frequencies == {"s": {(0,): 1.0}, "t": {(2,): 1.0}}
    assert amri._states["t"].workload.arrivals == 7


def test_a_state_that_nobody_searched_keeps_the_plan_it_began_with():
    amri = tuner("amri", ("s", "t"))
    plan = BitPlan(Configuration((1, 1, 1), 3))
    amri.start_with("t", plan)
    for _ in range(3):
        amri.see({"s": load({(0,): 1000}), "t": load({})})
    assert amri.plans["t"] == plan
    assert "t" not in amri.frequencies


def test_a_state_without_arrivals_counts_one():
    amri = tuner("amri")
    amri.see({"s": load({(0,): 1000}, arrived=0)})
    workload = amri._states["s"].workload
    assert (workload.arrivals, workload.stored) == (1, 10_000)
    assert workload.window == 10_000


def test_earlier_requests_weigh_as_much_as_memory_says():
    amri = tuner("amri", memory=0.25)
    amri.see({"s": load({(0,): 600, (1,): 400})})
    amri.see({"s": load({(1,): 200, (2,): 800})})
    assert amri.frequencies["s"] == pytest.approx(
        {(0,): 0.25 * 0.6, (1,): 0.25 * 0.4 + 0.75 * 0.2, (2,): 0.75 * 0.8}
    )


@pytest.mark.parametrize(
    ("others", "stored", "same"),
    [
        (9, 10_000, True),
        (11, 10_000, False),
        (9, 12_499, True),
        (9, 12_500, False),
        (9, 8_001, True),
        (9, 8_000, False),
    ],
)
def test_a_state_that_is_asked_as_before_and_as_large_is_not_thought_about(others, stored, same):
    """Of 1000 requests so many are of another pattern: shares move by twice as much in all."""
    amri = tuner("amri", memory=0.0)
    amri.see({"s": load({(0,): 1000})})
    amri.see({"s": load({(0,): 1000 - others, (1,): others}, stored=stored)})
    assert ((1,) not in amri.frequencies["s"]) == same


def test_a_move_of_all_that_is_the_same_is_one(monkeypatch):
    monkeypatch.setattr("querymesh.index.tune.tuner.SAME", 0.25)
    amri = tuner("amri", memory=0.0)
    amri.see({"s": load({(0,): 1000})})
    amri.see({"s": load({(0,): 875, (1,): 125})})
    assert amri.frequencies["s"] == {(0,): 0.875, (1,): 0.125}


def test_an_empty_state_that_gets_a_row_is_as_large_as_before():
    amri = tuner("amri", memory=0.0)
    amri.see({"s": load({(0,): 1000}, stored=0, largest=0)})
    amri.see({"s": load({(0,): 991, (1,): 9}, stored=1, largest=1)})
    assert amri.frequencies["s"] == {(0,): 1.0}


def test_a_step_counts_for_no_more_than_its_part_of_a_window():
    four = tuner("amri", ("s", "t"), window=1000, steps=4)
    assert four._as_of_steps({"s": 400, "t": 600}) == {"s": 100, "t": 150}
    assert four._as_of_steps({"s": 100, "t": 150}) == {"s": 100, "t": 150}
    assert four._as_of_steps({"s": 20, "t": 0}) == {"s": 20, "t": 0}
    assert four._as_of_steps({"s": 0}) == {"s": 0}
    assert tuner("amri", window=1)._as_of_steps({"s": 1}) == {"s": 1}


def test_the_time_of_every_call_adds_up(monkeypatch):
    clock = iter([10.0, 10.5, 20.0, 20.25])
    monkeypatch.setattr("querymesh.index.tune.tuner.thread_time", lambda: next(clock))
    amri = tuner("amri")
    assert amri.seconds == 0
    for _ in range(2):
        amri.see({"s": load({(0,): 10})})
    assert amri.seconds == 0.75
    assert amri.steps == 2


@pytest.mark.parametrize(
    ("asked", "worth", "bits"),
    [(2000, 0.0, (5, 3)), (2000, 0.19, (5, 3)), (2000, 0.21, (4, 4)), (1000, 0.0, (4, 4))],
)
def test_a_division_of_a_budget_must_save_its_share_for_all_states_together(asked, worth, bits):
    """At four bits each, s that is four times as busy as t costs 4/16 and t 1/16; with a bit more
    and less 4/32 and 1/8, a fifth less in all. Twice as busy it would be the same in all."""
    amri = tuner("amri", ("s", "t"), ONE, COMPARING, budget=8, worth=worth, memory=0.0)
    for name in "st":
        amri.start_with(name, BitPlan(Configuration((4,), 1)))
    amri.see({name: load({(0,): 1000}, stored=1024, largest=1024) for name in "st"})
    assert [plan.configuration.total for plan in amri.plans.values()] == [4, 4]
    amri.see(
        {
            "s": load({(0,): asked}, stored=2048, largest=1024),
            "t": load({(0,): 1000}, stored=1024, largest=1024),
        }
    )
    assert tuple(plan.configuration.total for plan in amri.plans.values()) == bits


def test_what_has_more_bits_than_the_budget_is_changed_whatever_that_costs():
    for had, has in ((8, 8), (9, 8)):
        amri = tuner("amri", attributes=ONE, prices=COMPARING, budget=8, worth=0.9)
        amri.start_with("s", BitPlan(Configuration((had,), 1)))
        amri.see({"s": load({(0,): 1000}, stored=1024, largest=1024)})
        assert amri.plans["s"].configuration.total == has


def test_of_a_budget_a_state_keeps_its_hash_indices_while_another_gets_bits():
    """A hash index of s is cheap to keep; t, to which many rows come, is better off with cells."""
    auto = tuner("auto", ("s", "t"), ONE, replace(COMPARING, build=1.0, cell_probe=1.0), budget=8)
    few = load({(0,): 1000}, arrived=1, stored=1024, largest=1024)
    auto.see({"s": few, "t": few._replace(arrived=10**6)})
    assert auto.plans["s"] == HashPlan()
    assert isinstance(auto.plans["t"], BitPlan)
    assert [change.state for change in auto.changes] == ["t"]
