"""The traceback of a user's function, without the frames that called it."""

from __future__ import annotations

import traceback
from types import TracebackType

_CALLERS = (
    "querymesh.query.costly.", "querymesh.query.predicate.", "querymesh.spark.udfs.", "pyspark.",
)  # fmt: skip
"""Modules that stand between a task and the function: they say nothing about the error."""


def user_traceback(error: BaseException) -> str:
    """The frames from the function on, and the error; just the error where it never came so far."""
    frames = error.__traceback__
    while frames is not None and _calls_functions(frames):
        frames = frames.tb_next
    formatted = traceback.TracebackException(type(error), error, frames).format()
    return "".join(line for line in formatted if line != _HEADER).rstrip()


_HEADER = "Traceback (most recent call last):\n"


def _calls_functions(frames: TracebackType) -> bool:
    module = str(frames.tb_frame.f_globals.get("__name__", ""))
    return f"{module}.".startswith(_CALLERS)
