import numpy as np
import pyarrow as pa
import pytest

from querymesh.stats.common_costs import with_common_costs
from querymesh.stats.profile import Profile


def profile(costs, matches):
    outcomes = np.array([matches] * 4, dtype=np.float64)
    costs = np.array(costs)
    names = tuple(f"p{j}" for j in range(len(costs)))
    sample = pa.table({"x": range(4)})
    after = (frozenset(),) * len(costs)
    return Profile(sample, names, after, outcomes, costs, costs.copy())


def test_probes_that_do_the_same_work_cost_the_same_whatever_the_clock_said():
    common = with_common_costs(profile([1.0, 1.3, 0.9], [0.5, 0.5, 0.5]), [1, 2, 3])
    assert common.drop_us.tolist() == common.pass_us.tolist() == pytest.approx([1.0] * 3)


def test_matches_cost_as_much_as_being_asked():
    common = with_common_costs(profile([1.0, 2.2], [0.0, 1.0]), [1, 2])
    assert common.drop_us[1] == pytest.approx(2 * common.drop_us[0])


def test_what_does_something_else_keeps_its_cost():
    common = with_common_costs(profile([1.0, 1.1, 30.0, 7.0], [1.0] * 4), [1, 2, 3])
    assert common.drop_us[2:].tolist() == [30.0, 7.0]
    assert common.drop_us[0] == common.drop_us[1]


def test_what_is_far_cheaper_keeps_its_cost_too():
    common = with_common_costs(profile([1.0, 1.1, 0.1], [1.0] * 3), [1, 2, 3])
    assert common.drop_us.tolist() == common.pass_us.tolist() == [1.0, 1.0, 0.1]


@pytest.mark.parametrize(("own", "found"), [(2.0, 1.0), (2.1, 2.1), (0.5, 1.0), (0.45, 0.45)])
def test_costs_up_to_twice_and_down_to_half_of_the_others_are_the_same(own, found):
    common = with_common_costs(profile([1.0, 1.0, own], [0.0] * 3), [1, 2, 3])
    assert common.drop_us.tolist() == [1.0, 1.0, found]


def test_operators_that_are_not_named_keep_their_costs():
    common = with_common_costs(profile([1.1, 1.0, 1.0], [1.0] * 3), [2, 3])
    assert common.drop_us.tolist() == [1.1, 1.0, 1.0]


def test_a_single_probe_and_an_empty_sample_are_left_alone():
    one = profile([1.0, 2.0], [1.0, 1.0])
    assert with_common_costs(one, [2]) is one
    empty = Profile(
        pa.table({"x": pa.array([], pa.int64())}),
        one.names, one.after, np.zeros((0, 2)), one.drop_us, one.pass_us,
    )  # fmt: skip
    assert with_common_costs(empty, [1, 2]) is empty
