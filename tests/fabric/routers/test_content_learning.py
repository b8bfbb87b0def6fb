import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import querymesh as qm
from eddies import (
    QUICK,
    SKEWED,
    bound_of,
    content,
    dependent,
    fed,
    learned,
    noise,
    run,
    stream,
    tried,
    two_operators,
    with_column,
)
from querymesh.classify.partitions import Partitions
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.routers.content import ContentRouter
from querymesh.fabric.routers.content_limits import (
    LEAST_PROBABILITY,
    MOST_PARTITIONS,
    MOST_SAMPLE,
)
from querymesh.fabric.routers.eddy import PROFILING
from querymesh.fabric.routers.estimates import Pair


def test_operators_take_turns():
    batch = noise(dependent(np.random.default_rng(0), 6000, SKEWED), "x")
    events = list(learned(batch, QUICK, "c", "x").events)
    assert [e.operator for e in events] == [1 + n % 3 for n in range(len(events))]
    assert len(events) > 9


def test_the_attribute_that_says_most_is_chosen_and_constants_never():
    batch = noise(dependent(np.random.default_rng(0), 6000, SKEWED), "x")
    batch = with_column(batch, "same", pa.array([7] * 6000))
    events = list(learned(batch, replace(QUICK, threshold=0.0), "same", "x", "c").events)
    for event in events:
        assert event.gains[0].attributes == ("c",)
        gains = [gain for _, gain in event.gains]
        assert gains == sorted(gains, reverse=True)
        assert dict(event.gains).get(("same",), 0.0) == 0.0
        assert event.attributes == ("c",)


def test_where_no_attribute_says_enough_there_is_no_trial():
    batch = dependent(np.random.default_rng(0), 6000, [[0.5, 0.5, 0.5]] * 3)
    learning = learned(batch, replace(QUICK, sample=200, threshold=0.1), "c")
    assert {event.decision for event in learning.events} == {"none"}
    assert learning.estimates.pairs == {}


@pytest.mark.parametrize(("calls", "decision"), [(1.4, "kept"), (1.5, "dropped"), (1.6, "dropped")])
def test_a_pair_is_kept_if_tuples_take_fewer_calls_with_it(calls, decision):
    learning = two_operators()
    fed(learning, 1, [0, 0, 1, 1], [0, 0, 1, 1], calls=1.5)
    assert learning.estimates.pairs[1].on_trial
    assert learning.targets == [], "nothing is profiled meanwhile"
    tried(learning, calls)
    assert (1 in learning.estimates.pairs) == (decision == "kept")
    event = learning.events[-1]
    assert (event.operator, event.decision, event.attributes) == (1, decision, ("c",))
    assert event.reason == f"{calls:.4g} a tuple, 1.5 without"
    assert learning.targets == [2]


def test_a_new_pair_starts_from_what_the_sample_saw_and_w_elsewhere():
    learning = two_operators()
    learning.estimates.overall[1] = 0.35
    fed(learning, 1, [0, 0, 1, 1], [0, 1, 1, 1], calls=1.5)
    column = learning.estimates.pairs[1].selectivity
    zero, one = Partitions().codes(("c",), 24, lambda _: pa.array([0, 1])).tolist()
    assert (column[zero], column[one]) == (0.5, 1.0)
    assert np.delete(column, [zero, one]) == pytest.approx(0.35)


def test_what_is_known_by_range_follows_when_the_range_grows():
    batch = stream(np.ones((1, 3), bool), c=[0.0])
    learning = content(batch, replace(QUICK, sample=4, partitions=4), "c").learning
    fed(learning, 1, [0.0, 1.0, 3.0, 4.0], [0, 0, 1, 1], calls=2)
    tried(learning, 1.0)
    assert learning.estimates.pairs[1].selectivity[[0, 3]].tolist() == [0, 1]
    fed(learning, 2, [0.0, 8.0, 3.0, 4.0], [1, 1, 1, 1], calls=2)
    assert learning.partitions.ranges["c"] == (0.0, 8.0)
    assert learning.estimates.pairs[1].selectivity[[0, 2, 3]].tolist() == [0, 1, 1]


def test_several_operators_can_be_profiled_at_once():
    batch = dependent(np.random.default_rng(0), 3000, SKEWED)
    all_three = replace(QUICK, at_once=3, budget=1.0)
    slow, fast = (learned(batch, routing, "c") for routing in (QUICK, all_three))
    assert {e.operator for e in list(fast.events)[:3]} == {1, 2, 3}
    assert len({e.rows for e in list(fast.events)[:3]}) == 1, "and are tried together"
    assert list(fast.events)[2].rows < list(slow.events)[2].rows
    router = content(batch, replace(all_three, sample=10_000), "c")
    metrics = run(batch, router).metrics
    for index in (1, 2, 3):
        assert metrics.routing[index, PROFILING] == pytest.approx(0.3 * 3000, abs=120)


def test_more_at_once_than_operators_is_all_of_them():
    batch = dependent(np.random.default_rng(0), 1000, [[0.5, 0.5], [0.2, 0.9]])
    learning = learned(batch, replace(QUICK, at_once=9), "c")
    assert [e.operator for e in list(learning.events)[:2]] == [1, 2]


def test_with_tune_p_halves_while_nothing_changes_and_returns_when_it_does():
    learning = two_operators(tune=True)
    learning.partition_count = 4
    seen = []
    for _ in range(16):
        [target] = learning.targets
        fed(learning, target, [0, 1, 0, 1], [1, 1, 1, 1], calls=1.5)
        seen.append(learning.probability)
    assert seen[0] == 0.3
    assert seen[-1] == LEAST_PROBABILITY
    assert all(b in (a, max(a / 2, LEAST_PROBABILITY)) for a, b in itertools.pairwise(seen))
    for _ in range(2):
        [target] = learning.targets
        fed(learning, target, [0, 1, 0, 1], [0, 1, 0, 1], calls=1.5)
        tried(learning, 1.0)
    assert learning.probability == 0.3
    quiet = two_operators()
    for _ in range(8):
        fed(quiet, quiet.targets[0], [0, 1, 0, 1], [1, 1, 1, 1], calls=1.5)
    assert quiet.probability == 0.3, "only where it is asked for"


@pytest.mark.parametrize(("outcomes", "larger"), [([0, 1, 1, 0], True), ([1, 1, 1, 1], False)])
def test_with_tune_a_sample_that_tells_too_little_is_larger_the_next_time(outcomes, larger):
    learning = two_operators(tune=True)
    learning.partition_count = 4
    before = learning.sample_size
    fed(learning, 1, [0, 0, 1, 1], outcomes, calls=1.5)
    assert [e.decision for e in learning.events] == ["none"]
    assert learning.sample_size == (2 * before if larger else before)


def test_with_tune_a_pair_that_fails_asks_for_a_larger_sample():
    learning = two_operators(tune=True)
    sizes = []
    for _ in range(10):
        [target] = learning.targets
        rows = learning.sample_size
        fed(learning, target, [0, 1] * (rows // 2), [0, 1] * (rows // 2), calls=1.5)
        tried(learning, 2.0)
        sizes.append(learning.sample_size)
    assert sizes[:3] == [8, 16, 32]
    assert sizes[-1] == MOST_SAMPLE


def test_with_tune_partitions_follow_the_values_there_are():
    batch = stream(np.ones((1, 2), bool), c=[0])
    learning = content(batch, replace(QUICK, sample=40, tune=True), "c").learning
    fed(learning, 1, list(range(40)), [i % 2 for i in range(40)], calls=1.5)
    assert learning.partition_count == 48
    assert learning.estimates.pairs[1].count == 24, "the pair under way keeps its own"
    for _ in range(4):
        tried(learning, 1.0)
        [target] = learning.targets
        fed(learning, target, [*range(100)], [i % 2 for i in range(100)], calls=1.5)
    assert learning.partition_count <= MOST_PARTITIONS
    for _ in range(8):
        tried(learning, 1.0)
        [target] = learning.targets
        fed(learning, target, [0, 1] * 50, [0, 1] * 50, calls=1.5)
    assert 2 <= learning.partition_count < 24


def xor(rows, seed=0, of=("a", "b")):
    rng = np.random.default_rng(seed)
    bits = {name: rng.integers(0, 2, rows) for name in "abcd"}
    different = bits[of[0]] != bits[of[1]]
    first = rng.random(rows) < np.where(different, 0.9, 0.1)
    second = rng.random(rows) < np.where(different, 0.1, 0.9)
    return stream(np.stack([first, second], axis=1), **bits)


@pytest.mark.parametrize("of", ["ab", "bd", "cd"])
def test_a_set_of_two_is_found_where_neither_says_anything_alone(of):
    batch = xor(4000, of=of)
    learning = learned(batch, replace(QUICK, attribute_sets=True, sample=150), *"abcd")
    assert {e.gains[0].attributes for e in learning.events} == {tuple(of)}, "by name"
    assert "kept" in {e.decision for e in learning.events}
    alone = learned(batch, replace(QUICK, sample=150), *"abcd")
    best = [e.gains[0].gain for e in learning.events]
    assert max(e.gains[0].gain for e in alone.events) < min(best)


def test_a_set_is_not_preferred_to_the_one_attribute_that_says_it_all():
    batch = dependent(np.random.default_rng(0), 4000, SKEWED)
    for seed, name in enumerate("xyz"):
        batch = noise(batch, name, seed)
    learning = learned(batch, replace(QUICK, attribute_sets=True, sample=150), *"xyzc")
    kept = [e.attributes for e in learning.events if e.decision == "kept"]
    assert kept
    assert set(kept) == {("c",)}


def test_a_lookup_that_multiplies_is_known_by_its_variance():
    rng = np.random.default_rng(0)
    rows = 4000
    g = rng.integers(0, 4, rows)
    source = pa.record_batch(
        {"id": range(rows), "g": g, "x": rng.integers(0, 4, rows), "h": rng.integers(0, 4, rows)}
    )
    many = pa.table({"g": [0] * 6 + [1], "n": range(7)})  # six for 0, one for 1, else none
    some = pa.table({"h": [0, 1, 1], "m": range(3)})
    query = qm.query("SELECT s.id FROM S s, Many t, Some u WHERE s.g = t.g AND s.h = u.h")
    bound = query.bind({"S": source.schema, "Many": many.schema, "Some": some.schema})
    tables = make_tables(bound, {"s": pa.table(source), "t": many, "u": some})
    router = ContentRouter(bound.operators, QUICK, ["x", "g", "h"])
    out = sum(b.num_rows for b in Fabric(bound, tables).run(source, router))
    matches = zip(np.array([6, 1, 0, 0])[g], np.array([1, 2, 0, 0])[source["h"]], strict=True)
    assert out == sum(a * b for a, b in matches)
    by_name = {op.index: op.name for op in bound.operators}
    best = {by_name[e.operator]: e.gains[0] for e in router.learning.events}
    assert best["t"].attributes == ("g",)
    assert best["t"].gain == pytest.approx(1.0, abs=0.01)
    assert best["u"].attributes == ("h",)
    assert best["u"].gain == pytest.approx(1.0, abs=0.01)


def test_an_operator_that_no_tuple_gets_to_does_not_hold_up_the_others():
    rng = np.random.default_rng(0)
    outcomes = np.column_stack([np.zeros(12_000, bool), rng.random((12_000, 2)) < 0.5])
    batch = stream(outcomes, c=rng.integers(0, 3, 12_000))
    operators = [
        replace(op, after=frozenset({1})) if op.index == 2 else op
        for op in bound_of(batch).operators
    ]
    router = ContentRouter(operators, QUICK, ["c"])
    run(batch, router)
    events = list(router.learning.events)
    assert [e.operator for e in events][:6] == [1, 2, 3, 1, 2, 3]
    assert {e.reason for e in events if e.operator == 2} == {"too few tuples get there"}
    patient = next(e for e in events if e.operator == 2).rows
    assert patient > 5 * QUICK.sample / QUICK.probability, "but it is waited for"


def test_a_pair_says_what_it_is_worth_until_it_is_profiled_again():
    learning = two_operators()
    fed(learning, 1, [0, 0, 1, 1], [0, 0, 1, 1], calls=1.5)
    tried(learning, 1.0)
    assert isinstance(learning.estimates.pairs[1], Pair)
    assert learning.estimates.pairs[1].gain == pytest.approx(1.0)
    fed(learning, 2, [0, 0, 1, 1], [1, 1, 1, 1], calls=1.5)
    assert learning.targets == [1]
    assert 1 not in learning.estimates.pairs


@pytest.mark.parametrize(("budget", "targets"), [(0.2, 1), (0.3, 1), (0.6, 2), (1.0, 3)])
def test_no_more_are_profiled_at_once_than_the_budget_allows(budget, targets):
    batch = dependent(np.random.default_rng(0), 10, SKEWED)
    router = content(batch, replace(QUICK, probability=0.3, at_once=3, budget=budget), "c")
    assert len(router.learning.targets) == targets
    with pytest.raises(qm.QueryMeshError, match="budget is a share"):
        replace(QUICK, budget=0.0)


def test_all_operators_are_profiled_at_first_and_then_one_after_the_other():
    batch = dependent(np.random.default_rng(0), 6000, SKEWED)
    router = content(batch, replace(QUICK, all_at_first=True), "c")
    assert router.learning.targets == [1, 2, 3]
    run(batch, router)
    later = [e.rows for e in router.learning.events if e.decision != "pruned"][3:]
    assert len(later) == len(set(later)) > 3, "no two in the same turn"


@pytest.mark.parametrize(
    ("noise", "calls", "decision"),
    [(0.0, 1.6, "dropped"), (1.0, 1.6, "kept"), (1.0, 1.7, "dropped")],
)
def test_a_loss_that_may_be_chance_does_not_end_a_pair(noise, calls, decision):
    learning = two_operators(trial_noise=noise)
    fed(learning, 1, [0, 0, 1, 1], [0, 0, 1, 1], calls=1.5)
    tried(learning, calls)  # 100 tuples after 1,000: one standard error is a tenth
    assert learning.events[-1].decision == decision


def test_a_pair_that_comes_back_after_a_failed_trial_follows_the_range_that_grew_meanwhile():
    batch = stream(np.ones((1, 2), bool), x=[0.0], y=[0])
    both = replace(QUICK, sample=4, partitions=4, at_once=2, budget=1.0, keep_pairs=True)
    learning = content(batch, both, "x", "y").learning

    def profiled(x_of_2, outcomes_of_1, y):
        learning.set_out(1000)
        learning.visited(1, 1500)
        one = pa.record_batch({"x": [0.0, 1.0, 3.0, 4.0], "y": y})
        two = pa.record_batch({"x": x_of_2, "y": [0] * 4})
        learning.sampled(1, one, np.array(outcomes_of_1, float))
        learning.sampled(2, two, np.ones(4))
        learning.advance(1)

    profiled([0.0, 1.0, 3.0, 4.0], [0, 0, 1, 1], y=[0] * 4)
    tried(learning, 1.0)
    assert learning.estimates.pairs[1].attributes == ("x",)
    assert learning.estimates.pairs[1].selectivity[[0, 3]].tolist() == [0, 1]
    profiled([0.0, 8.0, 3.0, 4.0], [0, 1, 1, 0], y=[0, 1, 1, 0])
    assert learning.estimates.pairs[1].attributes == ("y",), "on trial"
    tried(learning, 2.0)
    assert learning.estimates.pairs[1].attributes == ("x",), "the trial has failed"
    assert learning.partitions.ranges["x"] == (0.0, 8.0)
    assert learning.estimates.pairs[1].selectivity[[0, 2, 3]].tolist() == [0, 1, 1]


def rested(learning, rows):
    """Whether a rest is over after so many tuples."""
    learning.set_out(rows)
    learning.visited(1, rows)
    learning.advance(rows)
    learning.advance(1)
    return bool(learning.targets)


@pytest.mark.parametrize(("cost_us", "rows", "is_over"), [
    (1e6, 1, True),
    (1e-3, 60, False),
    (1e-3, 900, True),
])  # fmt: skip
def test_where_trials_go_by_cost_it_rests_until_an_evaluation_is_earned(cost_us, rows, is_over):
    learning = two_operators(trial_by="cost", evidence=0.0)
    learning.estimates.cost_us[1] = cost_us
    fed(learning, 1, [0, 0, 0, 0], [1, 0, 1, 0], 1.0)
    assert learning.events[-1].decision == "none"
    assert learning.rests
    assert learning.probability == 0.3, "900 tuples are more than 64 samples of four take"
    assert rested(learning, rows) == is_over


def test_by_the_paper_it_never_rests():
    learning = two_operators()
    fed(learning, 1, [0, 0, 0, 0], [1, 0, 1, 0], 1.0)
    assert learning.targets == [2]


def test_windows_that_were_still_filling_are_looked_at_once_more():
    for rows, turns in [(1000, [1, 2]), (110, [1])]:
        learning = two_operators(all_at_first=True)
        learning.estimates.sizes.update({1: 100, 2: 100})
        learning._turn = 0
        learning._next()
        assert learning.targets == [1, 2]
        learning.estimates.sizes[1] = rows
        learning.sampled(2, pa.record_batch({"c": [0] * 4}), np.ones(4))
        fed(learning, 1, [0, 0, 0, 0], [1, 1, 1, 1], 1.0)
        assert [e.decision for e in learning.events] == ["none", "none"]
        assert learning.targets == turns


@pytest.mark.parametrize(("rows", "decision"), [(110, "dropped"), (200, "kept")])
def test_while_windows_fill_later_tuples_cost_more_and_no_trial_is_lost_by_that(rows, decision):
    learning = two_operators()
    learning.estimates.sizes.update({1: 100, 2: 100})
    learning._turn = 0
    learning._next()
    fed(learning, 1, [0, 1, 0, 1], [0, 1, 0, 1], 1.0)
    learning.estimates.sizes[2] = rows
    tried(learning, 5.0)
    assert [e.decision for e in learning.events] == [decision]
