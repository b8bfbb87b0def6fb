"""24,000 rows with 200 calls in flight, an endpoint that fails at random, and two workers killed.

Nothing may be lost and nothing be wrong; that some rows are asked about twice is said.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

import querymesh as qm
from querymesh_lab.bench.costly import rivals, workers
from querymesh_lab.bench.costly.cell import TASKS, Cell, Ground
from querymesh_lab.bench.costly.client import ask_async
from querymesh_lab.bench.costly.endpoint import Endpoint
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.costly.questions import rule_of
from querymesh_lab.bench.costly.rivals import Question
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.guest.tables import AbsentError

GROUP = "failures"
ROWS, QUICK_ROWS = 24_000, 1_200
IN_FLIGHT = 200
KILLED_AT = (0.25, 0.6)
"""Workers are killed when so large a part of the rows has been answered."""

TROUBLE = Manners(
    delay_s=0.05, jitter_s=0.05, error=0.03, busy=0.02, garbage=0.01, drop=0.01, hang=0.001,
    faults_in_a_row=4, seed=19,
)  # fmt: skip
QUESTION = "share 30 in flight"
CALLING: dict[str, Any] = {"retries": 6, "timeout_s": 3.0}


def awaited(ground: Ground, at_once: int) -> qm.Predicate:
    """The question as an `async def`."""
    address = ground.endpoint.address

    async def in_flight(number: int) -> bool:
        answers = await ask_async(address, QUESTION, [number])
        return bool(answers[0])

    return qm.predicate(
        in_flight, columns=["number"], vectorised=False, concurrency=at_once, **CALLING
    )


def threaded(ground: Ground, at_once: int, **options: Any) -> qm.Predicate:
    """The question as a function that waits, in threads."""
    question = Question(ground.endpoint.address, QUESTION, ("number",), at_once)
    return question.predicate(name="in_flight", **CALLING, **options)


def stored(ground: Ground, at_once: int) -> qm.Predicate:
    """The same with its answers in a folder, where those of a killed worker are found."""
    return threaded(ground, at_once, memo=qm.Memo(path=ground.memo_folder()))


FORMS: dict[str, Callable[[Ground, int], qm.Predicate]] = {
    "threads": threaded,
    "event loop": awaited,
    "shared memo": stored,
}


@contextmanager
def killing_at(endpoint: Endpoint, answers: list[int]) -> Iterator[list[int]]:
    """Kill a worker each time the endpoint has given so many answers: the pids."""
    events = [threading.Event() for _ in answers]
    over = threading.Event()

    def watch() -> None:
        while not over.is_set() and not all(event.is_set() for event in events):
            given = endpoint.counts().answered
            for event, wanted in zip(events, answers, strict=True):
                if given >= wanted:
                    event.set()
            time.sleep(workers.LOOK_S)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        with workers.kills(events) as killed:
            yield killed
    finally:
        over.set()
        thread.join()


def run(form: str, ground: Ground) -> list[Finding]:
    """One run, in one of the forms."""
    rows = ground.bench.rows(ROWS, QUICK_ROWS)
    if not re.fullmatch(r"local\[.+,.+\]", ground.bench.session.conf.get("spark.master") or ""):
        raise AbsentError("this session gives up at the first task that fails: run it by itself")
    table = ground.stored(pa.table({"number": range(rows)}))
    endpoint = ground.endpoint
    endpoint.behave(TROUBLE)
    predicate = FORMS[form](ground, IN_FLIGHT // TASKS)
    started = time.perf_counter()
    with killing_at(endpoint, [int(part * rows) for part in KILLED_AT]) as killed:
        out = rivals.where(ground.frame(table.folder), predicate)
        got = sorted(row.number for row in out.select("number").collect())
    seconds = time.perf_counter() - started
    rule = rule_of(QUESTION)
    expected = [number for number in range(rows) if rule(number)]
    wrong = len(set(got) ^ set(expected)) + abs(len(got) - len(set(got)))
    counts = endpoint.counts()
    name = f"in flight, {form}"
    details = {
        "group": GROUP, "rows": rows, "seconds": seconds, "killed": len(killed),
        "calls": counts.calls, "faults": counts.faults, "inputs": counts.inputs,
        "distinct": counts.distinct, "explained": str(qm.inspect(out).explain()),
    }  # fmt: skip
    group = {"group": GROUP}
    return [
        Finding(name, f"{rows:,} rows, faults and kills: rows lost, wrong or twice",
                wrong, "rows", "at most", 0, details),
        Finding(name, "workers killed", len(killed), "kills", "at least", len(KILLED_AT), group),
        Finding(name, "calls in flight at once", counts.most_at_once, "calls", "at most",
                IN_FLIGHT, group),
        Finding(name, "answers that were paid for twice", counts.inputs - counts.distinct,
                "answers", details=group),
        Finding(name, "calls answered in a second", counts.answered / seconds, "calls",
                details=group),
    ]  # fmt: skip


CASES = tuple(Cell(GROUP, f"in flight, {form}", partial(run, form)) for form in FORMS)
