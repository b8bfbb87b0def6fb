"""`querymesh reproduce cbr`: the figures of CBR § 6 on this engine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pyarrow as pa

from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data import intel_lab
from querymesh_lab.bench.data.real_folder import folder_with
from querymesh_lab.papers.cbr import (
    adapt_figures,
    cbr_charts,
    cbr_lab,
    cost_figures,
    further_settings,
    random_claims,
    random_selectivities,
    skew,
    timed_streams,
)
from querymesh_lab.papers.claim import Claim
from querymesh_lab.papers.reproduced import Figures, Reproduced, without_data


def figures_3_4(bench: Bench) -> Reproduced:
    """3, 4, and the forms with four and eight joins: calls by skew."""
    points = skew.measure(bench)
    return Reproduced(skew.results(points), [lambda: cbr_charts.skew(points)])


def figures_5_6(bench: Bench) -> Reproduced:
    """5 and 6: random selectivities; what calls went by, and what they saved."""
    found = random_selectivities.measure(bench)
    return Reproduced(
        [*random_claims.figure_5(found), *random_claims.figure_6(found)],
        [lambda: cbr_charts.breakdown(found), lambda: cbr_charts.by_joins(found)],
    )


def figure_7(bench: Bench) -> Reproduced:
    """7: fewer calls by aggregate selectivity."""
    found = random_selectivities.by_aggregate(bench)
    return Reproduced(random_claims.figure_7(found), [lambda: cbr_charts.by_aggregate(found)])


def times(bench: Bench) -> Reproduced:
    """The times of 3, 4, 6 and 7, and 10: the overhead of routing."""
    found = timed_streams.measure(bench)
    return Reproduced(
        timed_streams.results(found),
        [lambda: cbr_charts.times(found), lambda: cbr_charts.overhead(found)],
    )


def figure_8(bench: Bench) -> Reproduced:
    """8, and the averages of Q2: the Lab data."""
    batch = _readings()
    if batch is None:
        return _no_lab(bench, "8", "Q1: profiles whose best attribute is the sensor")
    moments = adapt_figures.figure_8(batch)
    queries = adapt_figures.ask(bench, batch)
    return Reproduced(
        [*adapt_figures.results_8(moments), *adapt_figures.results_q2(queries)],
        [lambda: cbr_charts.moments(moments)],
    )


def figure_9(bench: Bench) -> Reproduced:
    """9, and the worst case of § 6.8: the Lab data."""
    batch = _readings()
    if batch is None:
        return _no_lab(bench, "9", "Q2: less time than SBR with dearer operators")
    found = cost_figures.figure_9(bench, batch)
    return Reproduced(
        [*cost_figures.results_9(found), *cost_figures.worst_case(bench, batch)],
        [lambda: cbr_charts.dearer(found)],
    )


def further(bench: Bench) -> Reproduced:
    """Beyond the paper: what each further setting saves."""
    return Reproduced(further_settings.results(further_settings.measure(bench, _readings())))


def _readings() -> pa.RecordBatch | None:
    folder = folder_with(intel_lab.FILES)
    return None if folder is None else _read(folder)


@cache
def _read(folder: Path) -> pa.RecordBatch:
    return cbr_lab.readings(folder)


def _no_lab(bench: Bench, figure: str, name: str) -> Reproduced:
    return Reproduced(without_data(bench, "Lab data", [Claim("cbr", figure, name, None, "%")]))


FIGURES: Figures = {
    "3-4": figures_3_4,
    "5-6": figures_5_6,
    "7": figure_7,
    "times": times,
    "8": figure_8,
    "9": figure_9,
    "further": further,
}
