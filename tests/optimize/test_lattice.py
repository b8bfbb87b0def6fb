import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querymesh.optimize.lattice import partition, partition_text, random_neighbour


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(0, 1000))
def test_a_neighbour_is_a_partition_of_the_same_tuples_one_step_away(labels, seed):
    groups = partition([[i for i, x in enumerate(labels) if x == k] for k in range(4)])
    near = random_neighbour(groups, np.random.default_rng(seed))
    assert sorted(t for group in near for t in group) == list(range(len(labels)))
    assert abs(len(near) - len(groups)) <= 1
    assert (near != groups) or len(labels) <= 2


def test_partitions_are_written_as_in_example_2():
    assert partition_text(partition([[0, 1, 2], [3]])) == "123/4"
    assert partition_text(partition([[1, 3], [0], [2]])) == "1/24/3"
