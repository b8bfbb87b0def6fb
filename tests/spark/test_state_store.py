"""The state of shards, driven as Spark would: batches with gaps, attempts that die, run again, run
twice at once or come too late. What a batch sees is always what a model in memory says."""

import json
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.errors import StateError
from querymesh.spark import state_store
from querymesh.spark.state_files import forget
from querymesh.spark.state_query import claim, state_folder
from querymesh.spark.state_store import open_shard
from querymesh.spark.state_versions import Versions
from querymesh.spark.storage import Storage

QUERY = "6f1d2c1e-query"
DESCRIPTION = {"the query": "SELECT *", "the window of News": "[RANGE 60 seconds]", "shards": "2"}


def merged(shared):
    return {"newest": max((known["newest"] for known in shared), default=None)}


class Killed(BaseException):
    """The process is gone: nothing it would do afterwards happens."""


class MortalStorage(Storage):
    """Does so many steps on files, and then nothing any more; a write may stop halfway."""

    left = 0

    def _step(self):
        self.left -= 1
        if self.left < 0:
            raise Killed

    def read(self, path):
        self._step()
        return super().read(path)

    def map(self, path):
        self._step()
        return super().map(path)

    def names(self, path=""):
        self._step()
        return super().names(path)

    def modified(self, path):
        self._step()
        return super().modified(path)

    def delete(self, paths):
        for path in paths:
            self._step()
            super().delete([path])

    def make(self, path=""):
        self._step()
        super().make(path)

    @contextmanager
    def _create(self, path):
        self._step()
        with super()._create(path) as out:
            yield self._Stream(self, out)
        self._step()

    def _rename(self, old, new):
        self._step()
        super()._rename(old, new)
        self._step()

    class _Stream:
        def __init__(self, storage, out):
            self.storage, self.out = storage, out

        def write(self, data):
            self.out.write(memoryview(data)[: memoryview(data).nbytes // 2])
            self.storage._step()
            self.out.write(memoryview(data)[memoryview(data).nbytes // 2 :])


class Shard:
    """The model: what one shard holds. A batch adds a block to each stream, lets old ones expire,
    and now and then joins two into one."""

    def __init__(self):
        self.version = None
        self.streams = {}
        self.total = 0

    def after(self, batch, shard):
        new = Shard()
        new.version = batch
        new.total = self.total + batch
        for stream in ("News", "odd/name é"):
            blocks = [*self.streams.get(stream, []), added(batch, shard, stream)][-4:]
            if batch % 5 == 0 and len(blocks) > 2:
                blocks = [blocks[0] + blocks[1], *blocks[2:]]
            new.streams[stream] = blocks
        return new


def added(batch, shard, stream):
    return [batch * 100 + shard * 10 + len(stream)] * (batch % 3)


class World:
    """A folder with state, and what should be in it."""

    def __init__(self, folder, shards=2):
        self.folder, self.shards = folder, shards
        self.model = [Shard() for _ in range(shards)]
        claim(folder, DESCRIPTION)

    def open(self, batch, shard, steps=None):
        """An attempt, in a process of its own that lives for so many steps."""
        forget()
        if steps is None:
            state = open_shard(self.folder, QUERY, batch, shard, self.shards, merged)
        else:
            kind = type("Mortal", (MortalStorage,), {"left": steps})
            original, state_store.Storage = state_store.Storage, kind
            try:
                state = open_shard(self.folder, QUERY, batch, shard, self.shards, merged)
            finally:
                state_store.Storage = original
        self.check(state, shard)
        return state

    def check(self, state, shard):
        model = self.model[shard]
        assert state.version == model.version
        seen = {
            stream: [state.map(entry).rows.column("v").to_pylist() for entry in entries]
            for stream, entries in state.streams.items()
        }
        assert seen == model.streams
        assert list(seen) == list(model.streams)
        assert state.extra.get("total", 0) == model.total
        newest = None if model.version is None else model.version * 10 + self.shards - 1
        assert state.clock == {"newest": newest}

    def advance(self, state, batch, shard):
        """What a task does with the state: as the model does, block by block."""
        streams = {}
        for stream, target in self.model[shard].after(batch, shard).streams.items():
            known = list(state.streams.get(stream, []))[-3:]
            values = added(batch, shard, stream)
            blocks = [*known, self.block(state, stream, values)]
            if len(target) < len(blocks):
                joined = [state.map(entry).rows.column("v").to_pylist() for entry in blocks[:2]]
                blocks = [self.block(state, stream, joined[0] + joined[1]), *blocks[2:]]
            streams[stream] = blocks
        return streams, {
            "total": self.model[shard].total + batch,
            "shared": {"newest": batch * 10 + shard},
        }

    def block(self, state, stream, values):
        rows = pa.record_batch({"v": pa.array(values, pa.int64())})
        return state.write(stream, rows, {"order": np.arange(len(values))}, {"rows": len(values)})

    def attempt(self, batch, shard, steps=None):
        try:
            with self.open(batch, shard, steps) as state:
                state.commit(*self.advance(state, batch, shard))
                state.tidy()
        except Killed:
            assert steps is not None

    def done(self, batch):
        self.model = [model.after(batch, shard) for shard, model in enumerate(self.model)]

    def run(self, *batches):
        for batch in batches:
            for shard in range(self.shards):
                self.attempt(batch, shard)
            self.done(batch)

    def files(self):
        return {str(path) for path in Path(self.folder).rglob("*") if path.is_file()}

    def expected_files(self):
        """What the newest two versions need, and nothing else."""
        home = Path(self.folder) / QUERY
        clocks = sorted(home.glob("clock-*.json"))[-3:]
        needed = {
            Path(self.folder) / "query.json",
            Path(self.folder) / f"began-{QUERY}.json",
            *clocks,
        }
        for folder in home.glob("shard-*"):
            for manifest in sorted(folder.glob("manifest-*.json"))[-2:]:
                needed.add(manifest)
                for _, entries in json.loads(manifest.read_text())["content"]["streams"]:
                    needed |= {folder / "blocks" / entry["file"] for entry in entries}
        return set(map(str, needed))


@pytest.fixture
def world(tmp_path):
    return World(str(tmp_path / "state"))


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
        patch.setattr("querymesh.spark.state_tidy._SWEPT_EVERY", 3)
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
    monkeypatch.setattr("querymesh.spark.state_tidy._SWEPT_EVERY", 1)
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
    monkeypatch.setattr("querymesh.spark.state_tidy._SWEPT_EVERY", 1)
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


# --- damage -----------------------------------------------------------------------------------


class Damaged(World):
    """Three batches ran, and a fourth has begun. Everything in the folder can be put back."""

    def __init__(self, folder):
        super().__init__(folder)
        self.run(1, 2, 4)
        self.open(7, 0)
        home = Path(folder)
        self.old = [home / QUERY / "clock-00000002.json", home / QUERY / "clock-00000001.json"]
        self.old += home.rglob("manifest-00000002.json")
        self.old += [home / f"began-{QUERY}.json", home / QUERY / "clock-00000004.json"]
        newest = [json.loads(path.read_text()) for path in home.rglob("manifest-00000004.json")]
        used = {
            entry["file"]
            for one in newest
            for _, entries in one["content"]["streams"]
            for entry in entries
        }
        self.old += [path for path in home.rglob("*.block") if path.name not in used]
        self.needed = sorted(
            path for path in home.rglob("*") if path.is_file() and path not in self.old
        )
        self.old = sorted(path for path in self.old if path.exists())

    def read_all(self):
        for shard in range(self.shards):
            self.open(7, shard)

    @contextmanager
    def changed(self, path, content):
        before = path.read_bytes()
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        try:
            yield
        finally:
            path.write_bytes(before)

    def refused(self, *paths):
        with pytest.raises(StateError) as raised:
            self.read_all()
        assert any(str(path) in str(raised.value) for path in paths), raised.value
        assert "checkpoint" in str(raised.value)
        return str(raised.value)


@pytest.fixture(scope="module")
def damaged():
    folder = tempfile.mkdtemp()
    yield Damaged(folder)
    shutil.rmtree(folder)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_changed_byte_in_any_file_that_is_needed_is_an_error_with_its_name(damaged, data):
    path = data.draw(st.sampled_from(damaged.needed))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    with damaged.changed(path, bytes(content)):
        damaged.refused(path)
    damaged.read_all()


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_file_that_was_cut_anywhere_is_an_error_with_its_name(damaged, data):
    path = data.draw(st.sampled_from(damaged.needed))
    content = path.read_bytes()
    with damaged.changed(path, content[: data.draw(st.integers(0, len(content) - 1))]):
        damaged.refused(path)


def test_files_of_the_past_may_be_damaged(damaged):
    assert len(damaged.old) >= 5
    for path in damaged.old:
        with damaged.changed(path, b"{}"):
            damaged.read_all()


def test_a_file_in_the_place_of_another_is_an_error_with_its_name(damaged):
    """Each pair of files of one kind, among shards, streams and batches."""
    everything = damaged.needed + damaged.old
    pairs = [
        (one, other)
        for one in damaged.needed
        for other in everything
        if one.suffix == other.suffix and one.read_bytes() != other.read_bytes()
    ]
    assert len(pairs) > 20
    for one, other in pairs:
        with damaged.changed(one, other.read_bytes()), damaged.changed(other, one.read_bytes()):
            damaged.refused(one, other)
    damaged.read_all()


def test_a_deleted_file_is_an_error_with_its_name(damaged):
    begun = [path for path in damaged.needed if path.name == "clock-00000007.json"]
    for path in set(damaged.needed) - set(begun):
        with damaged.changed(path, None):
            damaged.refused(path)
    with damaged.changed(begun[0], None):
        damaged.read_all()


def test_a_deleted_clock_of_the_newest_version_is_an_error_with_its_name(damaged):
    path = next(path for path in damaged.old if path.name == "clock-00000004.json")
    with damaged.changed(path, None):
        assert "is missing" in damaged.refused(path)


def test_a_missing_manifest_tells_the_shard_the_batch_and_what_may_have_happened(world):
    world.run(0, 1)
    world.attempt(2, 0)
    world.done(2)
    with pytest.raises(StateError, match="shard 1 has no state of batch 2") as raised:
        world.open(3, 0)
    for cause in ("deleted", "did not read the whole batch", "checkpointLocation"):
        assert cause in str(raised.value)


def test_a_checkpoint_that_was_set_back_is_refused(world):
    world.run(0, 1, 2, 3)
    with pytest.raises(StateError, match="batch 3 has begun already"):
        world.open(2, 0)


def test_another_number_of_shards_is_refused(world):
    world.run(0, 1)
    with pytest.raises(StateError, match="its shards is 2, not 3"):
        open_shard(world.folder, QUERY, 2, 0, 3, merged)


def test_state_copied_from_another_query_is_refused(world, tmp_path):
    world.run(0, 1)
    other = tmp_path / "other"
    claim(str(other), {**DESCRIPTION, "the window of News": "[RANGE 1 hour]"})
    shutil.copytree(Path(world.folder) / QUERY, other / QUERY)
    with pytest.raises(StateError, match="fingerprint"):
        open_shard(str(other), QUERY, 2, 0, 2, merged)
    shutil.copytree(Path(world.folder) / QUERY, Path(world.folder) / "other-query")
    with pytest.raises(StateError, match="its query is 6f1d2c1e-query, not other-query"):
        open_shard(world.folder, "other-query", 2, 0, 2, merged)


# --- the first batch, and whose the state is --------------------------------------------------


def test_the_first_batch_with_rows_need_not_be_the_first_batch(world):
    world.run(3, 9)


def test_a_folder_emptied_after_batches_ran_is_refused(world):
    world.run(3)
    shutil.rmtree(Path(world.folder) / QUERY)
    with pytest.raises(StateError, match="batch 4 runs and batch 3 left some"):
        world.open(4, 0)


def test_a_folder_nobody_claimed_is_refused(tmp_path):
    with pytest.raises(StateError, match=r"query\.json is missing"):
        open_shard(str(tmp_path), QUERY, 0, 0, 1, merged)


def test_a_checkpoint_of_another_query_is_refused_in_the_first_batch(tmp_path):
    checkpoint = str(tmp_path)
    folder = state_folder(checkpoint)
    claim(folder, DESCRIPTION, checkpoint=checkpoint)
    first = (folder, QUERY, 0, 0, 2, merged, checkpoint)
    with pytest.raises(StateError, match="is of no query"):
        open_shard(*first)
    (tmp_path / "metadata").write_text('{"id":"another"}')
    with pytest.raises(StateError, match="is of the query another"):
        open_shard(*first)
    (tmp_path / "metadata").write_text(f'{{"id":"{QUERY}"}}')
    assert open_shard(*first).version is None


def test_a_first_claim_on_a_checkpoint_that_has_run_is_refused(tmp_path):
    checkpoint = str(tmp_path)
    (tmp_path / "commits").mkdir()
    claim(state_folder(f"{checkpoint}/new"), DESCRIPTION, checkpoint=f"{checkpoint}/new")
    (tmp_path / "commits" / "12").write_text("v1")
    (tmp_path / "commits" / ".12.crc").write_text("")
    with pytest.raises(StateError, match="committed batch 12"):
        claim(state_folder(checkpoint), DESCRIPTION, checkpoint=checkpoint)


def test_a_claim_without_the_file_of_the_claim_before_is_refused(world):
    world.run(0)
    (Path(world.folder) / "query.json").unlink()
    with pytest.raises(StateError, match=r"query\.json is missing, though"):
        claim(world.folder, DESCRIPTION)


def test_a_query_that_was_asked_for_and_never_ran_may_still_change(world):
    changed = {**DESCRIPTION, "the window of News": "[RANGE 2 minutes]"}
    assert claim(world.folder, changed) == changed
    world.run(0)
    with pytest.raises(StateError, match="the window of News was"):
        claim(world.folder, DESCRIPTION)


def test_a_changed_query_is_refused_with_all_that_changed(world):
    world.run(0)
    changed = {"the query": "SELECT *", "the window of News": "[RANGE 2 minutes]", "the keys": "id"}
    with pytest.raises(StateError) as raised:
        claim(world.folder, changed)
    text = str(raised.value)
    assert "the window of News was [RANGE 60 seconds], now [RANGE 2 minutes]" in text
    assert "shards was 2, now (none)" in text
    assert "the keys was (not given), now id" in text
    assert "the query" not in text.replace("the query as it was", "")
    assert "new checkpoint directory" in text


def test_free_labels_are_stored_anew_and_adopted_ones_stay(world):
    world.run(0)
    changed = {**DESCRIPTION, "the query": "select *", "shards": "8", "note": "x"}
    got = claim(world.folder, changed, free=["the query", "note"], adopt=["shards"])
    assert got == {**changed, "shards": "2"}
    assert claim(world.folder, got) == got
    world.run(1)


def test_a_claim_that_dies_leaves_the_claim_before_or_the_new_one(tmp_path, monkeypatch):
    changed = {**DESCRIPTION, "note": "x"}
    for steps in range(12):
        folder = str(tmp_path / str(steps))
        for description in (DESCRIPTION, changed):
            kind = type("Mortal", (MortalStorage,), {"left": steps})
            with monkeypatch.context() as patch, suppress(Killed):
                patch.setattr("querymesh.spark.state_query.Storage", kind)
                claim(folder, description, free=["note"])
        assert claim(folder, DESCRIPTION, free=["note"]) == DESCRIPTION
