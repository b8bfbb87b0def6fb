"""Lengths of time as people write them to Spark: "10 seconds", "1 minute 30 seconds"."""

from __future__ import annotations

import datetime as dt
import re

from querymesh.errors import OptionError

_UNITS_US = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
    "hour": 3_600_000_000, "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def microseconds_of(given: str | dt.timedelta, name: str) -> int:
    """A length of time in microseconds.

    >>> microseconds_of("1 minute 30 seconds", "watermark")
    90000000
    """
    if isinstance(given, dt.timedelta) and given >= dt.timedelta(0):
        return given // dt.timedelta(microseconds=1)
    text, total, at = str(given), 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        unit = part[2].lower().removesuffix("s") if part else ""
        if part is None or unit not in _UNITS_US:
            break
        total += float(part[1]) * _UNITS_US[unit]
        at = part.end()
    if at < len(text) or not text.strip():
        raise OptionError(
            f"{name}={given!r} is no length of time: write it as in '10 seconds' or '1 hour 30 "
            f"minutes', in {', '.join(f'{unit}s' for unit in _UNITS_US)}"
        )
    return round(total)
