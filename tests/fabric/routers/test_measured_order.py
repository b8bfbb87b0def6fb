"""A task that finds its order by itself: fewer calls, the same rows, the same failures."""

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import querymesh as qm
from querymesh.errors import PredicateError
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.routers.measured_order import (
    FIRST_ROWS,
    Measured,
    MeasuredOrder,
    best_order,
    cost_s,
)
from querymesh.mesh.mesh import written_mesh
from querymesh.query.parse.query import where

ROWS = 20_000


def bound_to(*predicates):
    return where(predicates).bind({"input": pa.schema([("n", pa.int64())])})


def numbers(rows=ROWS):
    return pa.record_batch({"n": pa.array(range(rows), pa.int64())})


def decided(bound, batch, on_error="raise"):
    fabric, router = Fabric(bound, None, on_error), MeasuredOrder(written_mesh(bound))
    passed, failed = fabric.decide(batch, router)
    return passed, failed, {k: v.evaluations for k, v in fabric.metrics.by_operator().items()}


@qm.predicate(columns=["n"], vectorised=True)
def slow_and_true(n):
    time.sleep(len(n) * 2e-6)
    return pa.array(np.ones(len(n), dtype=bool))


@qm.predicate(columns=["n"], vectorised=True)
def seldom(n):
    return pa.array(n.to_numpy() % 100 == 0)


@qm.predicate(columns=["n"], vectorised=True, after=["slow_and_true"])
def seldom_and_later(n):
    return pa.array(n.to_numpy() % 100 == 0)


def test_what_is_quick_and_drops_much_comes_first_once_the_first_rows_have_shown_it():
    passed, _, evaluations = decided(bound_to(slow_and_true, seldom), numbers())
    assert passed.sum() == ROWS // 100
    assert evaluations[2] == ROWS
    assert evaluations[1] <= FIRST_ROWS + ROWS // 100 + 1


def test_what_must_come_after_another_does_so_in_every_order():
    _, _, evaluations = decided(bound_to(slow_and_true, seldom_and_later), numbers())
    assert evaluations == {1: ROWS, 2: ROWS}


def test_an_order_that_is_good_is_kept():
    _, _, evaluations = decided(bound_to(seldom, slow_and_true), numbers())
    assert evaluations == {1: ROWS, 2: ROWS // 100}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("on_error", ["raise", "drop"])
def test_a_function_that_raises_where_another_drops_the_row_is_no_error_in_any_order(
    turned, on_error
):
    @qm.predicate(columns=["n"], vectorised=False)
    def fragile(n):
        return 1 // (n % 2) > 0 and n % 50 == 1

    @qm.predicate(columns=["n"], vectorised=True)
    def odd(n):
        time.sleep(len(n) * 1e-4)
        return pa.array(n.to_numpy() % 2 == 1)

    order = (fragile, odd) if turned else (odd, fragile)
    passed, failed, evaluations = decided(bound_to(*order), numbers(4000), on_error)
    assert np.flatnonzero(passed).tolist() == list(range(1, 4000, 50))
    assert not failed
    assert evaluations[1 if turned else 2] > 2000, "fragile met rows that odd would have dropped"


def test_a_row_that_nothing_else_drops_is_an_error_wherever_the_function_stands():
    @qm.predicate(columns=["n"], vectorised=False)
    def fragile(n):
        return 1 // (n - 3000) != 5

    fabric = Fabric(bound_to(slow_and_true, fragile, seldom))
    router = MeasuredOrder(written_mesh(fabric.bound))
    with pytest.raises(PredicateError, match="fragile"):
        fabric.passes(numbers(4000), router)


@given(
    st.integers(1, 5), st.integers(0, 3000), st.integers(0, 2**32 - 1), st.sampled_from([7, 1000])
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_order_a_row_passes_if_all_functions_say_so(functions, rows, seed, batch):
    rng = np.random.default_rng(seed)
    says = [rng.random(max(rows, 1)) < rng.random() for _ in range(functions)]
    predicates = [
        qm.predicate(
            lambda n, k=k: pa.array(says[k][n.to_numpy()]),
            columns=["n"], name=f"p{k}", vectorised=True,
        )
        for k in range(functions)
    ]  # fmt: skip
    bound = bound_to(*predicates)
    fabric, router = Fabric(bound), MeasuredOrder(written_mesh(bound))
    table = pa.Table.from_batches([numbers(rows)])
    parts = [fabric.passes(part, router) for part in table.to_batches(max_chunksize=batch)]
    passed = np.concatenate([*parts, np.zeros(0, dtype=bool)])
    assert passed.tolist() == np.logical_and.reduce([each[:rows] for each in says]).tolist()


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=6),
    st.integers(0, 2**32 - 1),
)
def test_an_order_has_every_operator_once_and_none_too_early(figures, seed):
    rng = np.random.default_rng(seed)
    seen = {k: Measured(*each) for k, each in enumerate(figures, start=1)}
    after = {k: frozenset(j for j in range(1, k) if rng.random() < 0.3) for k in seen}
    route = tuple(seen)
    found = best_order(route, after, seen)
    assert sorted(found) == list(route)
    assert all(found.index(j) < found.index(k) for k in route for j in after[k])
    if not any(after.values()):
        assert cost_s(found, seen) <= cost_s(route, seen) + 1e-9
