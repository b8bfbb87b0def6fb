"""What of the join state can go, and when.

With batch b running from version v, and v made from version u::

    version      u            v            b
    clock        its time     kept         kept
    manifest     deleted      read by b    being written
    blocks       those not in v: deleted   kept

Batch b may run again at any time and reads v; nobody reads u again, for v is committed. The blocks
that v dropped stand in v's own manifest, so no folder is listed to find them.

Attempts that died leave blocks and `.part` files no manifest names. Every few versions the folders
are listed, and such files removed if they are older than the clocks u, v and b: whoever wrote them
was at a batch before u. An attempt at b, or a straggler still at v or u, has begun after that, so
what it is writing is younger and stays. (A straggler may write its own clock once more, and make it
younger; therefore the oldest of the three counts.) All these times are the file system's own.
"""

from __future__ import annotations

from querymesh.runtime.state.files import forget
from querymesh.runtime.state.versions import Manifest, Versions
from querymesh.storage import PART

BLOCKS = "blocks"
"""The blocks lie in a folder of their own, so that finding manifests does not list them."""

_SWEPT_EVERY = 16
"""Versions between two listings of a shard's blocks."""


def tidy(versions: Versions, shard: int, before: Manifest | None) -> None:
    """Remove what nobody needs while batches run from `before`; shard 0 also sees to the clocks."""
    if before is None:
        return
    folder = versions.folder(shard)
    _remove(versions, [f"{folder}/{BLOCKS}/{file}" for file in before.dropped])
    old = [number for number in versions.written(shard) if number < before.batch]
    _remove(versions, [versions.manifest_path(number, shard) for number in old])
    if before.previous is None:
        return
    if (before.count + shard) % _SWEPT_EVERY == 0:
        _sweep(versions, shard, before, before.previous)
    if shard == 0:
        past = [number for number in versions.begun() if number < before.previous]
        _remove(versions, [versions.clock_path(number) for number in past])


def _sweep(versions: Versions, shard: int, before: Manifest, previous: int) -> None:
    """Remove what dead attempts left. The shards take turns, so that no batch lists all folders."""
    storage, folder = versions.storage, versions.folder(shard)
    around = storage.modified(versions.query_id)
    clocks_ns = {
        number: around.get(versions.clock_path(number).rpartition("/")[2], 0)
        for number in versions.begun()
    }
    # Without clock u, later batches have tidied: this attempt is a straggler, and knows too little.
    if previous not in clocks_ns:
        return
    oldest_ns = min(clocks_ns.values())
    needed = before.files()
    dead = [
        f"{folder}/{BLOCKS}/{name}"
        for name, time_ns in storage.modified(f"{folder}/{BLOCKS}").items()
        if time_ns < oldest_ns and name not in needed
    ]
    places = {folder: storage.modified(folder)}
    if shard == 0:
        places |= {versions.query_id: around, "": storage.modified("")}
    dead += [
        f"{place}/{name}" if place else name
        for place, times_ns in places.items()
        for name, time_ns in times_ns.items()
        if time_ns < oldest_ns and name.endswith(PART)
    ]
    _remove(versions, dead)


def _remove(versions: Versions, paths: list[str]) -> None:
    forget(map(versions.storage.where, paths))
    versions.storage.delete(paths)
