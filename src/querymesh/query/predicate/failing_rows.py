"""Which row made a user's function raise: found by halving the batch, not by n single calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from querymesh.errors import PredicateError
from querymesh.query.predicate.user_frames import user_traceback

Run = Callable[[Sequence[pa.Array], int], Any]
_SHOWN_CHARACTERS = 200
_OF_THE_CODE = (NameError, ImportError, SyntaxError)
"""Errors that no row is to blame for: neither a guard nor dropping the row is a remedy."""


@dataclass(frozen=True, slots=True)
class Raised:
    """Stands for the result of rows on which the function raised."""

    error: Exception


def results_by_halves(
    run: Run, args: Sequence[pa.Array], n: int, known: Raised | None = None
) -> Iterator[tuple[int, Any]]:
    """The function's results on n rows as (number of rows, result), failing rows as `Raised`.

    A batch that raises is halved until each failing row stands alone: k of them cost about
    k log n calls. `known` is what all of them together raised, if they have been called.
    """
    if n == 0:
        return
    try:
        if known is not None:
            raise known.error
        result = run(args, n)
    except PredicateError:  # of a wrong length or type: no row is to blame
        raise
    except Exception as error:
        if n == 1:
            yield 1, Raised(error)
            return
        half = n // 2
        yield from results_by_halves(run, _slices(args, 0, half), half)
        yield from results_by_halves(run, _slices(args, half, n - half), n - half)
    else:
        yield n, result


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a function raised on a batch, as text; `cause` is what it raised."""

    text: str
    cause: Exception


def failure(
    predicate: str,
    labels: Sequence[str],
    run: Run,
    args: Sequence[pa.Array],
    n: int,
    error: Exception,
    *,
    alone: bool,
) -> Failure:
    """Which row the function raised on, and what to do about it.

    `alone` says that no other operator could guard it. Not to be called while the error is being
    handled, or each further attempt would tell of it as its context.
    """
    row, cause = _first_failing(run, args, n, error)
    if row is None:
        where = f"on a batch of {n} rows (no single row makes it fail again)"
    else:
        values = ", ".join(
            f"{label}={arg[row].as_py()!r}" for label, arg in zip(labels, args, strict=True)
        )
        where = f"on the row {_abbreviated(values)}" if values else f"on row {row} of its batch"
    lines = [f"predicate {predicate} raised {type(cause).__name__} {where}."]
    if row is not None and not isinstance(cause, _OF_THE_CODE):
        lines.append(_advice(alone))
    return Failure("\n".join([*lines, user_traceback(cause)]), cause)


def _advice(alone: bool) -> str:
    drop = 'to count and drop such rows, run with on_error="drop".'
    if alone:
        return drop[0].upper() + drop[1:]
    return f"If another predicate is meant to guard it, name that one in after=; {drop}"


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
