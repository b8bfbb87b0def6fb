import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from querymesh.classify.attributes import choose_attributes
from querymesh.classify.condense import condense, outcome_patterns
from querymesh.stats.profile import Profile

ROWS = 500
RNG = np.random.default_rng(0)
UNTESTED = {
    "an id that only grows": np.arange(ROWS) * 3 + 1,
    "long free text": [f"{'lorem ipsum ' * 9}{i % 7}" for i in range(ROWS)],
    "nearly as many values as rows": [f"user-{i}" for i in range(ROWS)],
    "a date or time": [dt.datetime(2024, 1, 1) + dt.timedelta(minutes=i) for i in range(ROWS)],
    "the same value": [7] * ROWS,
    "NULL in every": pa.nulls(ROWS, pa.string()),
    "have no tests": [[1, 2]] * ROWS,
}


@pytest.mark.parametrize("reason", UNTESTED)
def test_columns_that_would_only_be_learned_by_heart_are_left_out_with_a_reason(reason):
    chosen, left_out = choose_attributes(pa.table({"c": UNTESTED[reason]}))
    assert chosen == []
    assert left_out[0].name == "c"
    assert reason in left_out[0].reason


@pytest.mark.parametrize(
    "values",
    [
        RNG.normal(size=ROWS),
        RNG.integers(0, 10_000, ROWS),
        RNG.permutation(ROWS),
        RNG.choice(["a", "b", None], ROWS),
        RNG.random(ROWS) < 0.5,
        [f"city-{i % 90}" for i in range(ROWS)],
    ],
)
def test_measures_and_categories_are_kept(values):
    chosen, left_out = choose_attributes(pa.table({"c": pa.array(values)}))
    assert [a.name for a in chosen] == ["c"], left_out


def test_bins_follow_the_edges_with_null_first_and_nan_last():
    column = pa.array([None, float("nan"), 1.0, 2.0, 2.5, -np.inf, np.inf])
    (attribute,), _ = choose_attributes(pa.table({"x": column}))
    codes = attribute.codes(column)
    assert codes[0] == 0
    assert codes[1] == attribute.bins - 1
    assert codes[5] == 1
    assert np.isfinite(attribute.edges).all()
    assert codes[2] < codes[3] < codes[4]


def test_condensed_tuples_keep_their_densities_and_follow_the_outcomes():
    kind = np.repeat([0, 1], [300, 100])
    outcomes = np.column_stack([kind == 0, kind == 1]).astype(float)
    sample = pa.table({"kind": np.array(["a", "b"])[kind], "noise": RNG.normal(size=400)})
    profile = Profile(sample, ("p", "q"), (frozenset(),) * 2, outcomes, np.ones(2), np.ones(2))
    training = condense(profile, 10)
    assert training.size == 2
    assert sorted(training.weights.tolist()) == [100, 300]


def test_the_rarest_outcome_patterns_share_a_label():
    outcomes = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(float)
    assert len(np.unique(outcome_patterns(outcomes))) == 16


def only(values, kind=None):
    """The one column as an attribute, or the reason why it is none."""
    chosen, left_out = choose_attributes(pa.table({"c": pa.array(values, kind)}))
    return chosen[0] if chosen else left_out[0].reason


@pytest.mark.parametrize(("distinct", "numeric"), [(16, False), (17, True)])
def test_a_few_whole_numbers_are_categories_and_more_are_ranges(distinct, numeric):
    values = RNG.permutation(np.arange(200) % distinct)
    attribute = only(values)
    assert attribute.numeric == numeric
    assert attribute.bins == distinct + 1, "one for each, and NULL's"
    assert only(values, pa.float64()).numeric, "decimals are never categories"


def test_edges_lie_halfway_between_neighbours_and_the_lower_bin_holds_its_edge():
    attribute = only([4.0, 1.0, 2.0, 1.0])
    assert attribute.edges.tolist() == [1.5, 3.0]
    codes = attribute.codes(pa.array([1.5, 1.6, 3.0, 3.1, None, -9.0, 9.0]))
    assert codes.tolist() == [1, 2, 2, 3, 0, 1, 3]


@pytest.mark.parametrize(("distinct", "edges"), [(65, 64), (66, 64), (1000, 64)])
def test_of_many_numbers_the_edges_are_at_even_quantiles(distinct, edges):
    numbers = RNG.permutation(distinct).astype(float)
    found = only(numbers).edges
    assert len(found) == edges
    below = (
        np.arange(64) if distinct == 65 else (np.arange(1, 65) / 65 * (distinct - 1)).astype(int)
    )
    assert found.tolist() == (below + 0.5).tolist()


@pytest.mark.parametrize(("ups", "grows"), [(98, True), (97, False), (2, True), (3, False)])
def test_ids_may_jump_back_now_and_then(ups, grows):
    numbers = np.cumsum([0] + [7] * ups + [-3] * (100 - ups))
    assert len(np.unique(numbers)) > 0.9 * 101
    assert (only(numbers) == "an id that only grows with arrival") == grows


@pytest.mark.parametrize(("distinct", "grows"), [(90, True), (89, False)])
def test_numbers_that_begin_again_are_no_ids(distinct, grows):
    numbers = np.concatenate([np.arange(distinct), np.arange(100 - distinct)])
    assert (only(numbers) == "an id that only grows with arrival") == grows


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([f"{i}" for i in range(64)], 64),
        ([f"{i}" for i in range(65)], "nearly as many values as rows"),
        ([f"{i}" for i in range(65)] * 2, 64),
        (["x" * 64, "y" * 64], 2),
        (["x" * 65, "y" * 64], "long free text"),
        (["x", "x", None], 1),
        (["x", "x", "x"], "the same value in every sampled row"),
    ],
)
def test_texts_are_categories_up_to_their_number_and_length(values, kept):
    found = only(values)
    assert (found if isinstance(found, str) else len(found.values)) == kept


def test_of_too_many_categories_the_most_frequent_are_kept():
    values = [f"{i:03}" for i in range(100)] * 2 + ["099", "098"] * 5
    attribute = only(values)
    assert attribute.values == (*(f"{i:03}" for i in range(62)), "098", "099")
    assert attribute.codes(pa.array(["000", "098", "070", None])).tolist() == [1, 63, 0, 0]


def test_a_number_with_one_value_is_constant_even_beside_null():
    assert only([7, None, 7]) == "the same value in every sampled row"
    assert only([None, None], pa.int64()) == "the same value in every sampled row"


def test_outcome_patterns_are_numbered_by_how_frequent_they_are():
    outcomes = np.array([[0, 1.0]] + [[1, 0.4]] * 2 + [[2, 1], [3, 1], [7, 0.6]])
    assert outcome_patterns(outcomes).tolist() == [2, 1, 1, 0, 0, 0], "two or more is many"


def test_numbers_that_stay_the_same_now_and_then_are_no_ids():
    growing = np.repeat(np.arange(90), [2] * 10 + [1] * 80)
    assert only(growing).numeric
    assert only(growing[::-1]).numeric
