"""Folding by tuples that the search never saw."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import profile_of, profiles_with_kinds
from querymesh.classify import tree as trees
from querymesh.classify.tree import Leaf, Member, Missing, Split, Threshold, leaves
from querymesh.cost.route_time import Overheads
from querymesh.optimize.train.describe import costs_us
from querymesh.optimize.train.fold import LEAST_JUDGES, folded

CHEAP = Overheads(node_us=0.001, ruster_us=0.0, window=1000)
ROUTES = ((1, 2), (2, 1))
FIRST, SECOND = Leaf(0), Leaf(1)


def rows_of(dropped_by, **columns):
    """Tuples that one of two operators of 10 µs drops: 1, 2, or neither if it is 0."""
    dropped_by = np.asarray(dropped_by)
    outcomes = np.stack([dropped_by != 1, dropped_by != 2], axis=1)
    return profile_of(outcomes, [10.0, 10.0], sample=pa.table(columns))


def fold(profile, tree, overheads=CHEAP, unseen=None):
    """What is left of a tree if every second tuple was not seen."""
    unseen = np.arange(1, profile.rows, 2) if unseen is None else unseen
    return folded(profile, tree, ROUTES, unseen, overheads)


def alternating(values, times=40):
    """Each value for one seen and one unseen tuple in turn, so many times."""
    return np.repeat(np.tile(values, times), 2)


def test_a_test_that_saves_on_unseen_tuples_stays():
    kind = alternating([0, 1])
    profile = rows_of(kind + 1, kind=kind)
    tree = Split(Member("kind", (1,)), SECOND, FIRST)
    kept, routes = fold(profile, tree)
    assert kept == Split(Member("kind", (1,)), FIRST, SECOND)
    assert routes == (ROUTES[1], ROUTES[0]), "routes are numbered as leaves come"


def test_leaves_that_gain_nothing_on_unseen_tuples_are_one():
    kind = alternating([0, 1])
    by_seen = np.where(np.arange(len(kind)) % 2 == 0, kind + 1, 1)
    tree = Split(Member("kind", (1,)), SECOND, FIRST)
    assert fold(rows_of(by_seen, kind=kind), tree) == (Leaf(0), (ROUTES[0],))


def test_a_leaf_must_pay_for_the_ruster_that_it_adds():
    kind = alternating([0, 1])
    profile = rows_of(kind + 1, kind=kind)
    tree = Split(Member("kind", (1,)), SECOND, FIRST)
    for ruster_us, stays in ((4.0, True), (6.0, False)):
        dear = Overheads(node_us=0.0, ruster_us=ruster_us / 2, window=1)
        assert isinstance(fold(profile, tree, dear)[0], Split) is stays, "each saves 5 µs, ± 0.4"


def test_too_few_unseen_tuples_fold_nothing():
    kind = alternating([0, 1])
    by_seen = np.where(np.arange(len(kind)) % 2 == 0, kind + 1, 1)
    profile, tree = rows_of(by_seen, kind=kind), Split(Member("kind", (1,)), SECOND, FIRST)
    unseen = np.arange(1, len(kind), 2)
    assert len(fold(profile, tree, unseen=unseen[: LEAST_JUDGES - 1])[1]) == 2
    assert len(fold(profile, tree, unseen=unseen[:LEAST_JUDGES])[1]) == 1


@pytest.mark.parametrize(("judges", "tests"), [(10, [1, 2, 2]), (LEAST_JUDGES, [1, 1])])
def test_a_test_that_few_unseen_tuples_reach_stays_as_the_search_left_it(judges, tests):
    """The test of kind 2 sends it the wrong way, as those of it that were not seen tell."""
    kind = np.repeat([0, 1, 2], 60)
    inner = Split(Member("kind", (2,)), FIRST, SECOND)
    profile = rows_of(np.where(kind == 0, 1, 2), kind=kind)
    unseen = np.concatenate([np.arange(60), np.arange(120, 120 + judges)])
    kept, _ = fold(profile, Split(Member("kind", (0,)), FIRST, inner), unseen=unseen)
    assert [tests for _, tests in leaves(kept)] == tests


def test_a_test_whose_one_side_does_for_all_tuples_is_not_asked():
    """Kinds 0 and 3 are told apart, and what tells kind 2 from the others would do for both."""
    kind = alternating([0, 1, 2, 3])
    inner = Split(Member("kind", (2,)), SECOND, FIRST)
    profile = rows_of(np.where(kind == 2, 2, 1), kind=kind)
    kept, _ = fold(profile, Split(Member("kind", (0,)), FIRST, inner))
    assert isinstance(kept, Split)
    assert kept.test == inner.test
    assert len(list(leaves(kept))) == 2
    few = np.setdiff1d(np.arange(1, len(kind), 2), np.flatnonzero(kind == 0)[1::2][5:])
    kept, _ = fold(profile, Split(Member("kind", (0,)), FIRST, inner), unseen=few)
    assert len(list(leaves(kept))) == 3, "five tuples of kind 0 cannot tell"


def test_sibling_leaves_that_end_with_one_route_are_one_leaf():
    kind = alternating([0, 1, 2])
    profile = rows_of(np.where(kind == 2, 2, 1), kind=kind)
    same = Split(Member("kind", (0,)), FIRST, FIRST)
    kept, _ = fold(profile, Split(Member("kind", (2,)), SECOND, same))
    assert [tests for _, tests in leaves(kept)] == [1, 1]


def lists(tree):
    return [test for test in trees.tests_of(tree) if isinstance(test, Member)]


def test_values_that_say_nothing_are_no_longer_listed():
    """Three names tell; forty others were listed for one tuple each."""
    rng = np.random.default_rng(1)
    names = [f"s{k}" for k in range(43)]
    often = rng.choice(names[:3], 200)
    rare = np.array(names[3:] * 3)
    others = np.full(400, "other")
    name = np.concatenate([often, rare, others])
    dropped = np.concatenate([np.full(200, 2), rng.integers(1, 3, len(rare)), np.full(400, 1)])
    order = rng.permutation(len(name))
    profile = rows_of(dropped[order], name=pa.array(name[order]))
    tree = Split(Member("name", tuple(names)), SECOND, FIRST)
    kept, _ = fold(profile, tree)
    (test,) = lists(kept)
    assert {"s0", "s1", "s2"} <= set(test.values)
    assert len(test.values) < 15
    free = Overheads(0.0, 0.0, 1)
    before = costs_us(profile, tree, ROUTES, free)
    unseen = np.arange(1, profile.rows, 2)
    after = costs_us(profile, *fold(profile, tree), free)
    error = (after - before)[unseen].std() / len(unseen) ** 0.5
    assert after[unseen].mean() <= before[unseen].mean() + error


def test_a_test_below_that_a_shorter_one_leaves_nothing_to_tell_is_not_asked():
    """Of seven listed names one tells; a second test below lists it, too, and others."""
    rng = np.random.default_rng(3)
    name = np.concatenate([np.full(200, "s0"), np.repeat([f"s{k}" for k in range(1, 7)], 4)])
    name = np.concatenate([name, np.full(400, "other")])
    dropped = np.where(name == "s0", 2, 1)
    order = rng.permutation(len(name))
    profile = rows_of(dropped[order], name=pa.array(name[order]))
    below = Split(Member("name", ("s0", "s1")), SECOND, FIRST)
    kept, _ = fold(profile, Split(Member("name", tuple(f"s{k}" for k in range(7))), below, FIRST))
    assert lists(kept) == [Member("name", ("s0",))]
    assert len(list(leaves(kept))) == 2


@pytest.mark.parametrize("above", [False, True])
def test_numbers_in_a_row_become_a_range(above):
    number = np.tile(np.arange(16), 100)
    number = np.repeat(number, 2)
    high = number >= 8
    profile = rows_of(np.where(high == above, 2, 1), number=number)
    listed = tuple(range(8, 16)) if above else tuple(range(8))
    kept, routes = fold(profile, Split(Member("number", listed), SECOND, FIRST))
    assert isinstance(kept, Split)
    assert kept.test == Threshold("number", 7.5, null=above), "NULL goes with those not listed"
    assert routes[kept.yes.label] == ROUTES[0 if above else 1]


def test_another_column_that_says_the_same_in_a_word_takes_the_place_of_a_list():
    number = np.repeat(np.tile(np.arange(40), 30), 2)
    sector = np.where(number < 20, "x", "y")
    names = np.array([f"n{k}" for k in range(40)])[number]
    profile = rows_of(np.where(number < 20, 2, 1), name=pa.array(names), sector=pa.array(sector))
    by_name = Split(Member("name", tuple(f"n{k}" for k in range(20))), SECOND, FIRST)
    asks_both = Split(Missing("sector"), FIRST, by_name)
    kept, _ = fold(profile, asks_both)
    assert [test for test in trees.tests_of(kept) if isinstance(test, Member)] == [
        Member("sector", ("x",))
    ]
    alone, _ = fold(profile, by_name)
    assert lists(alone)[0].attribute == "name", "a column that no test asks is not sent for"


@given(profiles_with_kinds(), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_folding_never_costs_the_unseen_tuples_more_than_its_errors(profile, seed):
    rng = np.random.default_rng(seed)
    routes = tuple({tuple(rng.permutation(profile.operators) + 1) for _ in range(3)})
    label = lambda: Leaf(int(rng.integers(len(routes))))  # noqa: E731
    tree = Split(
        Member("kind", ("a", "c")), Split(Threshold("noise", 0.0, False), label(), label()), label()
    )
    unseen = np.sort(rng.permutation(profile.rows)[: profile.rows // 2])
    kept, of_kept = folded(profile, tree, routes, unseen, CHEAP)
    assert len({leaf.label for leaf, _ in leaves(kept)}) == len(of_kept)
    saved = (costs_us(profile, tree, routes, CHEAP) - costs_us(profile, kept, of_kept, CHEAP))[
        unseen
    ]
    error = saved.std() / max(1, len(unseen)) ** 0.5
    assert saved.mean() >= -3 * error - 1e-9
