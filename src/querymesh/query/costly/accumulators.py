"""Functions that count in an accumulator: what they add is meant for each row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

_KIND = ("pyspark.accumulators", "Accumulator")
"""By name, since nothing here knows Spark."""


def accumulates(fn: Callable[..., Any]) -> bool:
    """Whether a function reads an accumulator, in its closure or among its globals."""
    return any((type(each).__module__, type(each).__name__) == _KIND for each in _read_by(fn))


def _read_by(fn: Callable[..., Any]) -> Iterator[Any]:
    try:
        read = inspect.getclosurevars(fn)
    except (TypeError, ValueError):  # a class with __call__, or what is not Python's
        yield from vars(fn).values() if hasattr(fn, "__dict__") else ()
        return
    yield from read.nonlocals.values()
    yield from read.globals.values()
