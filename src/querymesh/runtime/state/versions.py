"""The versions of a query's join state: which there are, what they say, and whether they fit.

    <query id>/
      clock-00000005.json              batch 5 has begun; what all shards knew before it
      clock-00000007.json              batch 6 had no rows, so no task ran
      shard-0000/
        manifest-00000005.json         the state after batch 5: the blocks of each stream, in order
        manifest-00000007.json
        blocks/News-00000005-3f0c….block

Spark begins a batch when the one before is committed, and a batch with rows runs a task for every
shard. So when batch b runs, the newest batch c < b that has *begun* is complete, and every shard
has a manifest of it. Anything else means that files are gone, or that time was turned back, and is
an error; it is never read as "then the version before".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from querymesh.errors import StateError
from querymesh.runtime.state.files import BlockEntry
from querymesh.runtime.state.ownership import check_checkpoint
from querymesh.runtime.state.record import (
    REMEDY,
    MissingFileError,
    broken,
    read_record,
    to_json,
    write_record,
)
from querymesh.storage import Storage

_NUMBERED = re.compile(r"(clock|manifest)-(\d{8,})\.json")

Merge = Callable[[Sequence[dict[str, Any]]], Mapping[str, Any]]
"""What all shards know, from what each of them knows; of no shards at the beginning."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state of one shard after one batch."""

    batch: int
    previous: int | None
    """The version it was made from."""
    count: int
    """How many versions there were up to this one."""
    streams: Mapping[str, Sequence[BlockEntry]]
    dropped: Sequence[str]
    """Blocks of the previous version that nobody needs once this one is committed."""
    extra: Mapping[str, Any]

    def files(self) -> set[str]:
        """The names of the block files of all streams."""
        return {entry.file for entries in self.streams.values() for entry in entries}


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of one running query, as files."""

    storage: Storage
    query_id: str
    fingerprint: str
    shards: int

    def folder(self, shard: int) -> str:
        """The folder of a shard, beneath that of the query."""
        return f"{self.query_id}/shard-{shard:04d}"

    def clock_path(self, batch: int) -> str:
        """The file of what all shards knew before a batch."""
        return f"{self.query_id}/clock-{batch:08d}.json"

    def manifest_path(self, batch: int, shard: int) -> str:
        """The file of a shard's state after a batch."""
        return f"{self.folder(shard)}/manifest-{batch:08d}.json"

    def begun(self) -> list[int]:
        """The batches that have begun, of those whose clocks are kept."""
        return _numbers("clock", self.storage.names(self.query_id))

    def written(self, shard: int) -> list[int]:
        """The batches of which the shard has a manifest."""
        return _numbers("manifest", self.storage.names(self.folder(shard)))

    def newest_before(self, batch: int, shard: int, checkpoint: str | None) -> int | None:
        """The version a batch starts from; None for the first batch of all."""
        begun = self.begun()
        self.refuse_if_over(batch, begun)
        newest = max((number for number in begun if number < batch), default=None)
        written = [number for number in self.written(shard) if number < batch]
        if written and (newest is None or max(written) > newest):
            raise broken(self.storage.where(self.clock_path(max(written))), "is missing")
        if newest is None:
            self._first(batch, checkpoint)
        elif newest not in written:
            raise self._no_manifest(newest, shard)
        return newest

    def refuse_if_over(self, batch: int, begun: Sequence[int] | None = None) -> None:
        """Stop an attempt at a batch that a later one has followed: its state is being read."""
        later = max(self.begun() if begun is None else begun, default=batch)
        if later > batch:
            raise StateError(
                f"join state: batch {batch} of the query {self.query_id} runs, but batch {later} "
                f"has begun already (in {self.storage.where(self.query_id)}). Either a batch was "
                "read again after it was over, as by a DataFrame kept from foreachBatch: read it "
                "within the batch. Or Spark's part of the checkpoint was set back, or commits "
                f"asynchronously: {REMEDY}, and without asyncProgressTrackingEnabled"
            )

    def read_manifest(self, batch: int, shard: int) -> Manifest:
        """A shard's state after a batch."""
        path = self.manifest_path(batch, shard)
        stamps = {**self._stamps(batch), "shard": shard}
        try:
            content = read_record(self.storage, path, "manifest", stamps)
        except MissingFileError as problem:
            raise self._no_manifest(batch, shard) from problem
        streams = {
            stream: [BlockEntry(**entry) for entry in entries]
            for stream, entries in content["streams"]
        }
        return Manifest(
            batch, content["previous"], content["count"], streams, content["dropped"],
            content["extra"],
        )  # fmt: skip

    def write_manifest(self, manifest: Manifest, shard: int) -> None:
        """Make this the shard's state after the batch, whatever an earlier attempt wrote."""
        content = {
            **self._stamps(manifest.batch),
            "shard": shard,
            "previous": manifest.previous,
            "count": manifest.count,
            # A list of pairs: the order of the streams is the caller's.
            "streams": [
                [stream, [entry.to_json() for entry in entries]]
                for stream, entries in manifest.streams.items()
            ],
            "dropped": sorted(manifest.dropped),
            "extra": manifest.extra,
        }
        write_record(self.storage, self.manifest_path(manifest.batch, shard), "manifest", content)

    def clock(self, batch: int, version: int | None, merge: Merge) -> dict[str, Any]:
        """What all shards knew before the batch: whoever comes first asks all their manifests.

        Two who come first together write the same, since manifests of one version say the same.
        """
        path = self.clock_path(batch)
        stamps = {**self._stamps(batch), "version": version}
        with suppress(MissingFileError):
            known: dict[str, Any] = read_record(self.storage, path, "clock", stamps)["merged"]
            return known
        shared = []
        if version is not None:
            manifests = [self.read_manifest(version, shard) for shard in range(self.shards)]
            shared = [dict(manifest.extra.get("shared", {})) for manifest in manifests]
        # As later readers see it: JSON has no tuples, and only texts as keys.
        merged: dict[str, Any] = json.loads(to_json(merge(shared)))
        write_record(self.storage, path, "clock", {**stamps, "merged": merged})
        return merged

    def _first(self, batch: int, checkpoint: str | None) -> None:
        """Nothing is stored: fine if no batch before this one had rows, and noted for later."""
        if checkpoint is not None:
            check_checkpoint(checkpoint, self.query_id)
        path = f"began-{self.query_id}.json"
        if path not in self.storage.names():
            content = {"query": self.query_id, "batch": batch}
            write_record(self.storage, path, "began", content)
            return
        first = read_record(self.storage, path, "began", {"query": self.query_id})["batch"]
        if first < batch:
            raise broken(
                self.storage.where(self.query_id),
                f"holds no state, though batch {batch} runs and batch {first} left some: it was "
                "deleted",
            )

    def _stamps(self, batch: int) -> dict[str, Any]:
        return {
            "query": self.query_id,
            "fingerprint": self.fingerprint,
            "shards": self.shards,
            "batch": batch,
        }

    def _no_manifest(self, batch: int, shard: int) -> StateError:
        return broken(
            self.storage.where(self.manifest_path(batch, shard)),
            f"is missing: shard {shard} has no state of batch {batch}, which is over. The file was "
            "deleted; or the sink did not read the whole batch (a limit, take or first in "
            "foreachBatch); or checkpoint= is not the checkpointLocation given to writeStream",
        )


def _numbers(kind: str, names: Sequence[str]) -> list[int]:
    found = filter(None, map(_NUMBERED.fullmatch, names))
    return sorted(int(match[2]) for match in found if match[1] == kind)
