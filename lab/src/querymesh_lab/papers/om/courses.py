"""The courses that OM's figures are run on, and what is said where the trace is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from querymesh.arrays import Floats
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.real_folder import folder_with
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.om import om_data
from querymesh_lab.papers.om.om_data import (
    QUICK_ROUNDS,
    ROUNDS,
    STRETCHES,
    Conversations,
    HostCourse,
    IndependentHosts,
    course,
    stretch,
)
from querymesh_lab.papers.om.round_runs import SINGLE, STREAMS, RoundsFollowed
from querymesh_lab.papers.reproduced import without_data

TRIPLES = ((0, 1, 2), (3, 4, 5))
"""Which stretches of the trace stand for TCP, UDP and SF."""

RateFilter = Callable[[Floats], Floats]


def as_it_came(of_trace: Floats) -> Floats:
    """The rates of the trace as they are."""
    return of_trace


def trace_folder() -> Path | None:
    """Where the trace lies, if it is there."""
    return folder_with(om_data.FILES)


def rounds(bench: Bench) -> int:
    """How many rounds a course has: ten minutes, fewer in a quick run."""
    return bench.rounds(ROUNDS, QUICK_ROUNDS)


def no_trace(bench: Bench, figure: str, claims: Iterable[str]) -> list[Result]:
    """Rows without a value, for claims that need the trace where it is not here."""
    stated = [Claim("om", figure, claim, None, "%") for claim in claims]
    return without_data(bench, "DEC-PKT trace", stated)


def single_courses(
    bench: Bench,
    folder: Path,
    filtered: RateFilter = as_it_came,
    talk: Conversations | IndependentHosts | None = None,
    stretches: int = STRETCHES,
) -> list[HostCourse]:
    """Each of some stretches as the one stream of Q1; a quick run has the first."""
    rates = filtered(om_data.rates(folder))
    return [
        course({SINGLE: stretch(rates, each, rounds(bench))}, talk or Conversations(), each)
        for each in range(1 if bench.quick else stretches)
    ]


def join_courses(
    bench: Bench,
    folder: Path,
    filtered: RateFilter = as_it_came,
    talk: Conversations | IndependentHosts | None = None,
    faster: Sequence[float] = (1.0, 1.0, 1.0),
) -> list[HostCourse]:
    """Three stretches as the streams of Q2, some of them `faster`; a quick run has the first three.

    Hosts are drawn each alone unless told, so that join selectivities stay (§ 4.4.2).
    """
    rates = filtered(om_data.rates(folder))
    found = []
    for seed, numbers in enumerate(TRIPLES[:1] if bench.quick else TRIPLES):
        arrivals = {
            stream: stretch(rates, number, rounds(bench)) * times
            for stream, number, times in zip(STREAMS, numbers, faster, strict=True)
        }
        found.append(course(arrivals, talk or IndependentHosts(), seed))
    return found


def mean_details(found: Sequence[RoundsFollowed]) -> dict[str, float]:
    """The mean of each figure over several runs."""
    each = [one.details() for one in found]
    return {name: sum(one[name] for one in each) / len(each) for name in each[0]}
