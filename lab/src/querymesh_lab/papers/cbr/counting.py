"""Streams of Stream-Star counted in processes of their own: counts are the same on any machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.cbr.eddy_runs import CountedRun, count, star_case
from querymesh_lab.papers.cbr.stream_star import Matrix, StreamStar

STREAMS = 50
"""Streams a point (§ 6.4 and 6.5; § 6.3 says no number)."""

ROWS = 100_000
QUICK_ROWS = 6_000


@dataclass(frozen=True)
class CountedStream:
    """A stream to count: its selectivities, its rows and its seed.

    `beyond` says whether it is also counted with settings beyond the paper's.
    """

    matrix: Matrix
    rows: int
    seed: int
    beyond: bool = True

    def count(self) -> CountedRun:
        """The routing calls of every rival."""
        case = star_case(StreamStar(self.matrix), self.rows, self.seed)
        return count(case, beyond=self.beyond)


def count_streams(bench: Bench, streams: Sequence[CountedStream]) -> list[CountedRun]:
    """What each stream gives, in order: on all cores, or in this process when quick."""
    if bench.quick:
        return [stream.count() for stream in streams]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        return list(pool.map(CountedStream.count, streams))
