"""A function called in pieces: so many rows a call, several calls at once, each tried again.

::

    rows  |  piece  |  piece  |  piece  |  piece  |      results in the order of the rows
              │ thread 1  │ thread 2  │ (or tasks of one event loop, for an `async def`)
              └ leave to call, attempt, pause, attempt ... or it has failed

Pieces that fail do not stop the others, unless told so: what they answered has been paid for. A
result of a wrong length or type (PredicateError) is a mistake of the function, and raised at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from querymesh.query.costly.account.permits import Permits
from querymesh.query.costly.calling import Calling
from querymesh.query.costly.calls.event_loop import call_in_tasks
from querymesh.query.costly.calls.forms import call_of, is_async
from querymesh.query.costly.calls.threads import call_here, call_in_threads
from querymesh.query.costly.calls.work import Call, Heard, Unanswered, Work

__all__ = ["Call", "Heard", "Piece", "Unanswered", "call_in_pieces", "call_of", "is_async"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows, and what the function gave for them: `Raised` where it failed for good,
    `Unanswered` where it was not asked.

    It was called so many times for that, counting attempts that failed, and what was paid for it is
    in `querymesh.query.costly.account.price.PARTS`.
    """

    start: int
    rows: int
    result: Any
    calls: int = 0
    money: int = 0


def call_in_pieces(
    call: Call,
    calling: Calling,
    args: Sequence[pa.Array],
    n: int,
    *,
    by_row: bool = False,
    allowance: Permits | None = None,
    stop_at_failure: bool = False,
    heard: Heard | None = None,
) -> list[Piece]:
    """The results of all pieces, in order.

    `by_row` says that a call is one of the function for each row. `stop_at_failure` ends it at the
    first piece that failed for good, and the pieces that had not begun are `Unanswered`; so they
    are after the first that the budget could not pay for. `heard` is told of each answer as it
    comes, by whichever thread has it.
    """
    permits = allowance or Permits("")
    size = calling.rows_a_call(n, by_row=by_row, is_paid=permits.price is not None)
    cuts = [(start, min(size, n - start)) for start in range(0, n, size)]
    work = Work(
        call, calling, args, cuts, permits,
        by_row=by_row, stop_at_failure=stop_at_failure, heard=heard,
    )  # fmt: skip
    try:
        if is_async(call):
            call_in_tasks(work)
        elif calling.concurrency == 1 or len(cuts) <= 1:
            call_here(work)
        else:
            call_in_threads(work)
    finally:
        work.close()
    found = zip(work.results, work.calls, work.money, strict=True)
    return [Piece(*cut, *each) for cut, each in zip(cuts, found, strict=True)]
