import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.classify.tree import Leaf, Member, Split
from querymesh.cost.route_time import Overheads
from querymesh.fabric.core.metrics import Metrics, Visits
from querymesh.optimize.train.describe import describe
from querymesh.query.parse.query import query
from querymesh.stats.profile import Profile
from querymesh_lab.bench.limits import counted, designed_profile, effort_of_mesh, limits


def profile_of(outcomes, cost_us, table=None):
    outcomes = np.asarray(outcomes, dtype=float)
    names = tuple(f"p{k + 1}" for k in range(outcomes.shape[1]))
    table = table if table is not None else pa.table({"id": np.arange(len(outcomes))})
    after = (frozenset(),) * len(names)
    return Profile(table, names, after, outcomes, *[np.asarray(cost_us, dtype=float)] * 2)


def test_the_limits_of_a_case_worked_by_hand():
    # Class 0 is dropped by p1 alone, class 1 by p2 alone, and one row in five passes both.
    outcomes = [[0, 1], [0, 1], [1, 0], [1, 0], [1, 1]]
    found = limits(profile_of(outcomes, [1.0, 3.0]), np.array([0, 0, 1, 1, 1]))
    assert found.single_route == (1, 2)
    assert found.single.evaluations == pytest.approx(8 / 5)
    assert found.single.us == pytest.approx((5 * 1 + 3 * 3) / 5)
    assert found.oracle_routes == ((1, 2), (2, 1))
    assert found.oracle.evaluations == pytest.approx((2 * 1 + 2 * 1 + 2) / 5)
    assert found.oracle.us == pytest.approx((2 * 1 + 2 * 3 + 4) / 5)
    assert found.bound == found.oracle


@given(
    rows=st.integers(1, 60),
    operators=st.integers(1, 5),
    classes=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_no_limit_is_beyond_the_next(rows, operators, classes, seed):
    rng = np.random.default_rng(seed)
    profile = profile_of(rng.random((rows, operators)) < 0.6, rng.random(operators) + 0.1)
    found = limits(profile, rng.integers(0, classes, rows))
    assert found.bound.us <= found.oracle.us + 1e-9
    assert found.oracle.us <= found.single.us + 1e-9
    assert found.bound.evaluations <= found.oracle.evaluations + 1e-9
    assert 1 <= found.single.evaluations <= operators


def test_without_known_classes_there_is_no_oracle():
    found = limits(profile_of([[1, 0]], [1.0, 1.0]))
    assert found.oracle is None
    assert found.details(("p1", "p2"))["oracle"] is None


def test_a_mesh_that_knows_the_classes_costs_what_the_oracle_costs():
    outcomes = [[0, 1], [0, 1], [1, 0], [1, 0]]
    table = pa.table({"kind": ["a", "a", "b", "b"]})
    profile = profile_of(outcomes, [1.0, 1.0], table)
    tree = Split(Member("kind", ("a",)), Leaf(0), Leaf(1))
    free = Overheads(0.0, 0.0, 1)
    mesh = describe(query("SELECT * FROM t"), profile, tree, ((1, 2), (2, 1)), (1, 2), (), free)
    assert effort_of_mesh(profile, mesh) == limits(profile, np.array([0, 0, 1, 1])).oracle


def test_counted_effort_is_per_row_of_the_input():
    metrics = Metrics(rows_in=10)
    metrics.visits[0, 0, 1] = Visits(evaluations=10)
    metrics.visits[0, 1, 2] = Visits(evaluations=4)
    effort = counted(metrics, profile_of([[1, 1]], [2.0, 5.0]))
    assert (effort.evaluations, effort.us) == (1.4, 4.0)


def test_a_designed_profile_has_the_design_and_the_measured_costs():
    measured = profile_of([[1, 1]], [2.0, 5.0])
    passes = np.array([[True, False], [False, True], [True, True]])
    designed = designed_profile(measured, pa.table({"id": [1, 2, 3]}), passes)
    assert designed.rows == 3
    assert designed.cost_us.tolist() == [2.0, 5.0]
    assert designed.outcomes.tolist() == passes.astype(float).tolist()
