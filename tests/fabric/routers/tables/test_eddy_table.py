from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import querymesh as qm
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.routers.content import ContentRouter
from querymesh.fabric.routers.eddy import PLAIN, PROFILED, EddyRouter
from querymesh.fabric.routers.estimates import Pair
from querymesh.fabric.routers.routing import PAPER
from querymesh.fabric.routers.tables.content_table import (
    all_classes,
    classes_there_are,
    numbers_of,
)

OPERATORS = 4
SHARES = st.floats(0.0, 2.0)


def window_of(rows, seed):
    rng = np.random.default_rng(seed)
    columns = {name: pa.array(rng.integers(0, 6, rows)) for name in ("a", "b")}
    outcomes = {f"p{k}": pa.array(np.ones(rows, bool)) for k in range(1, OPERATORS + 1)}
    return ClassificationWindow("s", pa.record_batch(columns | outcomes))


def bound_of(window, after=()):
    conditions = " AND ".join(f"p{k}" for k in range(1, OPERATORS + 1))
    return qm.query(f"SELECT a FROM s WHERE {conditions}").bind({"s": window.batch.schema})


@st.composite
def routers(draw, window):
    """A router that knows anything about its operators, some of which profile."""
    routing = replace(
        PAPER,
        by_cost=draw(st.booleans()),
        by_context=draw(st.booleans()),
        probability=draw(st.sampled_from([1e-12, 0.4])),
        at_once=draw(st.integers(1, 2)),
        budget=1.0,
        keep_pairs=True,
    )
    router = ContentRouter(bound_of(window).operators, routing, ("a", "b"))
    estimates = router.estimates
    for index in router.operators:
        estimates.overall[index] = draw(SHARES)
        estimates.cost_us[index] = draw(st.floats(0.1, 9.0))
        if routing.by_context:
            for context in draw(st.lists(st.integers(0, 31), max_size=3)):
                estimates.add(index, context | 1 << index, 20, draw(st.integers(0, 20)), 1e-5)
        if names := draw(st.sampled_from([(), (), ("a",), ("b",), ("a", "b")])):
            count = draw(st.sampled_from([3, 24, 90]))
            size = len(np.zeros(count + 1)) if len(names) == 1 else (round(count**0.5) + 1) ** 2
            column = np.random.default_rng(draw(st.integers(0, 99))).random(size)
            estimates.pairs[index] = Pair(names, count, column, 0.5)
    return router


def way_of(router, window, row, leaf):
    """The operators that a tuple goes to if it is asked about before each."""
    way, ruster = [], Ruster(window, np.array([row]), router._token, leaf)
    while ruster.token.stack:
        [ruster] = router.choose(ruster)
        way.append(ruster.token.top)
        ruster = replace(ruster, token=ruster.token.pop())
    return way


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(1, 40), st.integers(0, 9))
def test_a_table_says_what_each_tuple_would_be_told_on_its_way(data, rows, seed):
    window = window_of(rows, seed)
    router = data.draw(routers(window))
    leaves = router.begin_chunk(rows)
    chunk = router.chunk(window, leaves, own_done=False)
    table = chunk.table
    for row in range(rows):
        number = chunk.of_tuple[row]
        assert table.classes.leaves[number] == leaves[row]
        told = [table.visits[visit] for visit in table.visit_of[:, number]]
        assert [index for _, index in told] == way_of(router, window, row, leaves[row])
        ahead = {1 << index for index in router.operators}
        for context, index in told:
            assert context == sum(ahead)
            ahead.remove(1 << index)
    alone = np.flatnonzero(leaves != PLAIN)
    assert ([] if chunk.alone is None else chunk.alone.rows.tolist()) == alone.tolist()
    if chunk.alone is not None:
        told = [
            way_of(router, window, row, leaves[row]).index(router._targets[leaves[row] - PROFILED])
            for row in alone
        ]
        assert chunk.alone.visits.tolist() == [place + 1 for place in told]


def test_a_class_that_nobody_was_of_before_has_its_way_when_it_comes():
    values = [np.zeros(400, int), np.repeat([0, 1, 2], [20, 20, 10])]
    router = None
    for a in values:
        batch = window_of(len(a), 0).batch.set_column(0, "a", pa.array(a))
        window = ClassificationWindow("s", batch)
        if router is None:
            router = ContentRouter(bound_of(window).operators, PAPER, ("a",))
            router.learning._samples = {}
            column = np.random.default_rng(1).random(25)
            router.estimates.pairs.update({k: Pair(("a",), 24, column, 1.0) for k in (1, 3)})
        leaves = np.zeros(len(a), int)
        chunk = router.chunk(window, leaves, own_done=False)
        ways = chunk.table.operator_of_state.reshape(OPERATORS, -1)[:, chunk.of_tuple]
        for row in range(0, len(a), 10):
            assert ways[:, row].tolist() == way_of(router, window, row, PLAIN)
    assert chunk.table.visit_of.shape[1] == 25, "of a few tuples, all classes that there may be"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([2, 3, 25]), max_size=3), st.integers(1, 3), st.integers(0, 50))
def test_all_classes_are_numbered_as_tuples_are(sizes, leaf_count, rows):
    by = {((f"a{n}",), size): size for n, size in enumerate(sizes)}
    rng = np.random.default_rng(rows)
    codes = {cut_by: rng.integers(0, size, rows) for cut_by, size in by.items()}
    leaves = rng.integers(0, leaf_count, rows)
    if sizes:
        every, numbers = classes_there_are(by, leaves, codes.__getitem__)
        assert every.leaves[numbers].tolist() == leaves.tolist()
        for cut_by in by:
            assert every.codes[cut_by][numbers].tolist() == codes[cut_by].tolist()
    every, numbers = all_classes(by, leaf_count), numbers_of(by, leaves, codes.__getitem__)
    assert every.leaves[numbers].tolist() == leaves.tolist()
    for cut_by in by:
        assert every.codes[cut_by][numbers].tolist() == codes[cut_by].tolist()


def test_the_ways_of_a_lottery_are_drawn_inversely_to_selectivity_step_by_step():
    window = window_of(4000, 0)
    routing = replace(PAPER, choice="lottery", chunk=4000)
    router = EddyRouter(bound_of(window).operators, routing)
    router.estimates.overall.update({1: 0.1, 2: 0.2, 3: 0.4, 4: 0.8})
    chunk = router.chunk(window, router.begin_chunk(4000), own_done=False)
    table = chunk.table
    ways = table.operator_of_state.reshape(OPERATORS, -1)[:, chunk.of_tuple]
    first = np.bincount(ways[0], minlength=5)[1:] / 4000
    assert first == pytest.approx(np.array([8, 4, 2, 1]) / 15, abs=0.03)
    after_one = ways[1][ways[0] == 1]
    assert np.bincount(after_one, minlength=5)[2:] / len(after_one) == pytest.approx(
        np.array([4, 2, 1]) / 7, abs=0.04
    )
    assert (np.sort(ways, axis=0) == np.arange(1, OPERATORS + 1)[:, None]).all()


def test_small_chunks_go_by_one_table_until_a_chunk_is_full_and_draw_each_way_once():
    window = window_of(50, 0)
    for choice in ("least", "lottery"):
        router = EddyRouter(bound_of(window).operators, replace(PAPER, choice=choice, chunk=400))
        made = []
        decided = router._decided
        router._decided = lambda *given: made.append(given) or decided(*given)  # noqa: B023
        taken = []
        for _ in range(40):
            chunk = router.chunk(window, router.begin_chunk(50), own_done=False)
            taken.append(chunk.table.visits)
        assert 5 <= len(made) <= 9, "at first with twice as many tuples, then every 400"
        assert len({id(visits) for visits in taken}) == len(made)


@pytest.mark.parametrize("choice", ["least", "lottery"])
def test_chunks_grow_where_deciding_takes_much_and_shrink_again(choice):
    window = window_of(50, 0)
    routing = replace(PAPER, by_cost=True, choice=choice, chunk=60)
    router = EddyRouter(bound_of(window).operators, routing)
    grown = [(0.001, 60), *((0.2, 60 << n) for n in (1, 2, 3, 4, 4)), (0.03, 960)]
    for routing_s, rows in grown:
        router.resize_chunks(routing_s, operators_s=1.0)
        assert router.chunk_rows == rows
        for _ in range(7):
            chunk = router.chunk(window, router.begin_chunk(50), own_done=False)
            assert len(chunk.of_tuple) == 50
            assert chunk.of_tuple.max() < chunk.table.visit_of.shape[1]
    router.resize_chunks(0.001, operators_s=1.0)
    assert router.chunk_rows == 480
    by_the_paper = EddyRouter(bound_of(window).operators, PAPER)
    by_the_paper.resize_chunks(1.0, operators_s=1.0)
    assert by_the_paper.chunk_rows == PAPER.chunk


def test_what_is_being_found_out_is_heard_of_in_chunks_as_small_as_asked_for():
    window = window_of(50, 0)
    router = ContentRouter(bound_of(window).operators, replace(PAPER, by_cost=True), ("a",))
    router.resize_chunks(1.0, operators_s=1.0)
    assert router.chunk_rows == PAPER.chunk, "something is profiled"
    router.learning._samples = {}
    assert router.chunk_rows == 2 * PAPER.chunk


def test_what_was_taken_over_is_decided_on_at_once():
    window = window_of(10, 0)
    router = EddyRouter(bound_of(window).operators, replace(PAPER, chunk=10_000))
    leaves = router.begin_chunk(10)
    for _ in range(4):
        router.chunk(window, leaves, own_done=False)
    other = EddyRouter(bound_of(window).operators, PAPER)
    other.estimates.overall.update({1: 0.9, 2: 0.8, 3: 0.7, 4: 0.1})
    router.resume(other.to_json())
    table = router.chunk(window, leaves, own_done=False).table
    assert table.operator_of_state.tolist() == [4, 3, 2, 1]


def test_profiling_tuples_are_decided_on_as_others_once_they_have_been_there():
    window = window_of(10, 0)
    router = ContentRouter(bound_of(window).operators, PAPER, ("a",))
    router._targets = [3]
    token = RouteToken(((1, 2, 3),))
    assert router._leaf_at(PROFILED, token) == PROFILED
    assert router._leaf_at(PROFILED, token.choose(3).pop()) == PLAIN


def test_who_profiles_again_finds_its_way_after_a_table_for_plain_tuples_alone():
    window = window_of(10, 0)
    router = ContentRouter(bound_of(window).operators, replace(PAPER, chunk=10), ("a",))
    plain, profiling = np.zeros(10, int), np.repeat([PLAIN, PROFILED], 5)
    for targets, leaves in [([3], profiling), ([], plain), ([], plain), ([3], profiling)]:
        router._targets = targets
        chunk = router.chunk(window, leaves, own_done=False)
        ways = chunk.table.operator_of_state.reshape(OPERATORS, -1)[:, chunk.of_tuple]
        assert (ways[0, leaves == PROFILED] == 3).all()
