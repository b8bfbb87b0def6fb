"""State of shards in a folder, attempts that may die at any step, and a model of it in memory."""

import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from querymesh.runtime.state import store as state_store
from querymesh.runtime.state.files import forget
from querymesh.runtime.state.ownership import claim
from querymesh.runtime.state.store import open_shard
from querymesh.storage import Storage

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
