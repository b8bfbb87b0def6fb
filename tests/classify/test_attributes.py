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
