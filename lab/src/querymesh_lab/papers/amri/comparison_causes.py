"""Why AMRI looks at more rows than a bitmap that stays: one cause taken away after the other.

On the streams of Figure 9b, everything shorter by a factor, with phases as they are there and four
times as long. Only comparisons are counted, so no machine changes what comes out.
"""

from __future__ import annotations

from dataclasses import replace

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.amri.index_race import IndexRival
from querymesh_lab.papers.amri.index_rivals import (
    AMRI,
    FIGURE_8,
    FORESEEN,
    OWN,
    QUICK,
    STEP_ROWS,
    amri,
    exact,
    fixed,
    foreseen,
    own,
    shorter,
    sooner,
)
from querymesh_lab.papers.claim import Claim, Result

SHORTER = 4


def results(bench: Bench) -> list[Result]:
    """Comparisons per probe of each, by those of the best bitmap that stays."""
    by = QUICK if bench.quick else SHORTER
    rows = []
    for phases, called in ((1, "phases of half a window"), (4, "phases of two windows")):
        on = shorter("all", by, STEP_ROWS // 4, phases)
        on = replace(on, limit_seconds=float("inf"))
        runs = {each.name: on.run(each) for each in _contenders(by)}
        for name, run in runs.items():
            bench.log(f"  {called}: {name} {run.compared():.1f} comparisons per probe")
            if name != FORESEEN:
                what = f"{called}: comparisons per probe, {name} to {FORESEEN}"
                claim = Claim("amri", "why", what, None, "×", "less", whose="project")
                value = run.compared() / runs[FORESEEN].compared()
                rows.append(Result(claim, value, None, "", run.details()))
    return rows


def _contenders(by: int) -> list[IndexRival]:
    paper = sooner(FIGURE_8, by)
    counts, moved = "exact counts", "all migration"
    every = {"assessment": "sria", "migration": "all"}
    return [
        foreseen(),
        fixed(),
        amri(paper),
        exact(paper),
        amri(paper, f"{AMRI}, {counts}, {moved}", **every),
        amri(paper, f"{AMRI}, {counts}, {moved}, continuous", **every, schedule="continuous"),
        own(paper),
        IndexRival(
            f"{OWN}, but nothing", "amri", replace(own(paper).settings, migration="nothing")
        ),
    ]
