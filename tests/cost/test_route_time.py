import pytest

from querymesh.cost.route_time import LeafCost, Overheads, mesh_cost_us


def test_equation_2_adds_routes_tests_and_one_overhead_for_each_leaf_beyond_the_first():
    overheads = Overheads(node_us=0.5, ruster_us=100.0, window=1000)
    leaves = [LeafCost(0.25, 8.0, 0.5), LeafCost(0.75, 4.0, 1.0)]
    expected = 0.25 * (8 + 0.5) + 0.75 * (4 + 1.0) + 100 * 3 / 1000
    assert mesh_cost_us(leaves, 3, overheads) == pytest.approx(expected)


def test_a_single_route_pays_no_overhead():
    overheads = Overheads(node_us=0.5, ruster_us=100.0, window=1000)
    assert mesh_cost_us([LeafCost(1.0, 8.0, 0.0)], 3, overheads) == 8.0
