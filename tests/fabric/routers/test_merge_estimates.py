import numpy as np
import pytest

from querymesh.classify.partitions import Partitions
from querymesh.fabric.routers.estimates import Estimates, Pair
from querymesh.fabric.routers.merge_estimates import merge_estimates

RANGE = Partitions({"x": (0.0, 8.0)})


def shard(seen, overall=0.5, attribute=None, column=(), **more):
    """What a shard knows of operator 1."""
    known = Estimates(0.95, {1: overall}, {1: 10.0 * overall}, {1: seen}, {})
    if attribute:
        known.pairs[1] = Pair((attribute,), len(column) - 1, np.array(column), 0.2, **more)
    return known


def test_two_shards_know_the_mean_by_what_each_has_seen():
    whole = merge_estimates(0.95, [(shard(300, 0.2), RANGE), (shard(100, 0.6), RANGE)], RANGE)
    assert whole.seen == {1: 400}
    assert whole.overall[1] == pytest.approx(0.3)
    assert whole.cost_us[1] == pytest.approx(3.0)
    assert whole.pairs == {}


def test_what_one_shard_has_never_seen_is_as_the_other_knows_it():
    other = Estimates(0.95, {2: 0.9}, {2: 1.0}, {2: 5}, {})
    whole = merge_estimates(0.95, [(shard(10, 0.2), RANGE), (other, RANGE)], RANGE)
    assert whole.overall == {1: pytest.approx(0.2), 2: pytest.approx(0.9)}
    assert merge_estimates(0.95, [], RANGE).seen == {}
    assert merge_estimates(0.95, [(Estimates(0.95), RANGE)], RANGE).seen == {}


def test_shards_that_agree_on_the_attribute_share_its_column():
    parts = [
        (shard(300, 0.5, "k", [0.0, 0.4, 0.8]), RANGE),
        (shard(100, 0.5, "k", [0.4, 0.4, 0.0]), RANGE),
    ]
    pair = merge_estimates(0.95, parts, RANGE).pairs[1]
    assert pair.attributes == ("k",)
    assert pair.count == 2
    assert pair.selectivity == pytest.approx([0.1, 0.4, 0.6])


def test_where_shards_disagree_the_attribute_most_tuples_went_by_is_taken():
    parts = [
        (shard(300, 0.5, "k", [0.0, 0.4, 0.8]), RANGE),
        (shard(250, 0.5, "j", [0.9, 0.9, 0.9]), RANGE),
        (shard(200, 0.5, "j", [0.0, 0.0, 0.0]), RANGE),
    ]
    pair = merge_estimates(0.95, parts, RANGE).pairs[1]
    assert pair.attributes == ("j",)
    assert pair.selectivity == pytest.approx([0.5] * 3)
    none = [*parts, (shard(500), RANGE)]
    assert merge_estimates(0.95, none, RANGE).pairs == {}, "most tuples went by none"


def test_a_pair_on_trial_has_no_vote():
    parts = [
        (shard(300, 0.5, "k", [0.0, 0.4, 0.8], on_trial=True), RANGE),
        (shard(100, 0.5, "j", [0.1, 0.1, 0.1]), RANGE),
    ]
    assert merge_estimates(0.95, parts, RANGE).pairs == {}
    whole = merge_estimates(0.95, [parts[1], (shard(50), RANGE)], RANGE)
    assert not whole.pairs[1].on_trial


def test_columns_by_range_are_put_on_the_common_range_first():
    left, right = Partitions({"x": (0.0, 4.0)}), Partitions({"x": (4.0, 8.0)})
    parts = [
        (shard(100, 0.5, "x", [0.2, 0.2, 0.6, 0.6, 0.0]), left),
        (shard(100, 0.5, "x", [0.4, 0.4, 0.8, 0.8, 1.0]), right),
    ]
    common = left.widened(right)
    pair = merge_estimates(0.95, parts, common).pairs[1]
    # Of 0..2, 2..4, 4..6 and 6..8, the left shard knows the first two and the right the others;
    # beyond its range each takes its nearest.
    assert pair.selectivity == pytest.approx([0.3, 0.5, 0.5, 0.7, 0.5])


def test_a_gain_and_the_size_of_a_state_are_means_too():
    one, two = (shard(seen, 0.5, "k", [0.5, 0.5, 0.5]) for seen in (300, 100))
    one.pairs[1].gain, two.pairs[1].gain = 0.2, 0.6
    one.sizes[1], two.sizes[1] = 1000, 4000
    whole = merge_estimates(0.95, [(one, RANGE), (two, RANGE)], RANGE)
    assert whole.pairs[1].gain == pytest.approx(0.3)
    assert whole.sizes == {1: 2500}


def test_one_tuple_is_enough_to_be_known_and_a_majority_of_one_is_one():
    assert merge_estimates(0.95, [(shard(1), RANGE)], RANGE).seen == {1: 1}
    parts = [
        (shard(100, 0.5, "k", [0.1, 0.1, 0.1]), RANGE),
        (shard(50, 0.5, "j", [0.2, 0.2, 0.2]), RANGE),
        (shard(49, 0.5, "j", [0.2, 0.2, 0.2]), RANGE),
    ]
    assert merge_estimates(0.95, parts, RANGE).pairs[1].attributes == ("k",)
    parts[2] = (shard(51, 0.5, "j", [0.2, 0.2, 0.2]), RANGE)
    assert merge_estimates(0.95, parts, RANGE).pairs[1].attributes == ("j",)
