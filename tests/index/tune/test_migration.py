import numpy as np
import pyarrow as pa
import pytest

from querymesh.cost.index_cost import Prices
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.index_plan import BitPlan, HashPlan
from querymesh.index.store.partition import Partition
from querymesh.index.tune.migration import benefit_us, move_us, search_us, to_move
from querymesh.index.tune.prices import IndexPrices

PRICES = IndexPrices(Prices(hash_us=1.0, compare_us=2.0), 10.0, 5.0, 3.0, 4.0)
BY_A, BY_B = (BitPlan(Configuration(bits, 2)) for bits in ((4, 0), (0, 4)))


def partition(plan, rows=1024):
    rng = np.random.default_rng(rows)
    keys = [rng.integers(0, 500, rows) for _ in range(2)]
    batch = pa.record_batch({"x": pa.array(keys[0])})
    return plan.lay_out(Partition(batch, keys, [], np.zeros(rows, np.int64)))


def test_a_request_hashes_what_is_indexed_and_compares_what_is_left():
    assert search_us(BY_A, 1024, {(0,): 1.0}, PRICES) == 1 + 2 * 1024 / 16 + 4
    assert search_us(BY_A, 1024, {(1,): 1.0}, PRICES) == 2 * 1024 + 4
    assert search_us(HashPlan(((0,),)), 1024, {(0,): 0.5, (1,): 0.5}, PRICES) == 1.5 + 1024


def test_moving_a_row_hashes_it_for_the_old_and_the_new_index():
    assert move_us(BY_A, BY_B, 100, PRICES) == 100 * (10 + 1 + 1)


def test_equation_3_weighs_what_is_saved_against_moving():
    asked = {(1,): 1.0}
    stored = partition(BY_A)
    saved = search_us(BY_A, 1024, asked, PRICES) - search_us(BY_B, 1024, asked, PRICES)
    moving = move_us(BY_A, BY_B, 1024, PRICES)
    assert benefit_us(stored, BY_B, 7, asked, PRICES) == pytest.approx(7 * saved - moving)


def test_all_nothing_and_what_pays_is_moved():
    partitions = [partition(plan) for plan in (BY_A, BY_B, BY_A)]
    requests = [1000, 1000, 1]

    def moved(how):
        return to_move(how, partitions, BY_B, requests, {(1,): 1.0}, lambda: PRICES)

    assert moved("all") == [True, False, True]
    assert moved("nothing") == [False, False, False]
    assert moved("partial") == [True, False, False]


def test_a_request_of_any_pattern_finds_a_hash_index_where_none_is_left_out():
    assert search_us(HashPlan(), 1024, {(0,): 0.5, (1,): 0.25}, PRICES) == 0.75 * 3


def test_moving_a_row_hashes_each_indexed_attribute_and_builds_each_hash_index():
    """Moving takes 10 a row, a hash 1, a hash index 5."""
    by_both = BitPlan(Configuration((3, 1), 2))
    by_hash = HashPlan(((0,), (1,)))
    assert move_us(BY_A, by_both, 100, PRICES) == 100 * (10 + 1 + 2)
    assert move_us(by_both, BY_A, 100, PRICES) == 100 * (10 + 2 + 1)
    assert move_us(BY_A, by_hash, 100, PRICES) == 100 * (10 + 1 + 2 * 5)
    assert move_us(by_hash, BY_A, 100, PRICES) == 100 * (10 + 0 + 1)
    assert move_us(BY_A, HashPlan(), 100, PRICES) == 100 * (10 + 1 + 5), "one is made at least"
    assert move_us(by_hash, by_hash, 100, PRICES) == 100 * (10 + 2 * 5)


@pytest.mark.parametrize(("requests", "moves"), [(8.0005, True), (8.0, False), (7.9995, False)])
def test_a_partition_is_moved_where_that_saves_anything_at_all(requests, moves):
    """A request saves 15/16 of 1024 comparisons of 2 µs, 1920; to move 1024 rows takes 15 each."""
    prices = IndexPrices(Prices(hash_us=0.0, compare_us=2.0), 15.0, 5.0, 3.0, 4.0)
    asked = {(1,): 1.0}
    assert benefit_us(partition(BY_A), BY_B, 8.0, asked, prices) == 0
    moved = to_move("partial", [partition(BY_A)], BY_B, [requests], asked, lambda: prices)
    assert moved == [moves]
