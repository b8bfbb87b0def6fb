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
