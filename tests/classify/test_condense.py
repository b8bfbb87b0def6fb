import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import profile_of, three_classes
from querymesh.classify.attributes import Attribute
from querymesh.classify.condense import TrainingSet, behaviours, cheapest_way_out, condense


def regions(count, rows, seed=0, operators=3):
    """Places on a grid, each with operators of its own behaviour."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, count, rows)
    outcomes = (rng.integers(0, 2, (count, operators))[place] == 1).astype(float)
    sample = pa.table({"x": place % 20 + rng.uniform(0, 0.5, rows), "y": place // 20 + 0.5})
    return profile_of(outcomes, sample=sample)


@given(st.integers(1, 40), st.integers(5, 400), st.integers(0, 20))
@settings(max_examples=60)
def test_the_densities_are_those_of_the_sample(size, rows, seed):
    training = condense(regions(12, rows, seed), size)
    assert 1 <= training.size <= size
    assert training.weights.sum() == rows
    assert (training.weights > 0).all()


@given(st.integers(0, 50), st.integers(1, 24))
@settings(max_examples=30)
def test_a_cell_lies_in_one_training_tuple_and_has_one_code_an_attribute(seed, size):
    training = condense(three_classes(300, seed), size)
    cells = training.cells
    assert cells.weights.sum() == 300
    assert (cells.member[cells.of_row] == training.member).all()
    for codes, of_cell in zip(training.codes, cells.codes, strict=True):
        assert (of_cell[cells.of_row] == codes).all()
    assert len({*zip(*cells.codes, strict=True)}) == cells.count or not cells.codes
    ones = np.ones(300)
    assert cells.sums(ones).tolist() == cells.weights.tolist()


@pytest.mark.parametrize(("asked", "rows"), [(10, 1000), (24, 2000), (100, 4000)])
def test_as_many_training_tuples_as_the_data_has_kinds_and_the_caller_asks_for(asked, rows):
    profile = regions(200, rows, operators=4)
    assert condense(profile, asked).size == asked


def test_alike_tuples_are_one_training_tuple():
    profile = profile_of(np.ones((100, 2)), sample=pa.table({"x": np.arange(100) % 7 + 0.5}))
    training = condense(profile, 10)
    assert training.size == 1
    assert training.cells.count == 1


def test_of_many_operators_the_cheapest_way_out_tells_tuples_apart():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 1000)
    outcomes = (rng.random((1000, 12)) < 0.5).astype(float)
    outcomes[:, 3], outcomes[:, 7] = kind, 1 - kind
    cost_us = np.full(12, 10.0)
    cost_us[[3, 7]] = 1.0
    sample = pa.table({"kind": pa.array(np.array(["a", "b"])[kind])})
    profile = profile_of(outcomes, cost_us, sample=sample)
    assert behaviours(profile).tolist() == np.where(kind == 0, 4, 8).tolist()
    assert condense(profile, 10).size == 2


def test_the_way_out_pays_for_what_must_come_before():
    profile = profile_of(
        [[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 0]],
        cost_us=[5.0, 1.0, 4.0],
        after=[frozenset(), frozenset({1}), frozenset()],
    )
    assert cheapest_way_out(profile).tolist() == [3, 3, 0, 3]
    dear = profile_of([[1, 0, 0]], [5.0, 1.0, 7.0], profile.after)
    assert cheapest_way_out(dear).tolist() == [2]


@pytest.mark.parametrize(
    ("rows", "size", "least"), [(2000, 10, 20), (4000, 100, 10), (2000, 100, 5), (200, 10, 5)]
)
def test_a_training_tuple_stands_for_some_sampled_ones_at_least(rows, size, least):
    for few, found in ((least - 1, 1), (least, 2)):
        kind = np.arange(rows) < few
        profile = profile_of(
            np.column_stack([kind, ~kind]).astype(float),
            sample=pa.table({"kind": pa.array(np.where(kind, "a", "b"))}),
        )
        assert condense(profile, size).size == found


@pytest.mark.parametrize(("rare", "by_pattern"), [(30, True), (31, False)])
def test_where_most_patterns_are_rare_tuples_are_told_by_their_way_out(rare, by_pattern):
    frequent = np.repeat(np.arange(15), 2)
    pattern = np.concatenate([frequent, np.arange(15, 15 + rare)])
    profile = profile_of((pattern[:, None] >> np.arange(6) & 1).astype(float))
    labels = behaviours(profile)
    assert (labels.tolist() == cheapest_way_out(profile).tolist()) != by_pattern


def test_of_equally_cheap_ways_out_the_first_is_taken():
    profile = profile_of([[0, 0], [1, 0], [1, 1]], cost_us=[2.0, 2.0])
    assert cheapest_way_out(profile).tolist() == [1, 2, 0]


def test_only_attributes_and_thresholds_that_bound_a_region_are_left():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 40, 1000) / 40
    sample = pa.table({"x": x, "noise": rng.uniform(0, 1, 1000)})
    outcomes = np.column_stack([x >= 0.5, x < 0.5]).astype(float)
    training = condense(profile_of(outcomes, sample=sample), 10)
    assert [attribute.name for attribute in training.attributes] == ["x"]
    assert training.attributes[0].edges.tolist() == [0.4875]
    assert training.cells.count == 2


def test_what_operators_do_by_chance_makes_no_training_tuples():
    rng = np.random.default_rng(0)
    sample = pa.table({"x": rng.uniform(0, 1, 1000), "k": rng.choice(list("abcd"), 1000)})
    profile = profile_of((rng.random((1000, 2)) < 0.5).astype(float), sample=sample)
    assert condense(profile, 10).size == 1
    assert condense(profile, 10, chance=1.0).size > 1


def test_every_combination_of_bins_is_a_cell():
    a, b = (each.ravel() for each in np.meshgrid(np.arange(11), np.arange(3)))
    attributes = [Attribute("a", values=tuple(range(10))), Attribute("b", values=("x", "y"))]
    profile = profile_of(np.ones((33, 1)))
    training = TrainingSet(profile, attributes, [], [a, b], {}, np.zeros(33, np.int64), 1)
    assert training.cells.count == 33
