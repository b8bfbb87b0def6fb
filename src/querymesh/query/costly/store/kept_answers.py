"""Many answers in little space, in the order of their keys, and the file that holds them.

    +--------+--------------------------+------------------------------------+
    | magic  | 128 bits of a hash       | Arrow IPC file: key, value, at     |
    +--------+--------------------------+------------------------------------+
    0        8                          24

A file is read whole and believed if its hash is right. An answer takes some 24 bytes and its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.arrays import Array, Bools, Floats
from querymesh.query.costly.distinct import KEY_BYTES, taken

Answer = tuple[Any, float]
"""The value, and when it was asked for (seconds since 1970)."""

FOREVER = float("-inf")
"""The time after which answers are good, where all are."""

_MAGIC = b"QMANSWR1"
_HASH_BYTES = 16
_HEAD_BYTES = len(_MAGIC) + _HASH_BYTES


@dataclass(frozen=True)
class KeptAnswers:
    """Answers by the two halves of their keys, in order, each key once."""

    high: Array
    low: Array
    values: pa.Array
    at: Floats

    def __len__(self) -> int:
        return len(self.at)

    @property
    def size_bytes(self) -> int:
        """What they take in memory."""
        return int(self.high.nbytes + self.low.nbytes + self.at.nbytes + self.values.nbytes)

    def find(self, keys: Sequence[bytes], not_before: float) -> dict[bytes, Answer]:
        """Those of some keys that were asked for lately enough."""
        if not len(self) or not keys:
            return {}
        high, low = _halves(b"".join(keys))
        places = np.minimum(np.searchsorted(self.high, high), len(self) - 1)
        # Hardly ever do two keys share a half.
        while (behind := self._are_behind(places, high, low)).any():
            places = places + behind
        is_there = (self.high[places] == high) & (self.low[places] == low)
        wanted = np.flatnonzero(is_there & (self.at[places] >= not_before))
        places = places[wanted]
        values = taken(self.values, places).to_pylist()
        answers = zip(values, self.at[places].tolist(), strict=True)
        return dict(zip((keys[at] for at in wanted.tolist()), answers, strict=True))

    def _are_behind(self, places: Array, high: Array, low: Array) -> Bools:
        """Where the key of the next place may be the one."""
        behind: Bools = (self.high[places] == high) & (self.low[places] < low)
        behind &= places < len(self) - 1
        return behind

    def packed(self) -> bytes:
        """The content of a file."""
        keys = np.empty((len(self), 2), dtype=">u8")
        keys[:, 0], keys[:, 1] = self.high, self.low
        key_type = pa.binary(KEY_BYTES)
        columns = {
            "key": pa.Array.from_buffers(key_type, len(self), [None, pa.py_buffer(keys)]),
            "value": self.values,
            "at": pa.array(self.at),
        }
        table = pa.table(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        content = bytes(sink.getvalue())
        return _MAGIC + _hash(content) + content


def answers_of(answers: Mapping[bytes, Answer], kind: pa.DataType) -> KeptAnswers:
    """Answers whose values are of a type; pyarrow's error if one is not."""
    values = pa.array([value for value, _ in answers.values()], kind)
    high, low = _halves(b"".join(answers))
    at = np.array([at for _, at in answers.values()], dtype=np.float64)
    return _in_order(KeptAnswers(high, low, values, at), FOREVER)


def unpacked(content: bytes, kind: pa.DataType) -> KeptAnswers:
    """What is in a file; ValueError where it is not as it was written, or of another type."""
    if content[: len(_MAGIC)] != _MAGIC:
        raise ValueError("it is not a file of answers")
    body = memoryview(content)[_HEAD_BYTES:]
    if _hash(body) != content[len(_MAGIC) : _HEAD_BYTES]:
        raise ValueError("it is not as it was written")
    table = pa.ipc.open_file(pa.py_buffer(body)).read_all().combine_chunks()
    table.validate(full=True)
    expected = pa.schema({"key": pa.binary(KEY_BYTES), "value": kind, "at": pa.float64()})
    if table.schema != expected or any(table[name].null_count for name in ("key", "at")):
        raise ValueError(f"it has other columns: {table.schema.to_string()}")
    key, value, at = (_one_array(column) for column in table.columns)
    start = KEY_BYTES * key.offset
    high, low = _halves(memoryview(key.buffers()[1])[start : start + KEY_BYTES * len(key)])
    return _in_order(KeptAnswers(high, low, value, np.asarray(at)), FOREVER)


def merged(parts: Sequence[KeptAnswers], not_before: float) -> KeptAnswers:
    """Answers of several as one, the newest of each key, without those that are too old."""
    halves = [np.concatenate(each) for each in zip(*((p.high, p.low) for p in parts), strict=True)]
    values = pa.concat_arrays([part.values for part in parts])
    at = np.concatenate([part.at for part in parts])
    return _in_order(KeptAnswers(halves[0], halves[1], values, at), not_before)


def together(sizes: Sequence[int]) -> int:
    """How many of some sizes, which rise, are worth being made one: all but those far larger.

    So each answer is written again only when what it lies in has about doubled, and of any sizes
    few remain.

    >>> together([10, 10, 12, 5000]), together([1, 100, 100]), together([10, 100])
    (3, 3, 1)
    """
    count, before = 1, 0
    for at, size in enumerate(sizes):
        if at and size <= 2 * before:
            count = at + 1
        before += size
    return count


def _in_order(answers: KeptAnswers, not_before: float) -> KeptAnswers:
    order = np.lexsort((-answers.at, answers.low, answers.high))
    order = order[answers.at[order] >= not_before]
    high, low = answers.high[order], answers.low[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    values = taken(answers.values, order[is_new])
    return KeptAnswers(high[is_new], low[is_new], values, answers.at[order[is_new]])


def _halves(keys: bytes | memoryview) -> tuple[Array, Array]:
    both = np.frombuffer(keys, ">u8").reshape(-1, 2).astype(np.uint64)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _hash(content: Any) -> bytes:
    return blake2b(content, digest_size=_HASH_BYTES).digest()
