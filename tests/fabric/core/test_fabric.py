from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import querymesh as qm
from equivalence import FUNCTIONS, Case, as_multiset, cases, in_batches, random_mesh, rows_of
from querymesh.errors import PredicateError
from querymesh.fabric.core import operators
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.fabric.profile.profiler import profile_sample
from querymesh.mesh.mesh import written_mesh, written_order
from querymesh.optimize.train.train import train_mesh
from querymesh.query.costly.in_run import in_run
from querymesh.runtime.job_functions import JobFunctions
from soak import random_cases


def run(case: Case, mesh, batch_rows=7) -> tuple[pa.Table, Fabric]:
    bound = case.bound
    fabric = Fabric(bound, tables_of(case, bound))
    router = MeshRouter(mesh)
    source = case.inputs[bound.source.name]
    out = [
        result for batch in in_batches(source, batch_rows) for result in fabric.run(batch, router)
    ]
    return pa.Table.from_batches(out, bound.output_schema), fabric


def tables_of(case: Case, bound):
    by_alias = {r.alias: case.inputs[r.name] for r in bound.query.relations}
    return make_tables(bound, by_alias)


@given(cases(), st.data(), st.integers(1, 40))
@random_cases(100, 150)
def test_any_mesh_on_any_batching_gives_the_multiset_of_duckdb(case, data, batch_rows):
    mesh = random_mesh(data.draw, case.bound)
    out, _ = run(case, mesh, batch_rows)
    assert as_multiset(out) == case.expected()


@given(cases(most=60))
@settings(max_examples=40, deadline=None)
def test_a_mesh_trained_on_the_data_gives_the_multiset_of_duckdb(case):
    bound = case.bound
    source = case.inputs["Src"]
    if source.num_rows == 0:
        return
    profile = profile_sample(bound, source, tables_of(case, bound))
    mesh = train_mesh(case.query, profile, calibrate())
    assert as_multiset(run(case, mesh)[0]) == case.expected()


@given(cases(), st.data())
@settings(max_examples=40, deadline=None)
def test_a_large_fan_out_is_cut_into_pieces_without_changing_the_result(case, data):
    mesh = random_mesh(data.draw, case.bound)
    before = operators.MOST_ROWS
    operators.MOST_ROWS = 3
    try:
        out, _ = run(case, mesh)
    finally:
        operators.MOST_ROWS = before
    assert as_multiset(out) == case.expected()


def simple(conditions, source):
    query = qm.query(f"SELECT * FROM Src s WHERE {conditions}", functions=FUNCTIONS)
    return Case(query.sql, query.sql, {"Src": source}, True, False)


def test_evaluations_are_counted_per_operator_and_leaf():
    source = rows_of(np.random.default_rng(0), 1000)
    case = simple("s.a > 3 AND is_even(s.a)", source)
    mesh = written_order(case.query, ("s.a > 3", "is_even"), case.bound.precedence)
    out, fabric = run(case, mesh, batch_rows=100)
    metrics = fabric.metrics
    survivors = sum(a is not None and a > 3 for a in source["a"].to_pylist())
    assert metrics.rows_in == 1000
    assert metrics.windows == 10
    assert metrics.by_operator()[1].evaluations == 1000
    assert metrics.by_operator()[2].evaluations == survivors
    assert metrics.evaluations == 1000 + survivors
    assert metrics.rows_out == out.num_rows == metrics.by_operator()[2].passed
    assert metrics.leaf_rows == {(0, 0): 1000}


def test_a_ruster_leaves_when_it_is_empty():
    source = rows_of(np.random.default_rng(0), 50)
    case = simple("s.a > 100 AND is_even(s.a)", source)
    mesh = written_order(case.query, ("a", "b"), case.bound.precedence)
    _, fabric = run(case, mesh, batch_rows=50)
    assert 2 not in fabric.metrics.by_operator()


def test_filters_keep_the_order_of_rows():
    source = rows_of(np.random.default_rng(0), 500)
    case = simple("s.a > 3 AND s.ok", source)
    mesh = written_order(case.query, ("a", "b"), case.bound.precedence)
    ids = run(case, mesh, batch_rows=64)[0]["id"].to_pylist()
    assert ids == sorted(ids)


def fails_on_seven(a: pa.Array) -> pa.Array:
    if 7 in a.to_pylist():
        raise ValueError("seven")
    return pa.array([True] * len(a))


def fabric_of(predicate, **kwargs):
    query = qm.query("SELECT * FROM t WHERE p(a)", functions={"p": predicate})
    batch = pa.record_batch({"a": [1, 7, None, 3, 7]})
    bound = query.bind({"t": batch.schema})
    fabric = Fabric(bound, **kwargs)
    router = MeshRouter(written_order(query, ("p",), bound.precedence))
    return fabric, lambda: pa.Table.from_batches(fabric.run(batch, router), bound.output_schema)


def test_a_predicate_that_raises_stops_with_its_name_the_row_and_the_traceback():
    _, go = fabric_of(qm.predicate(fails_on_seven, columns=["a"], name="p"))
    with pytest.raises(PredicateError, match=r"(?s)\bp\b.*7.*ValueError: seven") as caught:
        go()
    assert "on_error" in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError)


def test_on_error_drop_counts_and_drops_only_the_guilty_rows():
    fabric, go = fabric_of(qm.predicate(fails_on_seven, columns=["a"], name="p"), on_error="drop")
    assert go()["a"].to_pylist() == [1, None, 3]
    assert fabric.metrics.errors_dropped == 2
    assert fabric.metrics.by_operator()[1].errors == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t WHERE p(a) OR a > 0 OR a IS NULL",
        "SELECT a FROM t WHERE (p(a) OR TRUE) AND (a IS NULL OR a < 100)",
        "SELECT a, p(a) AS q FROM t WHERE a IS NULL OR a < 100",
    ],
)
def test_a_row_on_which_a_function_raised_is_dropped_whatever_surrounds_the_call(sql):
    functions = {"p": qm.predicate(fails_on_seven, columns=["a"], name="p")}
    batch = pa.record_batch({"a": [1, 7, None, 3, 7]})
    query = qm.query(sql, functions=functions)
    bound = query.bind({"t": batch.schema})
    fabric = Fabric(bound, on_error="drop")
    names = tuple(op.name for op in bound.operators)
    router = MeshRouter(written_order(query, names, bound.precedence))
    out = pa.Table.from_batches(fabric.run(batch, router), bound.output_schema)
    assert out["a"].to_pylist() == [1, None, 3]
    assert fabric.metrics.errors_dropped == 2
    guilty = [index for index, visits in fabric.metrics.by_operator().items() if visits.errors]
    assert guilty in ([1], []), "charged to the operator that called it, or to the output"


@pytest.mark.parametrize(
    "result", [[True], [1, 2, 3, 4, 5], "yes", None, pa.array([1.0] * 5), [True] * 6]
)
def test_a_predicate_that_returns_the_wrong_length_or_type_is_named(result):
    _, go = fabric_of(qm.predicate(lambda a: result, columns=["a"], name="p"))
    with pytest.raises(PredicateError, match=r"\bp\b"):
        go()


@pytest.mark.parametrize(
    "condition",
    [
        "f(x)", "NOT f(x)", "f(x) IS NULL", "coalesce(f(x), true)", "score(x) > 0.5",
        "CASE WHEN f(x) THEN false ELSE true END", "score(x) IS NULL",
    ],
)  # fmt: skip
@pytest.mark.parametrize("then", ["keep", "drop"])
def test_rows_that_a_budget_cannot_pay_for_pass_or_do_not_whatever_surrounds_the_call(
    condition, then
):
    f = qm.predicate(lambda x: x > 2, name="f", vectorised=False, price=1)
    score = qm.function(
        lambda x: x / 5, returns=pa.float64(), name="score", vectorised=False, price=1
    )
    text = f"SELECT * FROM Src WHERE {condition}"
    query = qm.query(text, functions={"f": f, "score": score})
    source = pa.table({"x": [1, 2, 3, None]})
    query = replace(query, functions=in_run(query.functions))
    bound = query.bind({"Src": source.schema})
    job = JobFunctions(bound.query.functions, qm.Budget(0, then=then))
    fabric = Fabric(bound, None)
    passed, failed = fabric.decide(source.to_batches()[0], MeshRouter(written_mesh(bound)))
    assert passed.tolist() == [then == "keep"] * 4
    assert not failed
    assert job.budget is not None
