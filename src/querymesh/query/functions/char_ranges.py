"""Characters by their numbers, in ranges: how a class is written so that RE2 and Java agree."""

from __future__ import annotations

import re

Ranges = list[tuple[int, int]]

LAST = 0x10FFFF
"""The number of Unicode's last character."""


def ranges_of(members: str) -> Ranges:
    """'a-zA-Z_' as ranges; a single character stands for itself."""
    pairs = re.findall(r"(.)-(.)|(.)", members, re.DOTALL)
    return [(ord(a or c), ord(b or c)) for a, b, c in pairs]


def complement(ranges: Ranges) -> Ranges:
    """All characters that are in none of the ranges.

    >>> complement([(0x30, 0x39)])
    [(0, 47), (58, 1114111)]
    """
    gaps, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    return [*gaps, (start, LAST)] if start <= LAST else gaps


def spelled(code: int) -> str:
    """One character as a pattern has it."""
    character = chr(code)
    return character if character.isascii() and character.isalnum() else rf"\x{{{code:X}}}"


def class_body(ranges: Ranges) -> str:
    r"""The ranges as they stand between the brackets of a class.

    >>> class_body([(0x30, 0x39), (0x5F, 0x5F)])
    '0-9\\x{5F}'
    """
    return "".join(
        spelled(low) if low == high else f"{spelled(low)}-{spelled(high)}" for low, high in ranges
    )
