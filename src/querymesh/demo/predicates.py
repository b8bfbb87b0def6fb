"""The demo's Python predicates: plain row-by-row work on text, some tens of microseconds each.

They stand for what people really put into UDFs: parse something, look for patterns, score it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pyarrow as pa

from querymesh.query.predicate.decorators import predicate
from querymesh.query.predicate.predicate import Predicate

BULLISH_PATTERNS = {
    "double bottom": re.compile(r"d{4,}u{3,}d{3,}u{5,}"),
    "bull flag": re.compile(r"u{6,}[df]{2,4}u{4,}"),
    "ascending triangle": re.compile(r"u{3,}d{2}u{3,}d{1}u{3,}$"),
    "symmetrical triangle": re.compile(r"u{4}d{4}u{3}d{3}u{2}d{2}u+$"),
}
"""The paper's BullishPatterns table, over a history of moves: u up, d down, f flat."""

FLAT = 0.0004

GOOD_WORDS = ("beat", "strong", "record", "growth", "upgrade", "surge", "confident", "demand")
BAD_WORDS = ("miss", "weak", "loss", "lawsuit", "downgrade", "slump", "recall", "shortage")
TONE = {**dict.fromkeys(GOOD_WORDS, 1), **dict.fromkeys(BAD_WORDS, -1)}


def is_bullish(history: str) -> bool:
    """Whether a price history, smoothed over three prices, shows a bullish pattern."""
    prices = [float(price) for price in history.split()]
    smooth = [sum(prices[i : i + 3]) / 3 for i in range(len(prices) - 2)]
    moves = "".join(
        "u" if now > before * (1 + FLAT) else "d" if now < before * (1 - FLAT) else "f"
        for before, now in pairwise(smooth)
    )
    return any(pattern.search(moves) for pattern in BULLISH_PATTERNS.values())


def is_upbeat(commentary: str) -> bool:
    """Whether good words outweigh bad ones in what is said about a stock."""
    words = re.findall(r"[a-z]+", commentary.lower())
    return sum(TONE.get(word, 0) for word in words) > 0


def is_unusual(volumes: str) -> bool:
    """Whether the latest volume stands out from those before, by three standard deviations."""
    *before, last = [int(volume) for volume in volumes.split()]
    mean = sum(before) / len(before)
    variance = sum((volume - mean) ** 2 for volume in before) / len(before)
    return (last - mean) ** 2 > 9 * variance and last > mean


RowTest = Callable[[str], bool]
ROW_TESTS: dict[str, tuple[RowTest, str]] = {
    "matches_bullish": (is_bullish, "data"),
    "upbeat": (is_upbeat, "commentary"),
    "unusual_volume": (is_unusual, "volumes"),
}
"""By SQL name: the test of one value, and the column it is for."""


def on_arrow(test: RowTest) -> Callable[[pa.Array], pa.Array]:
    """A row test for a whole Arrow array. NULL gives NULL."""

    def answer(values: pa.Array) -> pa.Array:
        answers = [None if value is None else test(value) for value in values.to_pylist()]
        return pa.array(answers, pa.bool_())

    return answer


FUNCTIONS: dict[str, Predicate] = {
    name: predicate(on_arrow(test), columns=[column], name=name)
    for name, (test, column) in ROW_TESTS.items()
}
