"""The words of texts as buckets of a hash table, without a vocabulary.

::

    row 0   "A dull, dull film."      word    a   dull dull film
    row 1   "Great!"                  bucket  17  905  905  3301 | 44
                                      row     0   0    0    0    | 1

A word is a run of letters, digits and letters beyond ASCII, in lower case; a character of East
Asian scripts, which have no spaces, is a word by itself. Hashed are its bytes, by arithmetic of our
own, so that every process and every machine finds the same bucket.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Ints

BUCKET_BITS = 12
BUCKETS = 1 << BUCKET_BITS
"""Some hundred sampled rows have one to three thousand different words, most of them once."""

MOST_CHARACTERS = 2048
"""Of a text so many are read: what an expensive function is asked about may be a whole book."""

MOST_BYTES = 1 << 20
"""Texts are read in pieces of about this size, so that the work needs some 40 MB at most."""

Hashes = npt.NDArray[np.uint64]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIXING = np.uint64(0xBF58476D1CE4E5B9)
_MOST_POSITIONS = 64
_IN_WORD = np.array([chr(byte).isalnum() or byte >= 128 for byte in range(128)] + [True] * 128)
_GENERAL_PUNCTUATION = (0xE2, 0x80)
"""The first two of the three bytes of dashes and of curved quotation marks."""
_FIRST_EAST_ASIAN, _LAST_EAST_ASIAN = 0xE3, 0xED
"""The first byte of a character of Chinese, Japanese or Korean, as UTF-8 has it."""


def _powers() -> Hashes:
    """Odd numbers by which the bytes of a word count, by their place in it."""
    made = np.empty(_MOST_POSITIONS, np.uint64)
    made[0] = 1
    for place in range(1, _MOST_POSITIONS):
        made[place] = (int(made[place - 1]) * int(_FACTOR)) % 2**64
    return made


_POWERS = _powers()


def column_salt(name: str) -> int:
    """What makes a word of one column another than the same word of another one."""
    return crc32(name.encode())


def hashed(numbers: Hashes, salt: int) -> Ints:
    """A bucket for each number."""
    mixed = (numbers + np.uint64(salt)) * _MIXING
    mixed ^= mixed >> np.uint64(31)
    mixed *= _FACTOR
    return (mixed >> np.uint64(64 - BUCKET_BITS)).astype(np.int64)


def words(texts: pa.Array, salt: int) -> tuple[Ints, Ints]:
    """The bucket of each word, and the row that it is in; NULL is a word of its own."""
    rows = len(texts)
    each = max(1, MOST_BYTES * rows // max(texts.nbytes, 1))
    pieces = [_words(texts.slice(at, each), salt) for at in range(0, rows, each)]
    if not pieces:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    row = [own + at for (_, own), at in zip(pieces, range(0, rows, each), strict=True)]
    return np.concatenate([bucket for bucket, _ in pieces]), np.concatenate(row)


def _words(texts: pa.Array, salt: int) -> tuple[Ints, Ints]:
    texts = pc.fill_null(pc.cast(texts, pa.large_string()), "null")
    texts = pc.utf8_lower(pc.utf8_slice_codeunits(texts, 0, MOST_CHARACTERS))
    _, offsets_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64, len(texts) + 1, 8 * texts.offset)
    data = np.frombuffer(data_buffer or b"", np.uint8)[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    inside = _inside(data)
    before = np.empty_like(inside)
    before[:1], before[1:] = False, inside[:-1]
    before[offsets[:-1][offsets[:-1] < len(data)]] = False
    starts = inside & ~before
    starts |= inside & (data >= _FIRST_EAST_ASIAN) & (data <= _LAST_EAST_ASIAN)
    at = np.flatnonzero(starts)
    if not len(at):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first = np.flatnonzero(starts[inside])
    letters = data[inside].astype(np.uint64) + np.uint64(1)
    place = np.arange(len(letters)) - np.repeat(first, np.diff(first, append=len(letters)))
    letters *= _POWERS[np.minimum(place, _MOST_POSITIONS - 1)]
    row = np.searchsorted(offsets, at, side="right") - 1
    return hashed(np.add.reduceat(letters, first), salt), row


def _inside(data: npt.NDArray[np.uint8]) -> Bools:
    """Which bytes belong to words."""
    inside = _IN_WORD[data]
    first, second = _GENERAL_PUNCTUATION
    marks = np.flatnonzero((data[:-2] == first) & (data[1:-1] == second))
    for place in range(3):
        inside[marks + place] = False
    return inside
