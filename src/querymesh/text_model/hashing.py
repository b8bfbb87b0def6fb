"""Words and pieces of texts as numbers, the same on every machine, by arithmetic on whole arrays.

::

    bytes b₀ b₁ b₂ …          S[i] = Σ_{j<i} (bⱼ + 1) pʲ   (mod 2⁶⁴)
    hash of b[s:e]            (S[e] - S[s]) · p⁻ˢ,   the same wherever those bytes stand

The hash of Karp & Rabin (1987): one sum over all texts gives the hash of any piece of any of them.
p is odd, so that it has an inverse modulo 2⁶⁴.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Bytes, Ints

Hashes: TypeAlias = npt.NDArray[np.uint64]

MOST_CHARACTERS = 2000
"""Of a text only so many are looked at: the model is to be cheap."""

SLAB_ROWS = 256
"""Texts are taken so many at a time: what is computed of a slab stays in the processor's caches."""

PIECE_BYTES = 5
"""How long the pieces are into which texts are cut whatever their words are."""

_P = 0x9E3779B97F4A7C15
_WORD = np.zeros(256, dtype=np.bool_)
_WORD[[*b"abcdefghijklmnopqrstuvwxyz0123456789'"]] = True
_WORD[128:] = True  # of letters beyond ASCII, whose lower case Arrow has made


def hashed_texts(texts: pa.Array) -> tuple[Ints, Hashes]:
    """The row and the hash of each word, each pair of neighbouring words, each piece and each
    whole text; of NULL there is none.

    >>> rows, hashes = hashed_texts(pa.array(["a b", None, "B"]))
    >>> rows.tolist(), len(set(hashes.tolist()))  # a, b, "a b", the whole; b, the whole
    ([0, 0, 0, 0, 2, 2], 5)
    """
    parts = [
        _of_slab(texts.slice(start, SLAB_ROWS), start) for start in range(0, len(texts), SLAB_ROWS)
    ]
    if not parts:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    rows = np.concatenate([rows for rows, _ in parts])
    order = np.argsort(rows, kind="stable")
    return rows[order], np.concatenate([hashes for _, hashes in parts])[order]


def mixed(hashes: Hashes, salt: int) -> Hashes:
    """The hashes with all their bits stirred (the finaliser of SplitMix64), for one use."""
    at = hashes + np.uint64(salt * _P & 0xFFFF_FFFF_FFFF_FFFF)
    at = (at ^ (at >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    at = (at ^ (at >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(at ^ (at >> np.uint64(31)), dtype=np.uint64)


def _of_slab(texts: pa.Array, first_row: int) -> tuple[Ints, Hashes]:
    data, bounds = _bytes_of(texts)
    row_of = np.repeat(np.arange(len(texts)), np.diff(bounds))
    power, inverse = _powers(1 << max(len(data) - 1, 1).bit_length())
    sums = np.zeros(len(data) + 1, dtype=np.uint64)
    np.cumsum((data.astype(np.uint64) + np.uint64(1)) * power[: len(data)], out=sums[1:])

    def hashes(starts: Any, ends: Any) -> Hashes:
        return np.asarray((sums[ends] - sums[starts]) * inverse[starts], dtype=np.uint64)

    starts, ends = _words(_WORD[data], bounds)
    words, rows_of_words = hashes(starts, ends), row_of[starts]
    together = rows_of_words[1:] == rows_of_words[:-1]
    pairs = mixed(words[:-1][together], 1) + words[1:][together]
    piece_starts = np.arange(max(len(data) - PIECE_BYTES + 1, 0))
    within = row_of[piece_starts] == row_of[piece_starts + PIECE_BYTES - 1]
    piece_starts = piece_starts[within]
    whole = np.flatnonzero(np.diff(bounds))
    rows = [rows_of_words, rows_of_words[1:][together], row_of[piece_starts], whole]
    of_all = [
        mixed(words, 2),
        mixed(pairs, 3),
        mixed(hashes(piece_starts, piece_starts + PIECE_BYTES), 4),
        mixed(hashes(bounds[whole], bounds[whole + 1]), 5),
    ]
    return np.concatenate(rows) + first_row, np.concatenate(of_all)


def _bytes_of(texts: pa.Array) -> tuple[Bytes, Ints]:
    """The bytes of texts in lower case, one after the other, and where each begins and ends."""
    plain = pc.utf8_lower(pc.utf8_slice_codeunits(pc.fill_null(texts, ""), 0, MOST_CHARACTERS))
    plain = plain.cast(pa.large_string())
    bounds = np.frombuffer(plain.buffers()[1], dtype=np.int64)
    bounds = bounds[plain.offset : plain.offset + len(plain) + 1]
    content = plain.buffers()[2]
    data = np.frombuffer(content if content is not None else b"", dtype=np.uint8)
    return data[bounds[0] : bounds[-1]], bounds - bounds[0]


def _words(is_word: Bools, bounds: Ints) -> tuple[Ints, Ints]:
    """Where words begin, and where they end; none goes from one text into the next."""
    size = len(is_word)
    parted = np.zeros(size + 1, dtype=np.bool_)
    parted[bounds] = True
    before, after = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    before[1:] = is_word[:-1]
    after[:-1] = is_word[1:]
    starts = np.flatnonzero(is_word & (~before | parted[:-1]))
    ends = np.flatnonzero(is_word & (~after | parted[1:])) + 1
    return starts, ends


@cache
def _powers(size: int) -> tuple[Hashes, Hashes]:
    """p⁰ … and p⁻⁰ …, modulo 2⁶⁴; sizes are powers of two, so that there are few of them."""
    inverse_p = np.uint64(pow(_P, -1, 1 << 64))
    power, inverse = np.full(size, np.uint64(_P)), np.full(size, inverse_p)
    power[0] = inverse[0] = 1
    return np.cumprod(power), np.cumprod(inverse)
