import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chi2
from sklearn.metrics import mutual_info_score

from querymesh.classify.gain import (
    chance_of_gain,
    explained_variance,
    gain_ratio,
    information_gain,
)

TABLE_1 = {"O1": [0.32, 0.31, 0.27], "O2": [0.10, 0.20, 0.90], "O3": [0.55, 0.65, 0.60]}


@pytest.mark.parametrize(("operator", "ratio"), [("O1", 0.001), ("O2", 0.264), ("O3", 0.003)])
@pytest.mark.parametrize("tuples", [1, 100, 10_000])
def test_the_equations_on_the_papers_table_1(operator, ratio, tuples):
    arrived = np.full(3, float(tuples))
    assert gain_ratio(arrived, arrived * TABLE_1[operator]) == pytest.approx(ratio, abs=5e-4)


def test_gain_ratio_by_hand():
    """Entropy 1, none left after the split, which itself takes 1.5 bits."""
    assert gain_ratio(np.array([2.0, 1.0, 1.0]), np.array([2.0, 0.0, 0.0])) == pytest.approx(
        1 / 1.5
    )


verdicts = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=60)


@given(verdicts)
def test_gain_ratio_is_mutual_information_by_the_entropy_of_the_attribute(drawn):
    values, passed = (np.array(column) for column in zip(*drawn, strict=True))
    arrived = np.bincount(values, minlength=5).astype(float)
    came_out = np.bincount(values, weights=passed, minlength=5)
    shares = arrived[arrived > 0] / len(values)
    split = -(shares * np.log(shares)).sum()
    wanted = mutual_info_score(values, passed) / split if split > 0 else 0.0
    assert gain_ratio(arrived, came_out) == pytest.approx(wanted, abs=1e-9)


@given(verdicts)
def test_gain_ratio_lies_between_0_and_1_and_does_not_ask_which_partition_is_which(drawn):
    arrived, passed = np.zeros(5), np.zeros(5)
    for value, verdict in drawn:
        arrived[value] += 1
        passed[value] += verdict
    ratio = gain_ratio(arrived, passed)
    assert 0 <= ratio <= 1 + 1e-12
    assert gain_ratio(arrived[::-1], passed[::-1]) == pytest.approx(ratio)
    assert gain_ratio(arrived, arrived - passed) == pytest.approx(ratio), "drops tell as much"


def test_what_has_one_value_or_no_tuples_says_nothing():
    assert gain_ratio(np.zeros(3), np.zeros(3)) == 0
    assert gain_ratio(np.array([9.0, 0.0]), np.array([4.0, 0.0])) == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=2, max_size=50))
def test_explained_variance_is_a_one_way_decomposition_less_chance(drawn):
    values, fan_out = (np.array(column) for column in zip(*drawn, strict=True))
    groups = [fan_out[values == value] for value in np.unique(values)]
    n, k = len(fan_out), len(groups)
    assume(n > k > 1 and fan_out.std() > 0)
    between = sum(len(g) * (g.mean() - fan_out.mean()) ** 2 for g in groups)
    within = sum(((g - g.mean()) ** 2).sum() for g in groups) / (n - k)
    epsilon_squared = (between - (k - 1) * within) / ((fan_out - fan_out.mean()) ** 2).sum()
    found = explained_variance(
        np.bincount(values, minlength=4).astype(float),
        np.bincount(values, weights=fan_out, minlength=4),
        float((fan_out**2).sum()),
    )
    assert found == pytest.approx(max(0.0, epsilon_squared), abs=1e-9)


def test_a_fan_out_that_is_always_the_same_has_nothing_to_explain():
    assert explained_variance(np.array([5.0, 5.0]), np.array([15.0, 15.0]), 90.0) == 0
    assert explained_variance(np.array([5.0, 0.0]), np.array([15.0, 0.0]), 90.0) == 0
    assert explained_variance(np.zeros(2), np.zeros(2), 0.0) == 0


def test_an_attribute_without_influence_explains_about_nothing_however_many_partitions():
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(200):
        values, fan_out = rng.integers(0, 24, 150), rng.poisson(2, 150)
        shares.append(
            explained_variance(
                np.bincount(values, minlength=25).astype(float),
                np.bincount(values, weights=fan_out, minlength=25),
                float((fan_out**2).sum()),
            )
        )
    assert np.mean(shares) < 0.04, "less than the usual threshold"


@pytest.mark.parametrize("degrees", [1, 2, 3, 8])
@pytest.mark.parametrize("gain_bits", [1.0, 3.0, 8.0, 15.0])
def test_the_chance_of_a_gain_is_the_tail_of_chi_squared_times_the_trials(gain_bits, degrees):
    tail = chi2.sf(2 * np.log(2) * gain_bits, degrees)
    assert chance_of_gain(gain_bits, degrees, 1) == pytest.approx(tail, rel=0.15, abs=0.01)
    assert chance_of_gain(gain_bits, degrees, 7) == pytest.approx(
        min(1.0, 7 * chance_of_gain(gain_bits, degrees, 1))
    )


def test_no_gain_and_no_degrees_of_freedom_are_chance_for_sure():
    assert chance_of_gain(0.0, 1, 1) == 1.0
    assert chance_of_gain(50.0, 0, 1) == 1.0
    assert chance_of_gain(50.0, 1, 1) < 1e-9


@pytest.mark.parametrize(("gain_bits", "degrees"), [(8.0, 3), (15.0, 8)])
def test_in_the_far_tail_the_chance_is_right_within_some_percent(gain_bits, degrees):
    tail = chi2.sf(2 * np.log(2) * gain_bits, degrees)
    assert chance_of_gain(gain_bits, degrees, 1) == pytest.approx(tail, rel=0.03)


def test_where_each_tuple_has_a_partition_of_its_own_nothing_is_explained():
    assert explained_variance(np.ones(2), np.array([0.0, 4.0]), 16.0) == 0.0


def test_a_large_fan_out_that_never_changes_is_not_explained_by_rounding():
    for each in (1234567.89, 1e9 / 3, 0.1):
        arrived = np.array([3.0, 7.0, 11.0])
        assert explained_variance(arrived, each * arrived, 21 * each**2) == 0.0


def test_information_gain_by_hand():
    """Eight tuples of 1 bit each; of either side 4 tuples of 2 - 3/4 log2 3 bits."""
    left, right = np.array([[3.0, 1.0]]), np.array([[1.0, 3.0]])
    side = 4 * (2 - 0.75 * np.log2(3))
    assert information_gain(left, right) == pytest.approx([8 - 2 * side])


@pytest.mark.parametrize("weight", [0.25, 0.5])
def test_tuples_that_weigh_less_than_one_tell_as_much(weight):
    assert gain_ratio(np.full(2, weight), np.array([weight, 0.0])) == pytest.approx(1)


@pytest.mark.parametrize(("whole", "share"), [(0.5e-12, 0.0), (1.5e-12, 1.0)])
def test_a_fan_out_of_next_to_nothing_has_nothing_to_explain(whole, share):
    each = (whole / 25) ** 0.5  # of 50 tuples, none of 50 others
    found = explained_variance(np.array([50.0, 50.0]), np.array([0.0, 50 * each]), 50 * each**2)
    assert found == pytest.approx(share)


def test_rounding_of_large_sums_is_no_variance():
    arrived, each = np.array([19.0, 4.0, 3.0]), 777777.7
    squares = 26 * each**2
    mean = float((each * arrived).sum()) / 26
    assert squares - 26 * mean**2 > 0, "but for rounding it is 0"
    assert explained_variance(arrived, each * arrived, squares) == 0.0


def test_an_attribute_that_tells_nothing_has_no_ratio_below_0():
    assert gain_ratio(np.array([30.0, 60.0]), np.array([10.0, 20.0])) == 0.0
