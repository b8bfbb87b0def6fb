import numpy as np
import pytest

from profiles import three_classes
from querymesh.stats.recent import RecentProfile


def test_a_recent_profile_is_bounded_and_mostly_new():
    recent = RecentProfile(most_rows=500)
    recent.add(three_classes(rows=800))
    assert recent.rows == 500
    for _ in range(20):
        recent.add(three_classes(rows=100, seed=1))
    assert recent.rows == 500
    assert recent.added == 2800
    profile = recent.with_costs(np.ones(3), np.ones(3))
    new = {tuple(row) for row in three_classes(rows=100, seed=1).outcomes}
    assert profile.sample.num_rows == 500
    assert {tuple(row) for row in profile.outcomes[-100:]} <= new
    recent.forget()
    assert recent.rows == recent.added == 0
    with pytest.raises(ValueError, match="no rows"):
        recent.with_costs(np.ones(3), np.ones(3))


def test_every_new_row_replaces_an_old_one_and_all_stay_in_their_order():
    recent = RecentProfile(most_rows=10)
    recent.add(three_classes(rows=6))
    assert (recent.rows, recent.added) == (6, 6)
    recent.add(three_classes(rows=4))
    assert recent.rows == 10, "as long as there is room all stay"
    recent.add(three_classes(rows=3))
    ids = recent.with_costs(np.ones(3), np.ones(3)).sample["id"].to_pylist()
    assert len(ids) == 10
    assert ids[-3:] == [0, 1, 2], "the newest are there for certain"
    recent.add(three_classes(rows=40))
    newest = recent.with_costs(np.ones(3), np.ones(3)).sample["id"].to_pylist()
    assert newest == sorted(newest)
    assert len(set(newest)) == 10
    assert recent.added == 53


def test_which_rows_go_is_left_to_chance_and_to_the_seed():
    def left(seed):
        recent = RecentProfile(most_rows=50, seed=seed)
        recent.add(three_classes(rows=400))
        return recent.with_costs(np.ones(3), np.ones(3)).sample["id"].to_pylist()

    assert left(1) == left(1)
    assert left(1) != left(2)
    assert np.mean([np.mean(left(seed)) for seed in range(20)]) == pytest.approx(200, abs=30)


def test_costs_are_those_that_are_given():
    recent = RecentProfile(most_rows=5)
    recent.add(three_classes(rows=5))
    profile = recent.with_costs(np.array([1.0, 2, 3]), np.array([4.0, 5, 6]))
    assert profile.drop_us.tolist() == [1, 2, 3]
    assert profile.pass_us.tolist() == [4, 5, 6]


def test_without_a_seed_it_is_0():
    left = []
    for recent in (RecentProfile(most_rows=5), RecentProfile(most_rows=5, seed=0)):
        recent.add(three_classes(rows=400))
        left.append(recent.with_costs(np.ones(3), np.ones(3)).sample["id"].to_pylist())
    assert left[0] == left[1]
