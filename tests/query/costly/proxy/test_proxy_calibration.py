"""Thresholds hold recall and precision as often as they say, whatever scores are like."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from querymesh.arrays import Bools, Floats
from querymesh.query.costly.proxy.binomial import chance_of_at_most
from querymesh.query.costly.proxy.calibration import NOTHING, Thresholds, calibrate, fewest_passing
from querymesh.query.costly.proxy.options import Proxy
from soak import SOAK

Draw = Callable[[np.random.Generator, int], tuple[Floats, Bools]]

RUNS = 4000 if SOAK else 200
POPULATION = 400_000


def good(rng: np.random.Generator, n: int) -> tuple[Floats, Bools]:
    """Scores that tell much."""
    answers = rng.random(n) < 0.4
    return np.where(answers, rng.beta(6, 1.5, n), rng.beta(1.5, 6, n)), answers


def rare(rng: np.random.Generator, n: int) -> tuple[Floats, Bools]:
    """Scores that tell something of rows of which few pass."""
    answers = rng.random(n) < 0.15
    return np.where(answers, rng.beta(4, 2, n), rng.beta(1, 3, n)), answers


def blind(rng: np.random.Generator, n: int) -> tuple[Floats, Bools]:
    """Scores that tell nothing."""
    return rng.random(n), rng.random(n) < 0.5


def wrong_way(rng: np.random.Generator, n: int) -> tuple[Floats, Bools]:
    """Scores that are high where they should be low."""
    scores, answers = good(rng, n)
    return scores, ~answers


def coarse(rng: np.random.Generator, n: int) -> tuple[Floats, Bools]:
    """Scores of which many are equal."""
    scores, answers = good(rng, n)
    return np.round(scores, 1), answers


def mostly_true(rng: np.random.Generator, n: int) -> tuple[Floats, Bools]:
    """Rows of which nearly all pass."""
    answers = rng.random(n) < 0.96
    return np.where(answers, rng.beta(3, 2, n), rng.beta(2, 3, n)), answers


class Population:
    """Very many rows of a kind, sorted by answer and score."""

    def __init__(self, scores: Floats, answers: Bools) -> None:
        self.passing, self.others = np.sort(scores[answers]), np.sort(scores[~answers])

    def achieved(self, at: Thresholds) -> tuple[float, float]:
        """Recall and precision where doubtful rows are right."""
        right = len(self.passing) - int(np.searchsorted(self.passing, at.lo, side="left"))
        above = np.searchsorted(self.others, at.hi, side="right")
        not_below = np.searchsorted(self.others, at.lo, side="left")
        wrong = len(self.others) - int(max(above, not_below))
        return right / len(self.passing), right / max(right + wrong, 1)


@pytest.mark.parametrize("draw", [good, rare, blind, wrong_way, coarse, mostly_true])
@pytest.mark.parametrize("size", [150, 1000])
def test_the_guarantee_fails_no_more_often_than_stated(draw: Draw, size: int) -> None:
    """Of the distribution itself, which a very large population stands for."""
    options = Proxy(recall=0.9, precision=0.9, confidence=0.9)
    population = Population(*draw(np.random.default_rng(0), POPULATION))
    found = []
    for run in range(RUNS):
        at = calibrate(options, *draw(np.random.default_rng(run + 1), size))
        found.append(population.achieved(at))
    recall, precision = np.array(found).T
    tolerance = 0.002  # the population is large, not endless
    bad_recall = int(np.count_nonzero(recall < 0.9 - tolerance))
    bad_precision = int(np.count_nonzero(precision < 0.9 - tolerance))
    for failures in (bad_recall, bad_precision):
        # As many failures or more would be seen in one of 1000 such tests, if 5 % were the truth.
        assert failures == 0 or 1 - chance_of_at_most(failures - 1, RUNS, 0.05) > 0.001
    both = int(np.count_nonzero((recall < 0.9 - tolerance) | (precision < 0.9 - tolerance)))
    assert both == 0 or 1 - chance_of_at_most(both - 1, RUNS, 0.10) > 0.001


def test_recall_is_used_up_as_far_as_can_be_known() -> None:
    """Wilks' limit is exact: it is neither broken more often, nor much more careful."""
    options = Proxy(recall=0.9, precision=1.0, confidence=0.9)
    population = Population(*good(np.random.default_rng(0), POPULATION))
    failures = 0
    for run in range(400):
        at = calibrate(options, *good(np.random.default_rng(run + 1), 1000))
        failures += population.achieved(at)[0] < 0.9
    assert 16 <= failures <= 60  # 40 at most are expected, and not much fewer


def test_a_model_that_tells_nothing_decides_little() -> None:
    scores, answers = blind(np.random.default_rng(1), 2000)
    at = calibrate(Proxy(), scores, answers)
    assert np.mean(at.is_true(scores) | at.is_false(scores)) < 0.1


def test_a_model_that_tells_all_decides_all() -> None:
    answers = np.arange(1000) % 3 == 0
    at = calibrate(Proxy(), np.where(answers, 0.9, 0.1), answers)
    assert at.is_true(np.array([0.9])).all()
    assert at.is_false(np.array([0.1])).all()


def test_no_row_is_both_true_and_false() -> None:
    every = np.linspace(0, 1, 1001)
    for run in range(50):
        draw = (good, coarse, mostly_true, wrong_way)[run % 4]
        at = calibrate(Proxy(), *draw(np.random.default_rng(run), 800))
        assert not (at.is_true(every) & at.is_false(every)).any()


def test_with_fewer_passing_rows_than_show_anything_all_is_asked() -> None:
    needed = fewest_passing(Proxy())
    scores = np.concatenate([np.full(needed - 1, 0.9), np.full(5000, 0.1)])
    assert calibrate(Proxy(), scores, scores > 0.5) == NOTHING
    for answers in (np.zeros(500, dtype=bool), np.zeros(0, dtype=bool)):
        assert calibrate(Proxy(), np.full(len(answers), 0.5), answers) == NOTHING


def test_a_side_that_must_be_exact_is_not_decided() -> None:
    scores, answers = good(np.random.default_rng(3), 2000)
    assert calibrate(Proxy(recall=1.0), scores, answers).lo == -math.inf
    assert calibrate(Proxy(precision=1.0), scores, answers).hi == math.inf
    assert calibrate(Proxy(recall=1.0), scores, answers).hi < 1.0


def test_a_predicate_that_passes_nearly_all_may_pass_all() -> None:
    answers = np.arange(2000) % 200 != 0
    at = calibrate(Proxy(), np.random.default_rng(0).random(2000), answers)
    assert at.hi == -math.inf or at.hi < at.lo + 1e-12


def test_scores_that_are_no_numbers_are_asked() -> None:
    scores, answers = good(np.random.default_rng(4), 2000)
    scores[::7] = np.nan
    at = calibrate(Proxy(), scores, answers)
    nan = np.array([np.nan])
    assert not at.is_true(nan).any()
    assert not at.is_false(nan).any()
    says_true, says_false = at.is_true(scores), at.is_false(scores)
    assert np.count_nonzero(says_false & answers) <= 0.05 * np.count_nonzero(answers)
    assert np.count_nonzero(says_true & ~answers) <= 0.05 * np.count_nonzero(answers)
    unknown = calibrate(Proxy(), np.full(2000, np.nan), answers)
    assert not unknown.is_true(nan).any()
    assert not unknown.is_false(nan).any()
