"""The state of shards, driven as Spark would: batches with gaps, attempts that die, run again, run
twice at once or come too late. What a batch sees is always what a model in memory says."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.errors import StateError
from querymesh.runtime.state.ownership import claim
from querymesh.runtime.state.versions import Versions
from state_world import DESCRIPTION, World

DEATHS = st.lists(st.integers(0, 45), max_size=3)
BATCH = st.fixed_dictionaries(
    {
        "gap": st.integers(0, 2),
        "deaths": st.tuples(DEATHS, DEATHS),
        "whole batch again": st.booleans(),
        "driver again": st.booleans(),
    }
)


@settings(max_examples=40, deadline=None)
@given(batches=st.lists(BATCH, min_size=1, max_size=6))
def test_a_batch_sees_the_state_of_the_batch_before_whatever_died_meanwhile(batches):
    with tempfile.TemporaryDirectory() as folder:
        world, number = World(folder), -1
        for batch in batches:
            number += 1 + batch["gap"]
            for _ in range(1 + batch["whole batch again"]):
                for shard, deaths in enumerate(batch["deaths"]):
                    for steps in deaths:
                        world.attempt(number, shard, steps)
                for shard in reversed(range(world.shards)):
                    world.attempt(number, shard)
            world.done(number)
            if batch["driver again"]:
                assert claim(folder, DESCRIPTION) == DESCRIPTION
        world.run(number + 1)


@settings(max_examples=15, deadline=None)
@given(deaths=st.lists(st.tuples(DEATHS, DEATHS), min_size=1, max_size=6))
def test_what_dead_attempts_leave_is_gone_after_a_while(deaths):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("querymesh.runtime.state.tidy._SWEPT_EVERY", 3)
        world = World(folder)
        for number, both in enumerate(deaths):
            for shard, steps in enumerate(both):
                for left in steps:
                    world.attempt(number, shard, left)
            world.run(number)
        world.run(*range(len(deaths), len(deaths) + 9))
        assert world.files() == world.expected_files()


def test_the_number_of_files_does_not_grow_without_deaths(world):
    world.run(0, 1, 2)
    for batch in range(3, 12):
        world.run(batch)
        assert world.files() == world.expected_files()


@settings(max_examples=15, deadline=None)
@given(twice=st.lists(st.booleans(), min_size=2, max_size=6))
def test_attempts_that_run_at_the_same_time_agree(twice):
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(6) as threads:
        world = World(folder)
        for batch, again in enumerate(twice):
            tasks = [(batch, shard) for shard in range(world.shards)] * (3 if again else 1)
            list(threads.map(lambda task: world.attempt(*task), tasks))
            world.done(batch)
        world.run(len(twice))


def test_tidying_never_takes_what_an_attempt_is_writing(world, monkeypatch):
    """Each batch has an attempt that has written its blocks, and commits after another tidied."""
    monkeypatch.setattr("querymesh.runtime.state.tidy._SWEPT_EVERY", 1)
    for batch in range(8):
        slow = [world.open(batch, shard) for shard in range(world.shards)]
        ready = [world.advance(state, batch, state.shard) for state in slow]
        for shard in range(world.shards):
            world.attempt(batch, shard)
        for state, made in zip(slow, ready, strict=True):
            state.commit(*made)
            state.tidy()
        world.done(batch)


def test_a_straggler_is_refused_when_the_next_batch_has_begun(world):
    world.run(0, 1)
    late = world.open(2, 0)
    made = world.advance(late, 2, 0)
    world.run(2)
    world.open(3, 1)
    with pytest.raises(StateError, match="batch 3 has begun already"):
        late.commit(*made)
    with pytest.raises(StateError, match="kept from foreachBatch"):
        world.open(2, 0)
    world.run(3)


@pytest.mark.parametrize("later", [1, 2, 3, 6])
def test_a_straggler_that_slips_through_does_no_harm(world, monkeypatch, later):
    """It looked just before the next batch began, and commits, tidies or gives up long after."""
    monkeypatch.setattr("querymesh.runtime.state.tidy._SWEPT_EVERY", 1)
    world.run(0, 1, 2)
    late, beaten = world.open(3, 0), world.open(3, 0)
    made = world.advance(late, 3, 0)
    world.advance(beaten, 3, 0)
    world.run(3)
    for batch in range(4, 3 + later):
        world.run(batch)
    now = world.open(3 + later, 0)
    with monkeypatch.context() as patch:
        patch.setattr(Versions, "refuse_if_over", lambda *_: None)
        late.commit(*made)
        late.tidy()
        beaten.tidy()
        beaten.__exit__(None, None, None)
    world.check(now, 0)
    world.run(3 + later, 4 + later, 5 + later)


def test_an_attempt_that_fails_takes_its_blocks_away(world):
    world.run(0)
    before = world.files()
    with suppress(ZeroDivisionError), world.open(1, 0) as state:
        world.block(state, "News", [1, 2])
        raise ZeroDivisionError
    assert {os.path.basename(path) for path in world.files() - before} == {"clock-00000001.json"}


def test_a_commit_lists_only_blocks_it_can_know(world):
    world.run(0)
    other = world.open(1, 0)
    entry = world.block(other, "News", [1])
    with pytest.raises(ValueError, match=entry.file):
        world.open(1, 0).commit({"News": [entry]}, {})


def test_state_on_a_file_system_that_cannot_map():
    world = World("mock:///not-local/state")
    world.run(*range(6))


def test_the_first_batch_with_rows_need_not_be_the_first_batch(world):
    world.run(3, 9)
