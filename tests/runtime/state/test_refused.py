"""State that is damaged, missing, foreign or of another query is refused, with its name."""

import json
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.errors import StateError
from querymesh.runtime.state.ownership import claim, state_folder
from querymesh.runtime.state.store import open_shard
from state_world import DESCRIPTION, QUERY, Killed, MortalStorage, World, merged


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


# --- whose the state is -----------------------------------------------------------------------


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
                patch.setattr("querymesh.runtime.state.ownership.Storage", kind)
                claim(folder, description, free=["note"])
        assert claim(folder, DESCRIPTION, free=["note"]) == DESCRIPTION
