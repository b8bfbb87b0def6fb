"""AMRI's Figures 8 and 9 on its synthetic streams, and 10: races, and the claims they decide."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from querymesh.index.tune.indexing import Indexing
from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.amri.index_race import IndexCourse, IndexRace, race
from querymesh_lab.papers.amri.index_rivals import (
    AMRI,
    EACH,
    FIGURE_8,
    FIGURE_10,
    FIXED,
    FORESEEN,
    HASHES,
    OWN,
    amri,
    each_pattern,
    fixed,
    foreseen,
    hash_name,
    hashes,
    own,
    settings,
    synthetic,
)
from querymesh_lab.papers.claim import Claim, Result

ASSESSMENTS = {"SRIA": "sria", "DIA": "dia", "CSRIA": "csria", "CDIA, random": "cdia-random"}
SCHEDULES = ("periodic", "triggered", "continuous")
MIGRATIONS = ("all", "partial")
ADAPTING = {"single adapting": "10b", "many": "10c", "average": "10d", "few": "10e"}
GAINS = {"single adapting": 1.35, "many": 1.73, "average": 1.43, "few": 1.24}
STATIC = (1, 3, 5)


def produced(
    found: IndexRace, figure: str, one: str, other: str, paper: float | None, called: str = ""
) -> list[Result]:
    """The paper's claim of results in a fixed time; and ours, which no machine changes, of stored
    rows looked at."""
    what = called or f"{one} over {other}"
    by_time = Claim("amri", figure, f"{what}: results in a fixed time", paper)
    looked = Claim(
        "amri", figure, f"{what}: times fewer comparisons per probe", None, whose="project"
    )
    details = found.details()
    return [
        Result(by_time, found.ratio(one, other), found.a_a, "", details),
        Result(looked, found.fewer(one, other), None, "", details),
    ]


def ours(found: IndexRace, figure: str, one: str, other: str) -> list[Result]:
    """The same of rivals that the paper does not have."""
    return [
        replace(row, claim=replace(row.claim, whose="project"))
        for row in produced(found, figure, one, other, None)
    ]


def less_state(found: IndexRace, figure: str, other: str) -> Result:
    """State bytes of AMRI by those of a rival."""
    claim = Claim(
        "amri", figure, f"{AMRI} to {other}: state bytes", None, "×", "less", whose="project"
    )
    return Result(claim, found.state(AMRI, other), None, "", found.details())


def assessments(bench: Bench) -> tuple[IndexRace, list[Result]]:
    """Figure 8a: ways to assess access patterns, against CDIA with the highest count."""
    paper = settings(FIGURE_8, bench.quick)
    others = [amri(paper, name, assessment=kind) for name, kind in ASSESSMENTS.items()]
    found = race(bench, synthetic("all", bench.quick), [amri(paper), *others])
    values = {"SRIA": 1.19, "DIA": 1.19, "CSRIA": 1.30, "CDIA, random": None}
    return found, _all(
        produced(found, "8a", AMRI, name, value, f"CDIA, highest over {name}")
        for name, value in values.items()
    )


def schedules(bench: Bench) -> tuple[IndexRace, list[Result]]:
    """Figure 8b: schedules of tuning, against the hybrid one."""
    paper = settings(FIGURE_8, bench.quick)
    others = [amri(paper, name, schedule=name) for name in SCHEDULES]
    found = race(bench, synthetic("all", bench.quick), [amri(paper), *others])
    values = dict(zip(SCHEDULES, (1.65, 1.29, 1.18), strict=True))
    return found, _all(
        produced(found, "8b", AMRI, name, value, f"hybrid over {name}")
        for name, value in values.items()
    )


def migrations(bench: Bench) -> tuple[IndexRace, list[Result]]:
    """Figure 8c: ways to migrate stored tuples, against moving none."""
    paper = settings(FIGURE_8, bench.quick)
    others = [amri(paper, f"{name} migration", migration=name) for name in MIGRATIONS]
    found = race(bench, synthetic("all", bench.quick), [amri(paper), *others])
    return found, _all(
        produced(found, "8c", AMRI, f"{name} migration", 1.19, f"nothing over {name}")
        for name in MIGRATIONS
    )


def hash_counts(bench: Bench) -> tuple[IndexRace, list[Result]]:
    """9a: with more hash indices more results; the last is best."""
    paper = settings(FIGURE_8, bench.quick)
    counts = (1, 4, 7) if bench.quick else HASHES
    found = race(bench, synthetic("all", bench.quick), [hashes(paper, n) for n in counts])
    names = [hash_name(n) for n in counts]
    second = found.best(names[:-1])
    return found, produced(found, "9a", names[-1], second, None, f"7 hash indices over {second}")


def against_others(
    bench: Bench, figure: str, on: IndexCourse, paper: Indexing, gains: tuple[float, float]
) -> tuple[IndexRace, list[Result]]:
    """9b and 9c: against the fixed bitmap and the best number of hash indices.

    `gains` are what the paper has over each of the two.
    """
    counts = _few_counts(bench)
    others = [hashes(paper, n) for n in counts]
    rivals = [fixed(), foreseen(), *others, each_pattern(), own(paper)]
    found = race(bench, on, [amri(paper), *rivals])
    return found, against(found, figure, [hash_name(n) for n in counts], *gains)


def against(
    found: IndexRace,
    figure: str,
    counts: list[str],
    over_fixed: float | None,
    over_hash: float | None,
) -> list[Result]:
    """AMRI against the fixed bitmap, the best hash configuration, and what we do by default."""
    best = found.best(counts)
    rows = produced(found, figure, AMRI, FIXED, over_fixed)
    for one, other in ((OWN, FIXED), (AMRI, FORESEEN), (OWN, FORESEEN)):
        rows += ours(found, figure, one, other)
    rows += produced(found, figure, AMRI, best, over_hash, f"AMRI over the best hash ({best})")
    rows += ours(found, figure, AMRI, EACH)
    return [*rows, less_state(found, figure, best), less_state(found, figure, EACH)]


def constant(bench: Bench) -> tuple[IndexRace, list[Result]]:
    """10a: three static hash indices win; AMRI keeps up with one and with five."""
    paper = settings(FIGURE_10, bench.quick)
    static = [hashes(paper, n, adaptive=False) for n in STATIC]
    found = race(bench, synthetic("constant", bench.quick), [amri(paper), *static])
    one, three, five = (hash_name(n, False) for n in STATIC)
    rows = produced(found, "10a", three, AMRI, None)
    return found, rows + _all(produced(found, "10a", AMRI, each, None) for each in (one, five))


def adapting(bench: Bench, name: str) -> tuple[IndexRace, list[Result]]:
    """10b to 10e: against the best number of adaptive hash indices."""
    paper = settings(FIGURE_10, bench.quick)
    counts = _few_counts(bench)
    rivals = [fixed(), *(hashes(paper, n) for n in counts), own(paper)]
    found = race(bench, synthetic(name, bench.quick), [amri(paper), *rivals])
    best = found.best([hash_name(n) for n in counts])
    called = f"{name}: AMRI over the best hash ({best})"
    rows = produced(found, ADAPTING[name], AMRI, best, GAINS[name], called)
    for each in (AMRI, OWN):
        rows += ours(found, ADAPTING[name], each, FIXED)
    return found, rows


def trend(rows: dict[str, Result]) -> Result:
    """The row that compares the gain with many paths to that with few.

    Its control is the product of both races': noise of either may be in it.
    """
    claim = Claim(
        "amri", "10c-e", "gain over hash indices with many paths by that with few", 1.73 / 1.24
    )
    gains = {name: row.our_value or 0.0 for name, row in rows.items()}
    a_a = math.prod(1 + abs((rows[name].a_a or 1.0) - 1) for name in ("many", "few"))
    return Result(claim, gains["many"] / gains["few"], a_a, "", {"gains": gains})


def _few_counts(bench: Bench) -> tuple[int, ...]:
    """The numbers of hash indices that are tried where not all of them are."""
    return (3, 7) if bench.quick else (3, 5, 7)


def _all(rows: Iterable[list[Result]]) -> list[Result]:
    return [row for some in rows for row in some]
