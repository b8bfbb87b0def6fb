"""What operators do to tuples that have been elsewhere before."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import querymesh as qm
from eddies import content, eddy, run, stream
from querymesh.classify.partitions import Partitions
from querymesh.fabric.routers import visit_context
from querymesh.fabric.routers.estimates import UNKNOWN, Estimates, Pair
from querymesh.fabric.routers.merge_routers import restore
from querymesh.fabric.routers.visit_context import ByContext, by_context_from_json, merge_contexts


def content_of(attribute, batch, routing):
    return content(batch, routing, attribute)


ALL, AFTER_1, AFTER_2, AFTER_BOTH = 0b1110, 0b1100, 0b1010, 0b1000


def test_a_context_never_seen_is_as_the_nearest_with_less_behind():
    known = ByContext()
    assert known.at(ALL, 0.5) is None
    known.put(AFTER_1, 0.25, 100)
    assert known.at(AFTER_BOTH, 0.5) == 0.25
    assert known.at(ALL, 0.5) is None, "more is behind where it was than here"
    assert known.at(AFTER_2, 0.5) is None, "and something else here"
    known.put(ALL, 0.75, 0)
    assert known.at(AFTER_2, 0.5) == 0.75
    assert known.at(AFTER_BOTH, 0.5) == 0.25, "of two that know less, the nearer"
    known.put(AFTER_BOTH, 0.125, 0)
    assert known.at(AFTER_BOTH, 0.5) == 0.125


def test_what_was_long_not_heard_of_becomes_what_holds_overall():
    known = ByContext()
    known.put(AFTER_1, 0.9, 100)
    known.put(ALL, 0.1, visit_context.HALF_LIFE)
    assert known.at(AFTER_1, 0.5) == pytest.approx(0.7)
    known.put(ALL, 0.1, 30 * visit_context.HALF_LIFE)
    assert known.at(AFTER_1, 0.5) == pytest.approx(0.5)
    assert known.at(ALL, 0.5) == 0.1


def test_only_so_many_contexts_are_remembered_and_those_seen_last():
    known = ByContext()
    for context in range(1, visit_context.MOST_CONTEXTS + 2):
        known.put(context, 0.5, 1)
        known.put(1, 0.25, 1)
    assert len(known.numbers) == visit_context.MOST_CONTEXTS
    assert 1 in known.numbers
    assert 2 not in known.numbers


def test_of_many_contexts_only_the_newest_travel():
    known = ByContext()
    for context in range(1, 101):
        known.put(context, 0.5, 1)
    stored = known.to_json()["held"]
    assert list(stored) == [
        str(context) for context in range(101 - visit_context.STORED_CONTEXTS, 101)
    ]


def test_what_is_nearest_is_not_remembered_without_end(monkeypatch):
    monkeypatch.setattr(visit_context, "MOST_NEAREST", 10)
    known = ByContext()
    known.put((1 << 12) - 1, 0.75, 1)
    assert {known.at(context, 0.5) for context in range(1, 1000)} == {0.75}
    assert len(known._nearest) <= 11


def test_the_nearest_is_looked_for_again_when_a_context_is_forgotten(monkeypatch):
    monkeypatch.setattr(visit_context, "MOST_CONTEXTS", 1)
    known = ByContext()
    known.put(ALL, 0.75, 1)
    assert known.at(AFTER_BOTH, 0.5) == 0.75
    known.put(0b10000, 0.25, 1)
    assert known.at(AFTER_BOTH, 0.5) is None


BY_PLACE = st.builds(
    lambda numbers, more: ByContext(
        max((then for _, then in numbers.values()), default=0) + more, numbers
    ),
    st.dictionaries(st.integers(1, 15), st.tuples(st.floats(0, 4), st.integers(0, 999))),
    st.integers(0, 99),
)


@given(BY_PLACE)
def test_a_copy_from_plain_numbers_knows_the_same(known):
    assert by_context_from_json(json.loads(json.dumps(known.to_json())), float) == known


@given(st.lists(BY_PLACE, min_size=1, max_size=4))
def test_shards_together_know_means_that_are_as_old_as_theirs(parts):
    whole = merge_contexts(parts)
    heard = [part for part in parts if part.seen]
    assert set(whole.numbers) == {context for part in heard for context in part.numbers}
    for context, (value, then) in whole.numbers.items():
        there = [part for part in heard if context in part.numbers]
        values = [part.numbers[context][0] for part in there]
        ages = [part.seen - part.numbers[context][1] for part in there]
        assert min(values) - 1e-9 <= value <= max(values) + 1e-9
        assert min(ages) <= whole.seen - then <= max(ages)


def test_columns_follow_their_ranges():
    pair = Pair(("x",), 2, np.array([0.1, 0.9, 0.5]), 0.3)
    pair.by_context.put(AFTER_1, np.array([0.2, 0.8, 0.5]), 10)
    pair.move(Partitions({"x": (0.0, 4.0)}), Partitions({"x": (0.0, 2.0)}))
    np.testing.assert_allclose(pair.selectivity, [0.9, 0.9, 0.5])
    np.testing.assert_allclose(pair.by_context.numbers[AFTER_1][0], [0.8, 0.8, 0.5])


def test_an_operator_is_hoped_to_do_better_where_it_has_not_been():
    known = Estimates(0.95, keeps_contexts=True)
    assert known.selectivity_at(1, ALL) == UNKNOWN
    known.add(1, AFTER_2, 4000, 3600, 0.0)
    assert known.selectivity_at(1, AFTER_2) == pytest.approx(0.9)
    assert known.selectivity_at(1, ALL) == UNKNOWN
    known.add(1, ALL, 4000, 2800, 0.0)
    assert known.selectivity_at(1, ALL) == pytest.approx(0.7)
    plain = Estimates(0.95)
    plain.add(1, AFTER_2, 4000, 3600, 0.0)
    assert plain.selectivity_at(1, ALL) == plain.selectivity(1) == pytest.approx(0.9)


def test_a_probe_finds_more_as_the_window_it_looks_at_fills():
    known = Estimates(0.95, keeps_contexts=True)
    known.pairs[1] = Pair(("k",), 2, np.array([0.5, 1.5, 1.0]), 0.3)
    known.resize(1, 1000)
    known.add(1, ALL, 400, 400, 0.0)
    known.add_content(1, ALL, np.array([200, 200, 0]), np.array([100, 300, 0]))
    known.resize(1, 1040)
    assert known.selectivity_at(1, ALL) == pytest.approx(1.0), "hardly more"
    known.resize(1, 3000)
    assert known.selectivity(1) == known.selectivity_at(1, ALL) == pytest.approx(3.0)
    np.testing.assert_allclose(known.pairs[1].selectivity, [1.5, 4.5, 3.0])
    np.testing.assert_allclose(known.column_at(1, ALL), [1.5, 4.5, 3.0])
    known.resize(1, 0)
    assert known.selectivity(1) == pytest.approx(3.0), "an empty state says nothing"
    known.resize(1, 1500)
    assert known.selectivity_at(1, ALL) == known.selectivity_at(1, AFTER_2) == pytest.approx(1.5)


def test_a_state_that_was_empty_at_first_is_followed_as_any_other():
    known = Estimates(0.95, keeps_contexts=True)
    known.resize(1, 0)
    known.resize(1, 100)
    known.add(1, ALL, 400, 400, 0.0)
    known.resize(1, 300)
    assert known.selectivity_at(1, ALL) == pytest.approx(3.0)


def test_a_probe_is_not_hoped_to_do_better_where_it_has_not_been():
    known = Estimates(0.95, keeps_contexts=True)
    known.resize(1, 1000)
    known.add(1, AFTER_2, 4000, 8000, 0.0)
    assert known.selectivity_at(1, ALL) == pytest.approx(2.0)


def test_of_a_filter_all_contexts_share_what_is_known_by_content():
    known = Estimates(0.95, keeps_contexts=True)
    known.pairs[1] = Pair(("k",), 2, np.array([0.5, 0.5, 0.5]), 0.3)
    known.add_content(1, AFTER_2, np.array([400, 400, 0]), np.array([40, 360, 0]))
    np.testing.assert_allclose(known.column_at(1, ALL), [0.1, 0.9, 0.5], atol=1e-6)


def test_a_filter_that_clearly_does_something_else_is_tried_again_where_it_was():
    known = Estimates(0.95, keeps_contexts=True)
    for context, passed in ((ALL, 900), (AFTER_2, 900), (AFTER_2, 880)):
        known.add(1, context, 1000, passed, 0.0)
    assert known.selectivity_at(1, ALL) == pytest.approx(0.9, abs=0.01), "that may be chance"
    for passed in (850, 810, 770):
        known.add(1, AFTER_2, 1000, passed, 0.0)
    assert ALL not in known.by_context[1].numbers, "little by little it has changed"
    assert known.selectivity_at(1, ALL) == UNKNOWN
    known.multiplying = frozenset({2})
    for context, passed in ((ALL, 2000), (AFTER_1, 2000), (AFTER_1, 500)):
        known.add(2, context, 1000, passed, 0.0)
    assert known.selectivity_at(2, ALL) == pytest.approx(2.0, abs=0.05), "but not what multiplies"


@pytest.mark.parametrize("make", [eddy, partial(content_of, "id")])
def test_whoever_goes_by_context_follows_a_change_as_soon_as_who_does_not(make):
    """A filter was good, then bad, so that it is only met behind the other, and is best now."""
    rng = np.random.default_rng(0)
    shares = np.repeat([[0.3, 0.2], [0.3, 0.9], [0.3, 0.05]], 20_000, axis=0)
    batch = stream(rng.random(shares.shape) < shares)
    routing = qm.policies.Routing(by_cost=False, chunk=1000, trial_by="calls")
    calls = {}
    for by_context in (True, False):
        router = make(batch, replace(routing, by_context=by_context))
        run(batch.slice(0, 42_000), router)
        calls[by_context] = run(batch.slice(42_000), router).metrics.routing_calls / 18_000
    assert calls[True] <= calls[False] + 0.02
    assert calls[True] < 1.1


# p1 passes a half of all tuples; p2 four fifths of what p1 passes, and nothing else; p3 .7 of all.
# The best order is p2, p3, p1. Who begins with p1 sees that p2 passes .8 then, and puts it last.


def dependent(rows, seed=0):
    rng = np.random.default_rng(seed)
    p1 = rng.random(rows) < 0.5
    return stream(np.array([p1, p1 & (rng.random(rows) < 0.8), rng.random(rows) < 0.7]).T)


@pytest.mark.parametrize(("by_context", "calls"), [(True, 1.68), (False, 1.85)])
def test_one_number_for_all_contexts_misleads_where_operators_depend_on_each_other(
    by_context, calls
):
    batch = dependent(40_000)
    router = eddy(batch, qm.policies.Routing(by_cost=False, chunk=500, by_context=by_context))
    run(batch.slice(0, 10_000), router)
    fabric = run(batch.slice(10_000), router)
    assert fabric.metrics.routing_calls / 30_000 == pytest.approx(calls, abs=0.03)
    assert router.routes() == [(2, 3, 1) if by_context else (1, 3, 2)]


def test_what_is_known_by_context_survives_a_restart():
    batch = dependent(4000)
    routing = qm.policies.Routing(by_cost=False, chunk=500)
    router, again = eddy(batch, routing), eddy(batch, routing)
    run(batch, router)
    restore(again, json.loads(json.dumps(router.to_json())))
    assert again.estimates.by_context == router.estimates.by_context
    assert again.routes() == router.routes()


@pytest.mark.parametrize(
    "numbers", [{"14": [float("nan"), 1]}, {"14": [-1.0, 1]}, {"x": [0.5, 1]}, {"14": 0.5}]
)
def test_contexts_that_cannot_be_are_refused(numbers):
    batch = dependent(100)
    router = eddy(batch, qm.policies.Routing())
    run(batch, router)
    state = router.to_json()
    state["estimates"]["by_place"]["1"] = {"seen": 5, "held": numbers}
    with pytest.raises(qm.QueryMeshError, match="not the state of a router"):
        restore(eddy(batch, qm.policies.Routing()), state)


def test_a_state_from_before_contexts_were_known_is_taken():
    batch = dependent(1000)
    router = eddy(batch, qm.policies.Routing(by_context=False))
    run(batch, router)
    state = router.to_json()
    del state["estimates"]["by_place"]
    restored = eddy(batch, replace(router.routing, by_context=True))
    restore(restored, state)
    assert restored.estimates.overall == router.estimates.overall
