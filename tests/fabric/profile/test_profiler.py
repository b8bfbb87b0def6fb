import pyarrow as pa
import pytest

import querymesh as qm
from querymesh.errors import PredicateError
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.fabric.profile.profiler import profile_sample


def profiled(query, sample, **tables):
    schemas = {"t": sample.schema, **{name: table.schema for name, table in tables.items()}}
    bound = query.bind(schemas)
    return profile_sample(bound, sample, make_tables(bound, tables))


def test_outcomes_are_dropped_passed_and_fan_out():
    query = qm.query("SELECT * FROM t, u WHERE t.a > 1 AND t.k = u.k AND u.v > t.a")
    sample = pa.table({"a": [1, 2, None, 4], "k": ["x", "x", "y", "z"]})
    table = pa.table({"k": ["x", "x", "y", None], "v": [1, 5, 2, 9]})
    profile = profiled(query, sample, u=table)
    assert profile.names[1] == "u"
    assert profile.outcomes[:, 0].tolist() == [0, 1, 0, 1]
    assert profile.outcomes[:, 1].tolist() == [2, 2, 1, 0]
    assert profile.outcomes[:, 2].tolist() == [0.5, 0.5, 0, 0]
    assert profile.after == (frozenset(), frozenset(), frozenset({2}))
    assert (profile.cost_us > 0).all()


def test_a_guarded_predicate_only_meets_what_its_guard_lets_through():
    seen = []

    def reciprocal_is_large(a):
        seen.extend(a.to_pylist())
        return pa.array([1 / x > 0.3 for x in a.to_pylist()])

    guarded = qm.predicate(reciprocal_is_large, columns=["a"], name="large", after=["a <> 0"])
    query = qm.query("SELECT * FROM t WHERE large(a) AND a <> 0", functions={"large": guarded})
    profile = profiled(query, pa.table({"a": [0, 1, 2, 9, 0]}))
    assert 0 not in seen
    assert profile.outcomes.tolist() == [[0, 0], [1, 1], [1, 1], [0, 1], [0, 0]]


def reciprocal(a):
    return pa.array([1 / x > 0.3 for x in a.to_pylist()])


def test_a_row_that_another_condition_drops_never_raises():
    risky = qm.predicate(reciprocal, columns=["a"], name="risky")
    query = qm.query("SELECT * FROM t WHERE risky(a) AND a <> 0", functions={"risky": risky})
    profile = profiled(query, pa.table({"a": [1, 0, 9]}))
    assert profile.outcomes.tolist() == [[1, 1], [1, 0], [0, 1]]


def test_a_row_that_all_others_let_through_raises_as_it_would_later():
    risky = qm.predicate(reciprocal, columns=["a"], name="risky")
    query = qm.query("SELECT * FROM t WHERE risky(a) AND a < 5", functions={"risky": risky})
    with pytest.raises(PredicateError, match=r"(?s)risky.*a=0"):
        profiled(query, pa.table({"a": [1, 0, 9]}))


def test_a_function_is_called_once_a_row_and_never_again():
    asked = []

    def counting(a):
        asked.extend(a.to_pylist())
        return pa.array([x % 2 == 0 for x in a.to_pylist()])

    fn = qm.predicate(counting, columns=["a"], name="counting")
    query = qm.query("SELECT * FROM t WHERE counting(a) AND a > 3", functions={"counting": fn})
    profiled(query, pa.table({"a": list(range(200))}))
    assert sorted(asked) == list(range(200))


def test_a_declared_cost_replaces_the_measured_one():
    priced = qm.predicate(lambda a: pa.array([True] * len(a)), name="priced", cost_us=1234.0)
    query = qm.query("SELECT * FROM t WHERE priced(a) AND a > 0", functions={"priced": priced})
    assert profiled(query, pa.table({"a": [1, 2]})).cost_us[0] == 1234.0


def test_calibration_measures_positive_small_constants():
    overheads = calibrate()
    assert 0 < overheads.node_us < 10
    assert 0 <= overheads.ruster_us < 10_000
    assert overheads.window == 10_000
