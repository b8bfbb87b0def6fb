"""A block: rows of one stream in one shard with their index arrays, in one file, never changed.

    +--------------------+-----+---------+-----+---------+-----+--------+--------------------------+
    | Arrow IPC file     | pad | array 0 | pad | array 1 | ... | footer | footer length, crc32,    |
    | (one record batch) |     |         |     |         |     | JSON   | magic        (20 bytes)  |
    +--------------------+-----+---------+-----+---------+-----+--------+--------------------------+
    0                          64-byte boundaries                        little endian

The footer says where the arrays begin, their types and lengths, and carries the writer's `meta`.
The checksum is that of everything before it. On a local file system a block is mapped: rows and
arrays are views of the file, read-only, and cost no memory of the process.

A Python worker serves the same shard batch after batch. What it mapped it keeps, checked once
(`_MappedBlocks`).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import IO, Any

import numpy as np
import pyarrow as pa

from querymesh.arrays import Array
from querymesh.runtime.state.record import broken, to_json
from querymesh.storage import Storage

_MAGIC = b"QMBLOCK1"
_END = struct.Struct("<QI8s")
_ALIGNMENT_BYTES = 64

_KEPT_BLOCKS = 2048
_KEPT_IDLE_S = 120.0


@dataclass(frozen=True, slots=True)
class BlockEntry:
    """What a manifest says about a block: enough to know the file again, and not to open it."""

    file: str
    size_bytes: int
    crc32: int
    rows: int
    meta: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As it stands in a manifest."""
        return {
            "file": self.file,
            "size_bytes": self.size_bytes,
            "crc32": self.crc32,
            "rows": self.rows,
            "meta": self.meta,
        }


@dataclass(frozen=True, slots=True)
class Block:
    """What a block file holds: stored rows, arrays of their indices, and what describes them."""

    rows: pa.RecordBatch
    arrays: Mapping[str, Array]
    meta: Mapping[str, Any]


def write_block(
    storage: Storage,
    path: str,
    rows: pa.RecordBatch,
    arrays: Mapping[str, Array],
    meta: Mapping[str, Any],
) -> BlockEntry:
    """Write a block; it has its name when it is complete."""
    laid_out: dict[str, list[Any]] = {}
    with storage.writing(path) as file:
        out = _Summed(file)
        with pa.ipc.new_file(pa.PythonFile(out, mode="w"), rows.schema) as writer:
            writer.write_batch(rows)
        rows_bytes = out.size_bytes
        for name, array in arrays.items():
            _check_storable(name, array)
            out.write(bytes(-out.size_bytes % _ALIGNMENT_BYTES))
            laid_out[name] = [out.size_bytes, array.dtype.str, len(array)]
            out.write(np.ascontiguousarray(array).view(np.uint8))
        footer = to_json({"rows_bytes": rows_bytes, "arrays": laid_out, "meta": meta})
        out.write(footer)
        out.write(struct.pack("<Q", len(footer)))
        crc32 = out.crc32
        out.write(struct.pack("<I8s", crc32, _MAGIC))
    kept = json.loads(footer)["meta"]
    return BlockEntry(path.rpartition("/")[2], out.size_bytes, crc32, rows.num_rows, kept)


def map_block(storage: Storage, path: str, entry: BlockEntry) -> Block:
    """A block written before, checked against its entry once per process."""
    where = storage.where(path)
    known = _mapped.get(where, entry.crc32)
    if known is None:
        try:
            content = storage.map(path)
        except FileNotFoundError as problem:
            raise broken(where, "is missing") from problem
        known = _checked(content, where, entry)
        _mapped.put(where, entry.crc32, known)
    return known


def forget(wheres: Iterable[str] | None = None) -> None:
    """Let go of mapped blocks by their full names, or of all: a deleted file's space gets free."""
    _mapped.forget(wheres)


def _check_storable(name: str, array: Array) -> None:
    plain = array.dtype.names is None and array.dtype.subdtype is None and not array.dtype.hasobject
    if array.ndim != 1 or not plain or array.dtype.itemsize == 0:
        raise ValueError(
            f"the index array {name!r} has the type {array.dtype} and {array.ndim} dimensions: "
            "a block keeps arrays of one dimension and of a plain type of fixed size"
        )


def _checked(content: pa.Buffer, where: str, entry: BlockEntry) -> Block:
    if content.size < _END.size or content.size != entry.size_bytes:
        raise broken(
            where, f"has {content.size} bytes, not {entry.size_bytes}: it is cut or foreign"
        )
    view = memoryview(content)
    footer_bytes, crc32, magic = _END.unpack(view[-_END.size :])
    if magic != _MAGIC:
        raise broken(where, "is not a block of join state, or its end is damaged")
    summed = struct.calcsize("<Q") - _END.size
    if zlib.crc32(view[:summed]) != crc32:
        raise broken(where, "is damaged: its checksum does not fit its content")
    if crc32 != entry.crc32:
        raise broken(where, "is whole, but not the block that was written under this name")
    footer = json.loads(bytes(view[-_END.size - footer_bytes : -_END.size]))
    with pa.ipc.open_file(content.slice(0, footer["rows_bytes"])) as reader:
        rows = reader.get_batch(0)
    arrays = {
        name: _view(content, start, np.dtype(kind), length)
        for name, (start, kind, length) in footer["arrays"].items()
    }
    return Block(rows, arrays, footer["meta"])


def _view(content: pa.Buffer, start: int, dtype: np.dtype[Any], length: int) -> Array:
    array = np.frombuffer(content, np.uint8, length * dtype.itemsize, start).view(dtype)
    array.flags.writeable = False
    return array


class _Summed:
    """A stream that knows the size and the checksum of what went through it."""

    closed = False

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.size_bytes = 0
        self.crc32 = 0

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._out.write(view)
        self.crc32 = zlib.crc32(view, self.crc32)
        self.size_bytes += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None:
        """Arrow asks for it; the file is flushed when it is closed."""


class _MappedBlocks:
    """The blocks this process has mapped and checked; the one unused for longest goes first.

    A block that nobody asked for in a while goes as well: another worker may serve its shard now,
    and may have deleted the file, whose space stays taken while it is mapped here.
    """

    def __init__(self) -> None:
        self._blocks: OrderedDict[tuple[str, int], tuple[Block, float]] = OrderedDict()
        self._lock = Lock()

    def get(self, where: str, crc32: int) -> Block | None:
        with self._lock:
            now = monotonic()
            found = self._blocks.pop((where, crc32), None)
            if found is not None:
                self._blocks[where, crc32] = (found[0], now)
            while self._blocks and now - next(iter(self._blocks.values()))[1] > _KEPT_IDLE_S:
                self._blocks.popitem(last=False)
            return found[0] if found is not None else None

    def put(self, where: str, crc32: int, block: Block) -> None:
        with self._lock:
            self._blocks[where, crc32] = (block, monotonic())
            while len(self._blocks) > _KEPT_BLOCKS:
                self._blocks.popitem(last=False)

    def forget(self, wheres: Iterable[str] | None) -> None:
        gone = None if wheres is None else set(wheres)
        with self._lock:
            for key in [key for key in self._blocks if gone is None or key[0] in gone]:
                del self._blocks[key]


_mapped = _MappedBlocks()
