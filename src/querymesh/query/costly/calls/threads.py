"""A batch called by threads, or by the one that asks for it where one is enough."""

from __future__ import annotations

from functools import partial

from querymesh.query.costly.calls.crew import Crew
from querymesh.query.costly.calls.lanes import Lane
from querymesh.query.costly.calls.work import Attempt, Call, Work

crew = Crew("querymesh-call")


def call_here(work: Work) -> None:
    """All pieces, one after the other, on this thread; on a lane beside it if they may hang."""
    lane = _lane(work)
    try:
        while (attempt := work.begin()) is not None:
            _finish(work, attempt, lane or work.call)
            del attempt  # and its arrays, before the next is cut
    finally:
        if lane is not None:
            lane.close()


def call_in_threads(work: Work) -> None:
    """All pieces, by as many threads as calls may run at once."""
    count = min(work.calling.concurrency, len(work.cuts))
    for at in range(count):
        work.enter()
        try:
            crew.start(partial(_run, work))
        except RuntimeError:  # the system has no more threads
            work.leave()
            if at == 0:
                raise
            break
    work.ended.wait()
    if work.failed is not None:
        raise work.failed


def _run(work: Work) -> None:
    try:
        call_here(work)
    except BaseException as error:
        work.fail(error)
    finally:
        work.leave()


def _finish(work: Work, attempt: Attempt, call: Call) -> None:
    """One piece, tried until it succeeds, or has failed for good."""
    while (wait_s := work.wait_s(attempt)) is not None:
        if wait_s > 0:
            work.stopped.wait(wait_s)
            continue
        try:
            result = call(attempt.args, attempt.rows)
        except Exception as error:
            pause_s = work.pause_s(attempt, error)
            if pause_s is None:
                return
            work.stopped.wait(pause_s)
        else:
            work.succeeded(attempt, result)
            return


def _lane(work: Work) -> Lane | None:
    timeout_s = work.calling.timeout_s
    return None if timeout_s is None else Lane(work.call, timeout_s)
