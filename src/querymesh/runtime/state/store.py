"""The join state of one shard in one batch: read the version before, write the version after.

Batch b reads the newest version below b and writes version b. Blocks never change and have names no
other attempt uses; the manifest that lists them is replaced in one step. So an attempt may die at
any moment, run again, or run twice at the same time: each reads the same, and each commits the
same state under its own block names::

    batch 8, attempt A    reads manifest 7 -> writes blocks ...-A -> manifest 8 (A's blocks)
    batch 8, attempt B    reads manifest 7 -> writes blocks ...-B -> manifest 8 (B's blocks)

That holds if attempts at a batch see the same rows, as Spark promises of a replayable source.

A task may commit before it hands on its results: if it dies in between, the batch runs again, reads
the version below it as before, and makes the same results. What it committed is not read until
Spark has committed the batch.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa

from querymesh.arrays import Array
from querymesh.runtime.state.files import Block, BlockEntry, forget, map_block, write_block
from querymesh.runtime.state.ownership import fingerprint_of
from querymesh.runtime.state.tidy import BLOCKS, tidy
from querymesh.runtime.state.versions import Manifest, Merge, Versions
from querymesh.storage import Storage


def open_shard(
    folder: str,
    query_id: str,
    batch: int,
    shard: int,
    shards: int,
    merge: Merge,
    checkpoint: str | None = None,
) -> ShardState:
    """The state a shard has before a batch, in a folder that the driver has claimed.

    `merge` makes what all shards know from the `extra["shared"]` of each. With Spark's `checkpoint`
    directory given, the first batch makes sure that it is the running query's.
    """
    storage = Storage(folder)
    versions = Versions(storage, query_id, fingerprint_of(storage), shards)
    version = versions.newest_before(batch, shard, checkpoint)
    before = None if version is None else versions.read_manifest(version, shard)
    storage.make(f"{versions.folder(shard)}/{BLOCKS}")
    clock = versions.clock(batch, version, merge)
    return ShardState(versions, batch, shard, before, clock)


class ShardState:
    """One attempt at one batch of one shard.

    In a `with` block, an attempt that ends without a commit takes its blocks away again.
    """

    def __init__(
        self,
        versions: Versions,
        batch: int,
        shard: int,
        before: Manifest | None,
        clock: dict[str, Any],
    ) -> None:
        self.batch = batch
        self.shard = shard
        self.version = before.batch if before else None
        self.streams: Mapping[str, Sequence[BlockEntry]] = dict(before.streams) if before else {}
        """The blocks of each stream before the batch, oldest first."""
        self.extra: dict[str, Any] = dict(before.extra) if before else {}
        """What this shard noted when it committed."""
        self.clock = clock
        """What all shards together noted as shared."""
        self._versions = versions
        self._before = before
        self._written: list[str] = []
        self._committed = False

    def map(self, entry: BlockEntry) -> Block:
        """A block of the version before, or one this attempt wrote."""
        return map_block(self._versions.storage, self._path(entry.file), entry)

    def write(
        self,
        stream: str,
        rows: pa.RecordBatch,
        arrays: Mapping[str, Array],
        meta: Mapping[str, Any],
    ) -> BlockEntry:
        """Write a block. It belongs to the state when a commit lists it."""
        label = re.sub(r"[^A-Za-z0-9_]", "_", stream)[:40]
        file = f"{label}-{self.batch:08d}-{uuid.uuid4().hex[:16]}.block"
        self._written.append(file)
        return write_block(self._versions.storage, self._path(file), rows, arrays, meta)

    def commit(self, streams: Mapping[str, Sequence[BlockEntry]], extra: Mapping[str, Any]) -> None:
        """Make these blocks, oldest first, and `extra` the state after the batch."""
        before = self._before.files() if self._before else set()
        listed = {entry.file for entries in streams.values() for entry in entries}
        strange = listed - before - set(self._written)
        if strange:
            raise ValueError(
                f"a commit lists blocks of the version before and blocks this attempt wrote, not "
                f"{', '.join(sorted(strange))}"
            )
        self._versions.refuse_if_over(self.batch)
        count = self._before.count + 1 if self._before else 1
        dropped = sorted(before - listed)
        after = Manifest(self.batch, self.version, count, streams, dropped, extra)
        self._versions.write_manifest(after, self.shard)
        self._committed = True

    def tidy(self) -> None:
        """Remove what no batch can ask for any more; see `state_tidy`."""
        tidy(self._versions, self.shard, self._before)

    def __enter__(self) -> ShardState:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._committed:
            storage, paths = self._versions.storage, list(map(self._path, self._written))
            forget(map(storage.where, paths))
            storage.delete(paths)

    def _path(self, file: str) -> str:
        return f"{self._versions.folder(self.shard)}/{BLOCKS}/{file}"
