"""`querymesh reproduce amri`: the figures of AMRI § 9 on this engine."""

from __future__ import annotations

from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data import intel_lab
from querymesh_lab.bench.data.real_folder import folder_with
from querymesh_lab.papers.amri import amri_figures, comparison_causes
from querymesh_lab.papers.amri.amri_charts import results_by_time
from querymesh_lab.papers.amri.amri_figures import ADAPTING
from querymesh_lab.papers.amri.amri_lab import lab_course
from querymesh_lab.papers.amri.index_race import IndexRace
from querymesh_lab.papers.amri.index_rivals import FIGURE_8, FIGURE_10, settings, synthetic
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.reproduced import Figures, Reproduced, without_data

Raced = tuple[IndexRace, list[Result]]


def figure_8(bench: Bench) -> Reproduced:
    """8a, 8b, 8c: how patterns are counted, when, and what happens to rows stored already."""
    found = _drawn("8a", amri_figures.assessments(bench))
    found.add(_drawn("8b", amri_figures.schedules(bench)))
    found.add(_drawn("8c", amri_figures.migrations(bench)))
    return found


def figure_9a(bench: Bench) -> Reproduced:
    """9a: by the number of hash indices."""
    return _drawn("9a", amri_figures.hash_counts(bench))


def figure_9b(bench: Bench) -> Reproduced:
    """9b: AMRI against the others, synthetic streams."""
    on, paper = synthetic("all", bench.quick), settings(FIGURE_8, bench.quick)
    return _drawn("9b", amri_figures.against_others(bench, "9b", on, paper, (1.75, 1.93)))


def lab_data(bench: Bench) -> Reproduced:
    """9c: the Lab data; says so where it is not there."""
    folder = folder_with(intel_lab.FILES)
    if folder is None:
        claim = Claim("amri", "9c", "AMRI over fixed bitmap: results in a fixed time", 1.15)
        return Reproduced(without_data(bench, "Lab data", [claim]))
    on, paper = lab_course(folder, bench.quick), settings(FIGURE_10, bench.quick)
    return _drawn("9c", amri_figures.against_others(bench, "9c", on, paper, (1.15, 1.68)))


def figure_10(bench: Bench) -> Reproduced:
    """10a to 10e: by the number of query paths."""
    found = _drawn("10a", amri_figures.constant(bench))
    gains = {}
    for name, figure in ADAPTING.items():
        raced = amri_figures.adapting(bench, name)
        gains[name] = raced[1][0]
        found.add(_drawn(figure, raced))
    found.results.append(amri_figures.trend(gains))
    return found


def why(bench: Bench) -> Reproduced:
    """Beyond the paper: what makes AMRI look at more rows."""
    return Reproduced(comparison_causes.results(bench))


def _drawn(figure: str, raced: Raced) -> Reproduced:
    return Reproduced(raced[1], [lambda: results_by_time(figure, raced[0])])


FIGURES: Figures = {
    "8": figure_8,
    "9a": figure_9a,
    "9b": figure_9b,
    "9c": lab_data,
    "10": figure_10,
    "why": why,
}
