"""Attributes and operators that are left out because they cannot matter (CBR § 4.4)."""

from dataclasses import replace

import numpy as np
import pytest

from eddies import (
    QUICK,
    SKEWED,
    content,
    dependent,
    fed,
    learned,
    run,
    stream,
    two_operators,
    with_column,
)
from querymesh.fabric.routers.eddy import PROFILING
from querymesh.fabric.routers.estimates import Pair


def test_attributes_are_left_out_while_running_and_come_back():
    rng = np.random.default_rng(0)
    batch = dependent(rng, 4000, SKEWED)
    later = np.where(np.arange(4000) < 2000, np.arange(4000), rng.integers(0, 3, 4000))
    batch = with_column(batch, "later", later)
    router = content(batch, replace(QUICK, prune=True), "id", "c", "later")
    run(batch.slice(0, 1500), router)
    assert set(router.learning.left_out) == {"id", "later"}
    run(batch.slice(1500), router)
    assert set(router.learning.left_out) == {"id"}
    tried = {a for e in router.learning.events for a, _ in e.gains}
    assert ("id",) not in tried
    plain = learned(batch, QUICK, "id", "c", "later")
    assert plain.left_out == {}
    assert ("id",) in {a for e in plain.events for a, _ in e.gains}


def test_operators_whose_place_never_changes_are_not_profiled():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, 8000)
    # The first drops nearly all, the last next to nothing; the two between depend on the content.
    first, last = rng.random(8000) < 0.02, rng.random(8000) < 0.99
    between = rng.random((8000, 2)) < np.where(values[:, None] == [0, 1], 0.75, 0.95)
    outcomes = np.column_stack([first, between, last])
    batch = stream(outcomes, c=values)
    router = content(batch, replace(QUICK, prune=True), "c")
    metrics = run(batch, router).metrics
    pruned = router.learning.pruned
    assert set(pruned) == {1, 4}
    assert pruned[1].startswith("always first")
    assert pruned[4].startswith("always last")
    noted = [e for e in router.learning.events if e.decision == "pruned"]
    assert {e.operator for e in noted} == {1, 4}
    assert all(e.reason == pruned[e.operator] for e in noted)
    for index in (1, 4):
        assert metrics.routing[index, PROFILING] < metrics.routing[2, PROFILING] / 2


def test_an_operator_is_profiled_again_once_its_place_may_change():
    rng = np.random.default_rng(0)
    rows = np.arange(12_000)
    first = rng.random(12_000) < np.where(rows < 4000, 0.02, 0.8)
    others = rng.random((12_000, 2)) < 0.85
    batch = stream(np.column_stack([first, others]), c=rows % 2)
    router = content(batch, replace(QUICK, prune=True), "c")
    run(batch.slice(0, 4000), router)
    assert 1 in router.learning.pruned
    run(batch.slice(4000), router)
    assert 1 not in router.learning.pruned
    assert any(e.operator == 1 and e.rows > 4000 for e in router.learning.events)


def test_the_only_operator_is_not_profiled():
    batch = stream(np.arange(1000)[:, None] % 2 == 0, c=np.arange(1000) % 3)
    learning = learned(batch, replace(QUICK, prune=True), "c")
    assert learning.pruned == {1: "has no choice of place"}
    assert learning.estimates.pairs == {}


def test_when_all_are_pruned_their_place_is_looked_at_now_and_then():
    rng = np.random.default_rng(0)
    outcomes = np.column_stack([rng.random(4000) < 0.02, rng.random(4000) < 0.9])
    router = content(stream(outcomes, c=np.zeros(4000, int)), replace(QUICK, prune=True), "c")
    run(stream(outcomes, c=np.zeros(4000, int)), router)
    assert set(router.learning.pruned) == {1, 2}
    assert router.learning.targets == []
    changed = stream(rng.random((2000, 2)) < 0.5, c=np.zeros(2000, int))
    run(changed, router)
    assert router.learning.pruned == {}


@pytest.mark.parametrize(
    ("by_partition", "reason"),
    [
        ([0.0, 0.9], None),
        ([0.0, 0.1], "always first"),
        ([0.8, 0.99], None),
        ([0.97, 0.99], "always last"),
    ],
)
def test_only_an_operator_far_better_or_worse_in_all_partitions_keeps_its_place(
    by_partition, reason
):
    learning = two_operators(prune=True)
    learning.estimates.seen.update({1: 100, 2: 100})
    learning.estimates.overall.update({1: 0.5, 2: 0.8})
    fed(learning, 1, [0, 0, 1, 1], [1, 1, 1, 1], calls=1.5)
    learning.estimates.pairs[1] = Pair(("c",), 1, np.array(by_partition), 0.5)
    fed(learning, 2, [0, 0, 1, 1], [1, 1, 1, 1], calls=1.5)
    found = learning.pruned.get(1)
    assert (found is None) if reason is None else found.startswith(reason)
