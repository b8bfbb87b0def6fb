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
