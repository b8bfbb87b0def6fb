"""Which row made a user's function raise: found by halving the batch, not by n single calls."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

Run = Callable[[Sequence[pa.Array], int], Any]
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Raised:
    """Stands for the result of rows on which the function raised."""

    error: Exception


def results_by_halves(run: Run, args: Sequence[pa.Array], n: int) -> Iterator[tuple[int, Any]]:
    """The function's results on n rows as (number of rows, result), failing rows as `Raised`.

    A batch that raises is halved until each failing row stands alone: k of them cost about
    k log n calls.
    """
    if n == 0:
        return
    try:
        result = run(args, n)
    except Exception as error:
        if n == 1:
            yield 1, Raised(error)
            return
        half = n // 2
        yield from results_by_halves(run, _slices(args, 0, half), half)
        yield from results_by_halves(run, _slices(args, half, n - half), n - half)
    else:
        yield n, result


def failure_text(
    name: str,
    labels: Sequence[str],
    run: Run,
    args: Sequence[pa.Array],
    n: int,
    error: Exception,
) -> str:
    """The text of the error: which function raised, on which row, and what to do about it."""
    row, cause = _first_failing(run, args, n, error)
    if row is None:
        where = f"on a batch of {n} rows (no single row makes it fail again)"
    else:
        values = ", ".join(
            f"{label}={arg[row].as_py()!r}" for label, arg in zip(labels, args, strict=True)
        )
        where = f"on the row {_abbreviated(values)}" if values else f"on row {row} of its batch"
    trace = "".join(traceback.format_exception(cause)).rstrip()
    return (
        f"predicate {name} raised {type(cause).__name__} {where}.\n"
        "If another predicate is meant to guard it, name that one in after=; "
        'to count and drop such rows, run with on_error="drop".\n'
        f"{trace}"
    )


def _first_failing(
    run: Run, args: Sequence[pa.Array], n: int, error: Exception
) -> tuple[int | None, Exception]:
    low, high, cause = 0, n, error
    while high - low > 1:
        middle = (low + high) // 2
        for start, stop in ((low, middle), (middle, high)):
            try:
                run(_slices(args, start, stop - start), stop - start)
            except Exception as again:
                low, high, cause = start, stop, again
                break
        else:
            return None, error
    return low, cause


def _slices(args: Sequence[pa.Array], start: int, length: int) -> list[pa.Array]:
    return [arg.slice(start, length) for arg in args]


def _abbreviated(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
