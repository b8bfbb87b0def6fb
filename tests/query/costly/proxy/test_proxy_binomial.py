"""Exact binomial chances, against another implementation."""

import pytest

from querymesh.query.costly.proxy.binomial import chance_of_at_most, errors_allowed, fewest_right


def test_chances_agree_with_another_implementation() -> None:
    binom = pytest.importorskip("scipy.stats").binom
    for trials in (0, 1, 7, 72, 1000, 50_000):
        for rate in (0.001, 0.05, 0.5, 0.97):
            for errors in {0, 1, trials // 20, trials - 1, trials}:
                if 0 <= errors <= trials:
                    expected = binom.cdf(errors, trials, rate)
                    assert chance_of_at_most(errors, trials, rate) == pytest.approx(expected, 1e-9)


def test_the_most_errors_are_allowed_that_the_risk_allows() -> None:
    for trials in (10, 72, 300, 2000):
        allowed = errors_allowed(0, 0.05, 0.025, of_all=trials)
        assert allowed == -1 or chance_of_at_most(allowed, trials, 0.05) <= 0.025
        assert chance_of_at_most(allowed + 1, trials, 0.05) > 0.025


def test_errors_beside_right_ones_count_as_trials() -> None:
    for right in (10, 72, 300, 2000):
        allowed = errors_allowed(right, 0.05, 0.025)
        assert allowed == -1 or chance_of_at_most(allowed, right + allowed, 0.05) <= 0.025
        assert chance_of_at_most(allowed + 1, right + allowed + 1, 0.05) > 0.025


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3, 1.0])
def test_so_many_without_error_are_the_fewest_that_show_anything(rate: float) -> None:
    fewest = fewest_right(rate, 0.025)
    assert errors_allowed(0, rate, 0.025, of_all=fewest) >= 0
    assert errors_allowed(0, rate, 0.025, of_all=fewest - 1) == -1
