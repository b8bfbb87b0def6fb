import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.optimize.train.folds import JUDGES


@pytest.mark.parametrize("judge", JUDGES)
@given(st.integers(1, 60), st.floats(0, 0.9), st.integers(2, 8), st.integers(0, 99))
def test_no_fold_judges_by_a_row_it_learned_from(judge, rows, holdout, folds, seed):
    for fold in JUDGES[judge](rows, holdout, folds, np.random.default_rng(seed)):
        assert not set(fold.seen) & set(fold.unseen)
        assert set(fold.seen) | set(fold.unseen) == set(range(rows))
        assert len(fold.seen) > 0


@given(st.integers(2, 60), st.floats(1e-9, 0.9))
def test_a_holdout_keeps_a_row_back_however_small_its_share(rows, holdout):
    (fold,) = JUDGES["holdout"](rows, holdout, 5, np.random.default_rng(0))
    assert len(fold.unseen) == max(1, int(rows * holdout))


def test_no_holdout_keeps_nothing_back():
    (fold,) = JUDGES["holdout"](9, 0.0, 5, np.random.default_rng(0))
    assert len(fold.unseen) == 0


def test_cross_validation_judges_by_every_row_once():
    folds = JUDGES["cross-validation"](23, 0.0, 5, np.random.default_rng(0))
    assert sorted(np.concatenate([fold.unseen for fold in folds])) == list(range(23))
    assert len(folds) == 5


def test_the_bootstrap_draws_as_many_rows_with_replacement():
    folds = JUDGES["bootstrap"](1000, 0.0, 4, np.random.default_rng(0))
    assert [len(fold.seen) for fold in folds] == [1000] * 4
    assert all(330 < len(fold.unseen) < 410 for fold in folds)  # 1/e of them
