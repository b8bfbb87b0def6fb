"""How numbers are written, in text and HTML alike, so that the two never disagree.

An untrained mesh has NaN for every figure it does not know; a reader sees a dash.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from querymesh.explained import counted as counted

UNKNOWN = "–"


def micros(us: float) -> str:
    """Microseconds with three significant digits, and never in exponents.

    >>> micros(0.04217), micros(4.217), micros(421.7), micros(float("nan"))
    ('0.0422', '4.22', '422', '–')
    """
    if math.isnan(us):
        return UNKNOWN
    if us == 0 or us >= 100:
        return f"{us:,.0f}"
    digits = 2 - math.floor(math.log10(abs(us)))
    return f"{us:.{min(digits, 4)}f}"


def percent(share: float) -> str:
    """A share of one as a percentage."""
    return UNKNOWN if math.isnan(share) else f"{100 * share:.1f} %"


def times(factor: float) -> str:
    """A ratio, as in `1.62 ×`."""
    return UNKNOWN if math.isnan(factor) else f"{factor:.2f} ×"


def seconds(value: float) -> str:
    """A duration in the unit that reads best.

    >>> seconds(12.3), seconds(0.0123), seconds(0.0000123)
    ('12.3 s', '12.3 ms', '12.3 µs')
    """
    if math.isnan(value):
        return UNKNOWN
    if value == 0:
        return "0 s"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value * 1e6:,.1f} µs"


def leaf_name(leaf: int) -> str:
    """Leaves are letters, left to right, since operators are numbers already.

    >>> leaf_name(0), leaf_name(25), leaf_name(26)
    ('A', 'Z', 'AA')
    """
    letters = ""
    leaf += 1
    while leaf:
        leaf, letter = divmod(leaf - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> str:
    """Rows under a head, in columns as wide as they must be; right-aligned unless in `left`."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
