"""What a tuner chooses: bits, hash indices, for which state."""

from dataclasses import replace

import pytest

from querymesh.cost.index_cost import Prices
from querymesh.errors import QueryMeshError
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.index_plan import BitPlan, HashPlan
from querymesh.index.tune.indexing import Indexing
from querymesh.index.tune.prices import IndexPrices, machine_prices
from querymesh.index.tune.tuner import Attributes
from tuners import COMPARING, ONE, PRICES, load, tuner


def test_bits_go_to_the_attributes_that_requests_specify():
    amri = tuner("amri")
    (change,) = amri.see({"s": load({(0,): 900, (0, 1): 100})})
    assert change.why == "the first choice"
    assert change.new == amri.plans["s"]
    bits = change.new.configuration.bits
    assert bits[2] == 0
    assert bits[0] > bits[1]
    assert sum(bits) <= 12, "no more buckets than a partition has rows"
    assert change.new.configuration.sequence[0] == 0, "what is asked most has the highest bits"


def test_amri_follows_the_workload_and_a_fixed_bitmap_does_not():
    for kind, changes in (("amri", 2), ("bitmap", 1)):
        each = tuner(kind, schedule="continuous", memory=0.0)
        each.see({"s": load({(0,): 1000})})
        for _ in range(3):
            each.see({"s": load({(2,): 1000})})
        assert len(each.changes) == changes
        asked = each.changes[-1].new.configuration.bits
        assert asked == ((0, 0, 12) if kind == "amri" else (12, 0, 0))


def test_a_workload_that_has_passed_is_forgotten_bit_by_bit():
    amri = tuner("amri", schedule="continuous", memory=0.5)
    amri.see({"s": load({(0,): 1000})})
    asked = []
    for _ in range(6):
        amri.see({"s": load({(2,): 1000})})
        asked.append(amri.frequencies["s"].get((0,), 0.0))
    assert asked == sorted(asked, reverse=True)
    assert 0 < asked[-1] < 0.05 < asked[0]
    of_first, *_, of_third = amri.plans["s"].configuration.bits
    assert of_first < of_third


def test_values_that_repeat_get_fewer_bits():
    even = load({(0,): 500, (1,): 500})
    repeating = even._replace(repeats={0: 0.0, 1: 0.9})
    bits = []
    for given in (even, repeating):
        amri = tuner("amri", visits=False)
        amri.see({"s": given})
        bits.append(amri.plans["s"].configuration.bits)
    assert bits[0] == (6, 6, 0)
    assert bits[1][1] < 6 < bits[1][0]


def test_k_hash_indices_are_for_the_most_frequent_patterns():
    hashes = tuner("hash", hashes=2)
    hashes.see({"s": load({(0,): 50, (0, 1): 300, (2,): 200, (): 900})})
    assert hashes.plans["s"] == HashPlan(((0, 1), (2,)), (0, 1))


def test_static_hash_indices_are_chosen_once():
    for adaptive, last in ((False, (0,)), (True, (1,))):
        hashes = tuner("hash", hashes=1, adaptive=adaptive, schedule="continuous")
        hashes.see({"s": load({(0,): 1000})})
        for _ in range(3):
            hashes.see({"s": load({(1,): 1000})})
        assert hashes.plans["s"].patterns == (last,)


def test_one_hash_index_a_pattern_is_never_tuned():
    hashes = tuner("hash")
    assert hashes.see({"s": load({(0,): 10_000})}) == []
    assert hashes.plans["s"] == HashPlan()
    assert not hashes.chooses


@pytest.mark.parametrize(
    ("cell_probe", "build", "kind"), [(5.0, 0.001, HashPlan), (0.001, 50.0, BitPlan)]
)
def test_auto_takes_what_costs_less_here(cell_probe, build, kind):
    prices = IndexPrices(PRICES.eq1, 0.01, build, 0.05, cell_probe)
    auto = tuner("auto", prices=prices)
    auto.see({"s": load({(0,): 1000, (1, 2): 500})})
    assert isinstance(auto.plans["s"], kind)


def test_a_budget_goes_to_the_state_that_saves_most_by_it():
    amri = tuner("amri", ("busy", "idle"), budget=8)
    amri.see({"busy": load({(0,): 100_000}), "idle": load({(0,): 200}, stored=100)})
    bits = {name: plan.configuration.total for name, plan in amri.plans.items()}
    assert bits["busy"] == 8
    assert bits["idle"] == 0


def test_a_state_without_enough_requests_keeps_what_it_began_with():
    amri = tuner("amri", ("s", "t"), first=500)
    begun = amri.plans["t"]
    amri.see({"s": load({(0,): 600}), "t": load({(0,): 10})})
    assert [change.state for change in amri.changes] == ["s"]
    assert amri.plans["t"] == begun


def test_an_assessment_lasts_several_steps_however_many_requests_one_has():
    amri = tuner("amri", schedule="continuous", steps=4)
    for _ in range(4):
        amri.see({"s": load({(0,): 50_000})})
    assert [change.why for change in amri.changes] == ["the first choice"]
    for step in range(4):
        assert len(amri.changes) == 1, f"after {step} steps"
        amri.see({"s": load({(1,): 50_000})})
    assert len(amri.changes) == 2


def test_ranges_get_bits_of_their_own():
    amri = tuner("amri", attributes=Attributes(1, 1))
    amri.see({"s": load({(0, 1): 500, (1,): 500})})
    bits = amri.plans["s"].configuration.bits
    assert bits[1] > 0
    assert bits[0] > 0


def test_a_plan_of_an_earlier_run_is_gone_on_with():
    amri = tuner("amri")
    plan = HashPlan(((0,),))
    amri.start_with("s", plan)
    amri.see({"s": load({(0,): 200})})
    assert amri.plans["s"] == plan


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"assessment": "guess"}, "sria, csria"),
        ({"schedule": "daily"}, "continuous"),
        ({"migration": "some"}, "nothing, all, partial"),
        ({"window": 0}, "at least 1"),
        ({"error": 0.2, "threshold": 0.1}, "between it and 1"),
        ({"bits": 99}, "0 to 20 bits"),
        ({"hashes": -1}, "0 indices or more"),
        ({"budget": -1}, "0 bits or more"),
    ],
)
def test_settings_say_what_is_wrong_with_them(settings, told):
    with pytest.raises(QueryMeshError, match=told):
        Indexing(**settings)


def test_the_prices_of_this_machine_are_sane():
    prices = machine_prices()
    assert 0 < prices.eq1.hash_us < 1
    assert 0 < prices.eq1.compare_us < 1
    assert 0 < prices.move < 10
    assert 0 < prices.build < 10
    assert 0 < prices.hash_probe < 100
    assert 0 < prices.cell_probe < 100


FREE = IndexPrices(Prices(0.0, 0.0), 0.0, 0.0, 0.0, 0.0, 0.0)


def test_before_any_request_bits_are_given_evenly_and_hash_indices_as_they_are_asked():
    assert tuner("amri").plans["s"].configuration.bits == (7, 7, 6)
    assert tuner("bitmap", bits=5).plans["s"].configuration.bits == (2, 2, 1)
    assert tuner("hash").plans["s"] == tuner("auto").plans["s"] == HashPlan()
    assert tuner("hash", hashes=2).plans["s"] == HashPlan(())


@pytest.mark.parametrize(
    ("largest", "settings", "bits"),
    [
        (0, {}, 0),
        (1, {}, 0),
        (2, {}, 1),
        (1023, {}, 9),
        (1024, {}, 10),
        (1024, {"bits": 4}, 4),
        (8, {"bits": 4}, 3),
        (1 << 25, {}, 20),
    ],
)
def test_a_state_has_no_more_buckets_than_its_largest_partition_has_rows(largest, settings, bits):
    amri = tuner("amri", attributes=ONE, prices=COMPARING, **settings)
    amri.see({"s": load({(0,): 100}, largest=largest)})
    assert amri.plans["s"].configuration.bits == (bits,)


@pytest.mark.parametrize(
    ("cells", "cells_us"),
    [
        ({"eq1": Prices(0.0, 2.0)}, 1000 * 4096 * 2.0),
        ({"cell_probe": 0.25}, 1000 * 4 * 0.25),
        ({"visit": 0.125}, 1000 * 4 * 0.125),
        ({"move": 16.0}, 64 * 16.0),
    ],
)
@pytest.mark.parametrize(
    ("hashes", "unit_us"),
    [("hash_probe", 1000 * 4), ("build", 64 * 2)],
)
def test_auto_takes_a_hash_index_where_it_costs_less_by_a_microsecond(
    cells, cells_us, hashes, unit_us
):
    """1000 requests of two patterns come to four partitions of 1024 rows; 64 rows arrived."""
    chosen = {}
    for more_us in (-1, 0, 1):
        prices = replace(FREE, **cells, **{hashes: (cells_us + more_us) / unit_us})
        auto = tuner("auto", attributes=Attributes(2, 0), prices=prices, bits=0)
        auto.start_with("s", BitPlan(Configuration((1, 0), 2)))
        auto.see({"s": load({(0,): 600, (0, 1): 400}, 64, 4096, 1024)})
        chosen[more_us] = type(auto.plans["s"])
    assert chosen == {-1: HashPlan, 0: BitPlan, 1: BitPlan}


def test_a_state_without_rows_counts_as_one_partition():
    """A probe of cells takes 2 µs and one of hash indices 1.5."""
    auto = tuner("auto", attributes=ONE, prices=replace(FREE, cell_probe=2.0, build=0.015))
    auto.start_with("s", BitPlan(Configuration((1,), 1)))
    auto.see({"s": load({(0,): 1000}, arrived=100_000, stored=0, largest=0)})
    assert auto.plans["s"] == HashPlan(), "1500 against 2000 µs"


@pytest.mark.parametrize(("visit_us", "bits"), [(1.99, (1, 1)), (2.01, (0, 1))])
def test_ranges_of_buckets_are_come_to_in_every_partition(visit_us, bits):
    """The example of one partition of four rows, with 1024 of them."""
    prices = replace(COMPARING, visit=visit_us)
    amri = tuner("amri", attributes=Attributes(2, 0), prices=prices)
    amri.see({"s": load({(0,): 500, (1,): 500}, stored=4096, largest=4)})
    assert amri.plans["s"].configuration.bits == bits
