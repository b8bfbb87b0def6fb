import numpy as np
import pytest

from querymesh.stats.drift import DriftDetector


def batch_of(rng, rate, rows=1000):
    return {(0, 1): (rows, int(rng.binomial(rows, rate)))}


def test_a_shift_is_seen_at_once_and_a_stable_rate_never():
    rng = np.random.default_rng(2)
    detector = DriftDetector(half_life_rows=2000)
    for _ in range(200):
        assert detector.observe(1000, batch_of(rng, 0.3)) == []
    seen = [detector.observe(1000, batch_of(rng, 0.7)) for _ in range(3)]
    (shift,) = next(filter(None, seen))
    assert (shift.leaf, shift.operator) == (0, 1)
    assert shift.before == pytest.approx(0.3, abs=0.01)
    assert shift.now > 0.4


def test_batches_that_always_differ_are_no_shift():
    rng = np.random.default_rng(3)
    detector = DriftDetector(half_life_rows=1000)
    shifts = [detector.observe(1000, batch_of(rng, rng.uniform(0.2, 0.6))) for _ in range(200)]
    assert sum(map(len, shifts[4:])) <= 2


def test_a_slow_drift_adds_up_until_it_is_seen():
    rng = np.random.default_rng(4)
    detector = DriftDetector(half_life_rows=2000)
    assert any(detector.observe(1000, batch_of(rng, 0.3 + 0.002 * k)) for k in range(150))


@pytest.mark.parametrize(("now", "shifts"), [(0.345, 0), (0.355, 1)])
def test_a_shift_too_small_to_matter_is_none_however_sure(now, shifts):
    rows = 1_000_000
    detector = DriftDetector(half_life_rows=rows // 10)
    for _ in range(10):
        detector.observe(rows, {(0, 1): (rows, round(0.3 * rows))})
    assert len(detector.observe(rows, {(0, 1): (rows, round(now * rows))})) == shifts


@pytest.mark.parametrize(("now", "shifts"), [(5.2, 0), (5.3, 1)])
def test_of_a_fan_out_a_shift_counts_by_its_size(now, shifts):
    rows = 1_000_000
    detector = DriftDetector(half_life_rows=rows // 10)
    for _ in range(10):
        detector.observe(rows, {(0, 1): (rows, 5 * rows)})
    assert len(detector.observe(rows, {(0, 1): (rows, round(now * rows))})) == shifts


@pytest.mark.parametrize("batches", [3, 4])
def test_a_reference_of_few_batches_knows_no_shift(batches):
    detector = DriftDetector(half_life_rows=1000)
    for _ in range(batches):
        detector.observe(10_000, {(0, 1): (10_000, 3000)})
    shifts = detector.observe(10_000, {(0, 1): (10_000, 9000)})
    assert bool(shifts) == (batches == 4)


def test_each_leaf_and_operator_has_its_own_rate_and_one_without_tuples_has_none():
    detector = DriftDetector(half_life_rows=1000)
    for _ in range(6):
        detector.observe(10_000, {(0, 1): (10_000, 3000), (1, 2): (10_000, 9000), (2, 1): (0, 0)})
    now = {(0, 1): (10_000, 3000), (1, 2): (10_000, 1000), (2, 1): (0, 0)}
    (shift,) = detector.observe(10_000, now)
    assert (shift.leaf, shift.operator) == (1, 2)
    assert shift.before == pytest.approx(0.9)
    detector.restart()
    assert detector.observe(10_000, {(1, 2): (10_000, 9000)}) == []


def shifts_after(shares, now, rows, half_life_rows=1):
    """The shifts that a batch shows after others; by default only the last counts as recent."""
    detector = DriftDetector(half_life_rows)
    for share in shares:
        detector.observe(rows, {(0, 1): (rows, round(share * rows))})
    return detector.observe(rows, {(0, 1): (rows, round(now * rows))})


@pytest.mark.parametrize(("now", "shifts"), [(0.358, 0), (0.375, 1), (0.242, 0), (0.225, 1)])
def test_a_shift_is_beyond_four_and_a_half_standard_errors(now, shifts):
    # One of 1,000 rows at 0.3 is 0.0145.
    assert len(shifts_after([0.3] * 200, now, 1000)) == shifts


@pytest.mark.parametrize(
    ("now", "rows", "shifts"),
    [(0.61, 100_000, 0), (0.64, 100_000, 1), (0.62, 100, 0), (0.65, 100, 1)],
)
def test_what_batches_differ_by_anyway_is_told_by_neighbours_less_their_noise(now, rows, shifts):
    assert len(shifts_after([0.35, 0.25] * 10, now, rows)) == shifts


def test_the_recent_mean_forgets_half_in_a_half_life():
    (shift,) = shifts_after([0.3] * 12, 0.9, rows=1000, half_life_rows=1000)
    assert shift.now == pytest.approx(0.6, abs=0.001)
