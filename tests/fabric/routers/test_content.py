import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddies import (
    NEVER,
    SKEWED,
    bound_of,
    column_of,
    content,
    dependent,
    run,
    stream,
    watched,
)
from querymesh.cost.route_time import Overheads
from querymesh.fabric.routers import content as content_module
from querymesh.fabric.routers.content import ContentRouter
from querymesh.fabric.routers.eddy import NO_PAIR, PROFILING
from querymesh.fabric.routers.estimates import Pair
from querymesh.fabric.routers.routing import PAPER, Routing


@pytest.mark.parametrize("chunk", [10, 100])
def test_tuples_go_where_their_content_says(chunk):
    rng = np.random.default_rng(0)
    batch = dependent(rng, 6000, SKEWED)
    router = content(batch, replace(PAPER, chunk=chunk, keep_pairs=True, probability=0.2), "c")
    ways = watched(router)
    metrics = run(batch, router).metrics
    best = np.asarray(batch["c"]) + 1
    right = [ways[i][0] == best[i] for i in range(4000, 6000)]
    assert np.mean(right) > 0.8, "all but a fifth, which is profiled, and a third of that is right"
    by = defaultdict(int)
    for (_, way), calls in metrics.routing.items():
        by[way] += calls
    assert set(by) == {NO_PAIR, PROFILING, "classifier c"}
    assert metrics.routing_calls == metrics.evaluations


def test_a_chunk_that_travels_together_goes_by_the_mean_of_its_content():
    values = np.repeat([0, 1, 0, 1], [90, 10, 20, 80])
    batch = stream(np.ones((200, 2), bool), c=values)
    router = content(batch, replace(NEVER, chunk=100, one_route_per_chunk=True), "c")
    column = np.full(25, 0.5)
    zero, one = router.partitions.codes(("c",), 24, lambda _: pa.array([0, 1])).tolist()
    column[zero], column[one] = 0.1, 0.9
    router.estimates.pairs[1] = Pair(("c",), 24, column, 0.5)
    router.estimates.overall[2] = 0.5
    router.estimates.add = router.estimates.add_content = lambda *_: None
    ways = watched(router)
    metrics = run(batch, router).metrics
    assert all(ways[i] == [1, 2] for i in range(100)), "expected of 1: 0.18"
    assert all(ways[i] == [2, 1] for i in range(100, 200)), "0.74"
    assert metrics.routing_calls == 4


@pytest.mark.parametrize("probability", [0.06, 0.3])
def test_a_share_of_about_p_profiles_until_the_sample_is_complete(probability):
    batch = stream(np.ones((5000, 2), bool), c=np.zeros(5000, int))
    routing = replace(PAPER, probability=probability, sample=200, chunk=50)
    router = content(batch, routing, "c")
    fabric = run(batch, router)
    events = list(router.learning.events)
    assert [e.operator for e in events] == [1 + i % 2 for i in range(len(events))]
    ends = [e.rows for e in events]
    took = np.diff([0, *ends])
    assert took.mean() == pytest.approx(200 / probability, rel=0.15)
    profiled = sum(n for (_, way), n in fabric.metrics.routing.items() if way == PROFILING)
    assert 200 * len(events) <= profiled < 200 * (len(events) + 1), "of each exactly |R|"


def test_profiling_tuples_go_to_the_operator_first_and_then_as_all_others():
    batch = stream(np.ones((400, 3), bool), c=np.zeros(400, int))
    router = content(batch, replace(PAPER, probability=0.5, sample=10_000, chunk=100), "c")
    router.estimates.overall.update({1: 0.9, 2: 0.2, 3: 0.1})
    router.estimates.add = lambda *_: None
    ways = watched(router)
    run(batch, router)
    assert {tuple(way) for way in ways.values()} == {(1, 3, 2), (3, 2, 1)}
    assert sum(way[0] == 1 for way in ways.values()) == pytest.approx(200, abs=50)


def test_a_pair_is_not_used_while_its_operator_is_profiled():
    rng = np.random.default_rng(2)
    batch = dependent(rng, 8000, SKEWED)
    router = content(batch, replace(PAPER, probability=0.3, chunk=50, trial_rows=200), "c")
    used = defaultdict(set)
    choose = router.choose

    def spy(ruster):
        for target in router.learning.targets:
            used[target].add(target in router.estimates.pairs)
        return choose(ruster)

    router.choose = spy
    run(batch, router)
    assert used == {1: {False}, 2: {False}, 3: {False}}
    assert sum(e.decision == "kept" for e in router.learning.events) >= 3


def test_keep_pairs_goes_on_using_it():
    rng = np.random.default_rng(2)
    batch = dependent(rng, 8000, SKEWED)
    routing = replace(PAPER, probability=0.3, chunk=50, trial_rows=200, keep_pairs=True)
    router = content(batch, routing, "c")
    run(batch, router)
    events = list(router.learning.events)
    assert {1, 2} <= router.estimates.pairs.keys(), "with two known, the third says little more"
    first = {e.operator: n for n, e in reversed(list(enumerate(events))) if e.decision == "kept"}
    after = [e for n, e in enumerate(events) if n > first.get(e.operator, len(events))]
    assert len(after) > 5
    assert {(e.decision, e.attributes) for e in after} == {("kept", ("c",))}, (
        "compared with itself, it must not lose by chance"
    )


def test_a_better_pair_that_fails_its_trial_leaves_the_one_that_was_kept():
    batch = stream(np.ones((300, 2), bool), a=np.arange(300) % 2, b=np.arange(300) % 3)
    router = content(batch, replace(PAPER, keep_pairs=True, sample=5, chunk=1), "a", "b")
    learning = router.learning
    former = Pair(("b",), 24, np.full(25, 0.3), 0.1)
    router.estimates.pairs[1] = former
    learning._turn = 0
    learning._next()
    learning.set_out(10)
    learning.visited(1, 10)
    rows = batch.select(["a", "b"]).slice(0, 6)
    learning.sampled(1, rows, np.array([0.0, 1, 0, 1, 0, 1]))
    learning.advance(1)
    assert router.estimates.pairs[1].attributes == ("a",), "on trial"
    resumed = content(batch, router.routing, "a", "b")
    resumed.resume(json.loads(json.dumps(router.to_json())))
    for each in (router, resumed):
        each.learning.set_out(500)
        each.learning.visited(1, 5000)
        each.learning.advance(1)
        assert each.learning.events[-1].decision == "dropped"
        assert each.estimates.pairs[1].attributes == ("b",)
        assert each.estimates.pairs[1].selectivity.tolist() == former.selectivity.tolist()


def test_s_converges_to_w_when_the_correlation_vanishes():
    """CBR example 5.1: S is updated as often as W."""
    rng = np.random.default_rng(0)
    before = dependent(rng, 1500, [[0.05, 0.9], [0.95, 0.1]])
    routing = replace(PAPER, chunk=1, probability=0.3, trial_rows=200, sample=100)
    router = content(before, routing, "c")
    run(before, router)
    assert router.estimates.pairs, "the correlation was found"
    index, pair = next(iter(router.estimates.pairs.items()))
    apart = abs(column_of(router, index, 0) - column_of(router, index, 1))
    assert apart > 0.4
    router.learning.probability = 1e-12  # nothing is profiled any more, nor judged
    router.learning.advance = lambda rows: None
    after = dependent(rng, 600, [[0.6, 0.6], [0.6, 0.6]])
    run(after, router)
    assert router.estimates.pairs[index] is pair
    overall = router.estimates.selectivity(index)
    for value in (0, 1):
        # Each is a mean of about twenty tuples, so 0.6 more or less 0.08.
        assert column_of(router, index, value) == pytest.approx(0.6, abs=0.3)
        assert column_of(router, index, value) == pytest.approx(overall, abs=0.35)
    assert abs(column_of(router, index, 0) - column_of(router, index, 1)) < apart


def test_in_expectation_s_is_w_once_the_correlation_has_vanished():
    """Example 5.1 without chance: outcomes spread evenly over both values."""
    batch = stream([[i % 4 < 2, True] for i in range(2000)], c=np.arange(2000) % 2)
    router = content(batch, replace(NEVER, chunk=100), "c")
    column = np.full(25, 0.5)
    zero, one = router.partitions.codes(("c",), 24, lambda _: pa.array([0, 1])).tolist()
    column[zero], column[one] = 0.02, 0.98
    router.estimates.pairs[1] = Pair(("c",), 24, column, 0.5)
    run(batch, router)
    assert router.estimates.selectivity(1) == pytest.approx(0.5, abs=1e-3)
    assert column[[zero, one]] == pytest.approx([0.5, 0.5], abs=1e-3)


@given(st.integers(0, 40), st.sampled_from([1, 5, 12]), st.booleans(), st.integers(0, 5))
@settings(max_examples=10, deadline=None)
def test_cut_anywhere_and_resumed_elsewhere_it_decides_the_same(cuts, chunk, extras, seed):
    """Which tuples profile is drawn anew, so here the draws go on as they were."""
    rng = np.random.default_rng(seed)
    batch = dependent(rng, 240, SKEWED)
    more = {"by": pa.array(rng.random(240)), "t": pa.array(["x", None] * 120)}
    for name, column in more.items():
        batch = batch.append_column(name, column)
    routing = replace(
        PAPER, chunk=chunk, probability=0.4, sample=15, trial_rows=10, prune=extras, tune=extras,
        keep_pairs=extras, attribute_sets=extras, at_once=1 + extras,
    )  # fmt: skip
    names = ("c", "by", "t")
    cut = min(cuts * 6 // chunk * chunk, 240)
    whole, one, other = (content(batch, routing, *names) for _ in range(3))
    ways, first, second = watched(whole), watched(one), watched(other)
    run(batch, whole)
    run(batch.slice(0, cut), one)
    other.resume(json.loads(json.dumps(one.to_json())))
    assert other.to_json() == one.to_json()
    other._rng = one._rng
    run(batch.slice(cut), other)
    assert {**first, **second} == ways
    mine, theirs = other.to_json(), whole.to_json()
    for known in (mine, theirs):
        known["estimates"]["cost_us"] = {}  # measured, never twice the same
        known["learning"]["samples"] = {
            k: each and each["outcomes"] for k, each in known["learning"]["samples"].items()
        }
    assert mine == theirs


def test_any_type_may_be_an_attribute():
    rng = np.random.default_rng(0)
    rows = 400
    c = rng.integers(0, 2, rows)
    outcomes = rng.random((rows, 2)) < np.where(c == 0, 0.1, 0.9)[:, None]
    null = rng.random(rows) < 0.1
    number = pa.array(c, mask=null)
    text = pa.array(np.where(c, "", "zero"), mask=null)
    kinds = {
        "number": number,
        "text": text,
        "dictionary": text.dictionary_encode(),
        "bool": number.cast(pa.bool_()),
        "date": number.cast(pa.int32()).cast(pa.date32()),
        "timestamp": number.cast(pa.timestamp("us", "UTC")),
        "float": number.cast(pa.float64()),
        "decimal": number.cast(pa.decimal128(21, 2)),
        "binary": text.cast(pa.binary()),
        "list": pa.array([[v] for v in c.tolist()]),
        "null": pa.nulls(rows),
    }
    plain = stream(outcomes, **kinds)
    for name in kinds:
        for prune in (False, True):
            routing = replace(
                PAPER, probability=0.5, sample=100, trial_rows=20, chunk=20, prune=prune, tune=True
            )
            router = content(plain, routing, name)
            run(plain.slice(0, 230), router)
            stored = json.loads(json.dumps(router.to_json()))
            router.resume(stored)
            run(plain.slice(230), router)
            event = router.learning.events[0]
            useless = name in ("list", "null")
            assert (event.decision == "none") == useless, name


def test_only_the_attributes_asked_for_are_sampled():
    batch = stream(np.ones((50, 2), bool), c=np.zeros(50, int), wide=np.zeros(50, int))
    router = content(batch, replace(PAPER, probability=0.9, chunk=10), "c")
    run(batch, router)
    [sample] = router.learning._samples.values()
    assert sample.batches[0].schema.names == ["c"]


def test_a_profile_beyond_what_must_come_before_waits_for_it():
    """An operator after another is profiled by the tuples that get there."""
    batch = stream(np.stack([np.arange(600) % 3 == 0, np.arange(600) % 2 == 0], axis=1))
    operators = [replace(op, after=frozenset({1} if op.index == 2 else ())) for op in
                 bound_of(batch).operators]  # fmt: skip
    routing = replace(PAPER, probability=0.5, sample=40, trial_rows=20, chunk=10)
    router = ContentRouter(operators, routing, ["id"])
    ways = watched(router)
    run(batch, router)
    assert all(way in ([1], [1, 2]) for way in ways.values())
    turns = [e.operator for e in router.learning.events]
    assert turns[:3] == [1, 2, 1]


def test_operators_whose_place_precedence_fixes_are_not_profiled_where_it_prunes():
    batch = stream(np.ones((600, 3), bool))
    after = {2: frozenset({1}), 3: frozenset({1})}
    operators = [replace(op, after=after.get(op.index, frozenset())) for op in
                 bound_of(batch).operators]  # fmt: skip
    routing = replace(PAPER, probability=0.5, sample=20, chunk=10, prune=True)
    router = ContentRouter(operators, routing, ["id"])
    run(batch, router)
    assert {event.operator for event in router.learning.events} <= {2, 3}
    assert router.learning.operators == [2, 3]


def test_tuples_go_apart_only_where_that_saves_more_than_a_ruster_takes(monkeypatch):
    batch = stream(np.ones((1000, 2), bool), c=np.zeros(1000, int))
    ready = [1, 2]
    merits = np.zeros((2, 1000))
    merits[0, :900], merits[1, 900:] = 0.5, 0.5
    chosen = np.argmax(merits, axis=0)
    router = content(batch, Routing(), "c")
    monkeypatch.setattr(content_module, "calibrate", lambda: Overheads(1.0, 100.0, 10_000))
    for cost_us, apart in ((0.01, False), (10.0, True)):
        router.estimates.cost_us.update({1: cost_us, 2: cost_us})
        kept = router._worth_it(ready, merits / cost_us, chosen)
        assert (len(set(kept.tolist())) == 2) == apart
