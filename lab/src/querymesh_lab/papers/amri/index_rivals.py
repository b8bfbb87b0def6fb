"""The settings of AMRI § 9: whose streams, and which indices run on them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from querymesh.index.tune.indexing import Indexing
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.query.parse.query import query
from querymesh_lab.papers.amri.index_race import IndexCourse, IndexRival, course
from querymesh_lab.papers.amri.phases import PAIRS, STREAMS, Fluctuation, levels

AMRI, FIXED, EACH = "AMRI", "fixed bitmap", "a hash index for each pattern"
FORESEEN, EXACT = "fixed bitmap of all phases", "AMRI, exact counts"
OWN = "AMRI, our settings"
HASHES = range(1, 8)

FLUCTUATIONS = {
    "all": Fluctuation(levels(("543021", "213450", "210534", "453210", "023415", "231054"))),
    "constant": Fluctuation(levels(("451203",))),
    "single adapting": Fluctuation(levels(("325401", "201345", "320541")), phase_tuples=10_000),
    "many": Fluctuation(levels(("302541", "524031", "253104", "402153", "143502", "301245"))),
    "average": Fluctuation(levels(("245103", "410325", "210453", "541320", "523401", "521304"))),
    "few": Fluctuation(levels(("534210", "451320", "310542", "412530", "351402", "213504"))),
}
"""By name; found with `phases.search`. "all" is that of Figures 8 and 9."""

PATHS = {
    "all": (6, 6, 6, 6),
    "constant": (1, 1, 1, 1),
    "single adapting": (3, 3, 3, 3),
    "many": (2, 6, 6, 6),
    "average": (2, 2, 6, 6),
    "few": (2, 2, 2, 6),
}
"""How many best orders each stream has at some time."""

TUPLES, STEP_ROWS, QUICK = 30_000, 400, 50
"""Tuples of a stream, a step of all streams; with `--quick` everything is shorter by a factor."""

TRAINED = 10_000
"""Tuples of a stream that are trained on: one window, two phases."""

PAPER = Indexing(
    assessment="cdia-highest", schedule="hybrid", migration="nothing", worth=0.0, memory=0.0
)
FIGURE_8 = replace(PAPER, threshold=0.1, error=0.05, window=60_000, every=100_000)
FIGURE_10 = replace(PAPER, threshold=0.15, error=0.1, window=40_000, every=80_000)
"""The paper's settings: of Figures 8, 9a and 9b, and of 9c and 10."""


def settings(paper: Indexing, quick: bool) -> Indexing:
    """The paper's, as far as the stream is as long."""
    return sooner(paper, QUICK) if quick else paper


def sooner(paper: Indexing, by: int) -> Indexing:
    """For a shorter stream, shorter windows: its requests are fewer in the same proportion."""
    return replace(paper, window=paper.window // by, every=paper.every // by)


@cache
def synthetic(name: str, quick: bool) -> IndexCourse:
    """A course of the synthetic streams, trained on others of the same phases."""
    return shorter(name, QUICK if quick else 1, 100 if quick else STEP_ROWS)


def shorter(name: str, by: int, rows: int, phases: int = 1) -> IndexCourse:
    """The same with everything shorter by a factor, but phases longer by another one."""
    shifting = FLUCTUATIONS[name]
    shifting = replace(
        shifting, phase_tuples=phases * shifting.phase_tuples // by, window=shifting.window // by
    )
    training, streams = (shifting.streams(TUPLES // by, seed) for seed in (1, 0))
    join = complete_join(shifting.window)
    return course(f"{name} paths", join, training, streams, rows, TRAINED // by)


def complete_join(window_us: int) -> JoinQuery:
    """The join of the four streams, of which each two share an attribute."""
    ids = ", ".join(f"{stream}.id AS id_{stream}" for stream in STREAMS)
    ranges = ", ".join(f"{s.upper()} {s} [RANGE {window_us} MICROSECONDS]" for s in STREAMS)
    equal = " AND ".join(f"{pair[0]}.{pair} = {pair[1]}.{pair}" for pair in PAIRS)
    some = Fluctuation(levels(("012345",))).streams(1, 0)
    schemas = {stream.upper(): some[stream].schema for stream in STREAMS}
    return bind_join(query(f"SELECT {ids} FROM {ranges} WHERE {equal}", time="ts"), schemas)


def amri(paper: Indexing, name: str = AMRI, **other: Any) -> IndexRival:
    """AMRI with these settings, changed as told."""
    return IndexRival(name, "amri", replace(paper, **other))


def fixed() -> IndexRival:
    """A bit-address index that stays as it was trained."""
    return IndexRival(FIXED, "bitmap", Indexing())


def foreseen() -> IndexRival:
    """A bit-address index that stays, and is the best one for all phases together."""
    return IndexRival(FORESEEN, "bitmap", Indexing(), foreseen=True)


def exact(paper: Indexing) -> IndexRival:
    """AMRI that counts every pattern: those below θ as well."""
    return amri(paper, EXACT, assessment="sria")


def own(paper: Indexing) -> IndexRival:
    """AMRI as users get it, with the paper's windows."""
    return IndexRival(OWN, "amri", Indexing(window=paper.window, every=paper.every))


def hashes(paper: Indexing, count: int, adaptive: bool = True) -> IndexRival:
    """Hash indices for the most frequent access patterns, by exact counts, the rival's best."""
    exactly = replace(paper, hashes=count, adaptive=adaptive, assessment="sria")
    return IndexRival(hash_name(count, adaptive), "hash", exactly)


def hash_name(count: int, adaptive: bool = True) -> str:
    """What so many hash indices are called."""
    return f"{count} {'adaptive' if adaptive else 'static'} hash"


def each_pattern() -> IndexRival:
    """What QueryMesh does unless told: a hash index for every pattern that is asked for."""
    return IndexRival(EACH, "hash", Indexing())
