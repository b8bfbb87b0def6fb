"""What the queries of OM § 5 meet: the arrivals of DEC-PKT, or of URND, with generated hosts.

The paper has the TCP, UDP and SF traces of DEC-PKT. Only the gaps between the UDP packets of one
hour could be had, so the six stretches of ten minutes of that hour stand for streams of their own.
A round is a second (WINDOW [1]), ten minutes are 600 rounds.

**Hosts are generated**, since the gaps come without them: host 2 sends or gets a third of all
packets in the long run, 99 others the rest by Zipf's law. Packets belong to conversations: a dozen
are going on at a time, equally busy, each ends after a minute on average and another host follows.
So the share of host 2 moves slowly, and a round shows it with the noise of a few hundred packets.
`IndependentHosts` has each packet's host drawn by itself instead: shares, and join selectivities,
then stay.

**REAL**, "a filtering step to generate datasets with different coefficients of variation", is not
described further. Two filters do that: `scaled` makes each second's deviation from the mean larger
or smaller, `smoothed` takes moving averages.

**URND** has rates uniform between 500 and 1000 and hosts uniform, each round by itself.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.errors import QueryMeshError
from querymesh.stats.round_estimates import round_numbers

GAPS = "traces/dec-pkt-1-udp.interarrivals.txt.gz"
FILES = (GAPS,)
STRETCHES = 6
WINDOW_S = 1.0
ROUNDS = 600
QUICK_ROUNDS = 120
HOST = 2
HOSTS = 100
SHARE = 1 / 3
SLOWEST, FASTEST = 500, 1000
"""URND's; the paper has "arrival rate ≥ 500 tuples per second"."""


@cache
def rates(folder: Path) -> Floats:
    """Packets in each second of the trace."""
    with gzip.open(folder / GAPS, "rt", encoding="ascii") as lines:
        gaps = np.array(lines.read().split(), np.float64)
    seconds = round_numbers(np.cumsum(gaps), WINDOW_S)
    return np.bincount(seconds - 1).astype(np.float64)


def stretch(of_trace: Floats, number: int, rounds: int = ROUNDS) -> Floats:
    """One of six equal parts of a trace, or the first rounds of it."""
    each = len(of_trace) // STRETCHES
    part = of_trace[number * each : number * each + min(rounds, each)]
    if not len(part):
        raise QueryMeshError(
            f"a trace of {len(of_trace)} seconds has no {number + 1}th of {STRETCHES} stretches"
        )
    return part


def scaled(of_trace: Floats, variation: float) -> Floats:
    """The same course with another coefficient of variation; a round has one packet at least.

    >>> some = scaled(np.array([90.0, 110.0, 80.0, 120.0]), 0.4)
    >>> float(some.mean()), round(variation_of(some), 3)
    (100.0, 0.4)
    """
    mean = of_trace.mean()
    found = mean + (of_trace - mean) * variation / variation_of(of_trace)
    return np.asarray(np.maximum(found, 1.0), np.float64)


def smoothed(of_trace: Floats, seconds: int) -> Floats:
    """The mean over so many seconds around each; fewer at the ends."""
    ones = np.ones(seconds)
    covered = np.convolve(np.ones(len(of_trace)), ones, "same")
    return np.asarray(np.convolve(of_trace, ones, "same") / covered, np.float64)


def variation_of(some: Floats) -> float:
    """The coefficient of variation of some rates."""
    return float(some.std() / some.mean())


def popularity() -> Floats:
    """The share of each host, from 0 on; `HOST` is the busiest."""
    others = np.array([each for each in range(HOSTS) if each != HOST])
    zipf = 1 / np.arange(1, HOSTS)
    share = np.full(HOSTS, SHARE)
    share[others] = (1 - SHARE) * zipf / zipf.sum()
    return share


@dataclass(frozen=True)
class Conversations:
    """Hosts drawn by conversation: so many at a time, each of so many seconds on average."""

    active: int = 12
    lasting_s: float = 60.0

    def hosts(self, counts: Ints, rng: np.random.Generator) -> list[Ints]:
        """The host of each packet, an array a round."""
        share = popularity()
        ending = 1 - math.exp(-WINDOW_S / self.lasting_s)
        talking = rng.choice(HOSTS, self.active, p=share)
        found = []
        for count in counts:
            over = rng.random(self.active) < ending
            talking = np.where(over, rng.choice(HOSTS, self.active, p=share), talking)
            found.append(talking[rng.integers(self.active, size=count)])
        return found


@dataclass(frozen=True)
class IndependentHosts:
    """Hosts drawn packet by packet; with `uniform`, all hosts alike."""

    uniform: bool = False

    def hosts(self, counts: Ints, rng: np.random.Generator) -> list[Ints]:
        """The host of each packet, an array a round."""
        share = None if self.uniform else popularity()
        drawn = rng.choice(HOSTS, int(counts.sum()), p=share)
        return np.split(drawn, np.cumsum(counts)[:-1])


@dataclass(frozen=True)
class HostCourse:
    """What a query meets: of each stream the hosts of each round's tuples."""

    hosts: Mapping[str, Sequence[Ints]]

    @property
    def rounds(self) -> int:
        """How many rounds the course has."""
        return min(len(each) for each in self.hosts.values())

    @property
    def tuples(self) -> int:
        """How many tuples all streams and rounds have together."""
        return sum(len(each) for stream in self.hosts.values() for each in stream)

    def rates(self, stream: str) -> Floats:
        """Tuples a second, by round."""
        return np.array([len(each) for each in self.hosts[stream]]) / WINDOW_S

    def selectivities(self, stream: str, host: int = HOST) -> Floats:
        """The share of a round's tuples with a host."""
        return np.array([(each == host).mean() for each in self.hosts[stream]])

    def join_selectivities(self, one: str, other: str) -> Floats:
        """The share of a round's pairs with equal hosts."""
        found = []
        for left, right in zip(self.hosts[one], self.hosts[other], strict=True):
            agreeing = np.bincount(left, minlength=HOSTS) @ np.bincount(right, minlength=HOSTS)
            found.append(agreeing / (len(left) * len(right)))
        return np.array(found)


def course(
    arrivals: Mapping[str, Floats], talk: Conversations | IndependentHosts, seed: int = 0
) -> HostCourse:
    """Arrivals by stream, with hosts: each stream has its own seed, and so the same hosts talk in
    it at the same time, however its rates were filtered."""
    hosts = {}
    for place, (stream, some) in enumerate(arrivals.items()):
        counts = np.maximum(np.rint(some * WINDOW_S), 1).astype(np.int64)
        hosts[stream] = talk.hosts(counts, np.random.default_rng([seed, place]))
    return HostCourse(hosts)


def urnd(streams: Sequence[str], rounds: int, seed: int = 0) -> HostCourse:
    """Rates and hosts that tell nothing about the next round's."""
    rng = np.random.default_rng([seed, HOSTS])
    arrivals = {
        stream: rng.integers(SLOWEST, FASTEST + 1, rounds).astype(np.float64) for stream in streams
    }
    return course(arrivals, IndependentHosts(uniform=True), seed)
