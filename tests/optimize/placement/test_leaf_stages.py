from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from placements import BOTH, cases_with_kinds, costs_of, fits, transport_by_columns
from profiles import profile_of
from querymesh.classify.tree import Leaf, Member, Split
from querymesh.mesh.stages import Parts
from querymesh.optimize.placement.costs import placement_of
from querymesh.optimize.placement.leaf_stages import (
    could_be_chance,
    crossing_us,
    leaves_us,
    with_leaf_stages,
)
from querymesh.optimize.placement.place import best_parts, best_placement
from querymesh.optimize.train.folds import Fold, holdout

TREE = Split(Member("kind", ("a",)), Leaf(0), Leaf(1))


def two_kinds(rates, rows=900, seed=0):
    """Tuples of kind a and b, with pass rates by kind."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, rows)
    sample = pa.table({"kind": pa.array(np.array(["a", "b"])[kind])})
    return profile_of(rng.random((rows, len(rates[0]))) < np.array(rates)[kind], sample=sample)


def folded(profile):
    return holdout(profile.rows, 1 / 3, 5, np.random.default_rng(0))[0]


COSTS = costs_of(
    [BOTH, BOTH], [0.4, 9.0], [0.4, 0.1], transport_by_columns([{"x"}, {"y"}], 0.7, 0.1)
)


def test_a_leaf_whose_rows_catalyst_drops_keeps_them_there():
    profile = two_kinds([[0.02, 0.9], [0.99, 0.05]])
    start = (Parts((), (2, 1), ()),) * 2
    found = with_leaf_stages(profile, COSTS, TREE, start, folded(profile))
    assert found[0].before == (1,)
    assert found[1].python[0] == 2
    before, after = (leaves_us(profile, COSTS, TREE, parts).mean() for parts in (start, found))
    assert after < before


def test_one_kind_that_python_suits_brings_a_stage_for_it():
    profile = two_kinds([[0.01, 0.5], [0.99, 0.05]])
    start = (Parts((1, 2), (), ()),) * 2
    found = with_leaf_stages(profile, COSTS, TREE, start, folded(profile))
    assert found[1].python
    assert crossing_us(COSTS, start, frozenset()) == 0


@pytest.mark.parametrize("seed", range(5))
def test_kinds_that_behave_alike_are_placed_alike(seed):
    profile = two_kinds([[0.4, 0.4], [0.4, 0.4]], seed=seed)
    placement = best_placement(profile, COSTS)
    start = (best_parts(profile, COSTS, placement),) * 2
    assert with_leaf_stages(profile, COSTS, TREE, start, folded(profile)) == start


def test_what_only_the_seen_tuples_say_is_not_believed():
    profile = two_kinds([[0.02, 0.9], [0.99, 0.05]])
    fold = folded(profile)
    outcomes = profile.outcomes.copy()
    outcomes[fold.unseen] = [1.0, 0.0]
    start = (Parts((), (2, 1), ()),) * 2
    odd = replace(profile, outcomes=outcomes)
    assert with_leaf_stages(odd, COSTS, TREE, start, fold) == start


def test_too_few_tuples_change_nothing():
    profile = two_kinds([[0.02, 0.9], [0.99, 0.05]], rows=60)
    start = (Parts((), (2, 1), ()),) * 2
    assert with_leaf_stages(profile, COSTS, TREE, start, folded(profile)) == start
    nobody = Fold(np.arange(60), np.arange(0))
    assert with_leaf_stages(profile, COSTS, TREE, start, nobody) == start


def test_a_leaf_without_a_python_part_pays_for_what_it_keeps_if_another_leaf_crosses():
    profile = profile_of([[1, 1], [1, 1]], sample=pa.table({"kind": ["a", "b"]}))
    parts = (Parts((1, 2), (), ()), Parts((), (1, 2), ()))
    crossing = crossing_us(COSTS, parts, frozenset({"kind"}))
    assert crossing == pytest.approx(0.7 + 3 * 0.1)
    us = leaves_us(profile, COSTS, TREE, parts)
    assert us.tolist() == pytest.approx([9.4 + crossing, 0.5 + crossing])


def test_columns_are_sent_only_to_tell_different_python_parts_apart():
    alike = (Parts((1,), (2,), ()), Parts((), (2,), (1,)))
    assert crossing_us(COSTS, alike, frozenset({"kind"})) == pytest.approx(0.8)


def test_a_saving_within_its_error_could_be_chance():
    assert could_be_chance(np.array([5.0, -5.0, 5.0, -4.0]))
    assert not could_be_chance(np.array([5.0, 4.0, 5.0, 4.0]))
    assert could_be_chance(np.zeros(10))


@given(cases_with_kinds())
@settings(max_examples=60, deadline=None)
def test_leaves_placed_anew_never_cost_more_and_keep_precedence(case):
    profile, costs = case
    placement = best_placement(profile, costs)
    assert placement is not None
    start = (best_parts(profile, costs, placement),) * 2
    found = with_leaf_stages(profile, costs, TREE, start, folded(profile))
    for parts in found:
        assert fits(placement_of(parts), costs, profile.after)
        assert sorted(parts.route) == list(range(1, profile.operators + 1))
    before, after = (leaves_us(profile, costs, TREE, parts).mean() for parts in (start, found))
    assert after <= before + 1e-9
