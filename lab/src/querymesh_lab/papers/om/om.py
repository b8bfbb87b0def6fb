"""`querymesh reproduce om`: the example of OM § 3.2, and the figures of § 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.claim import Result
from querymesh_lab.papers.om import (
    grid_charts,
    join_figures,
    look_back,
    many_queries,
    om_charts,
    single_figures,
    weights_example,
)
from querymesh_lab.papers.om.courses import no_trace, trace_folder
from querymesh_lab.papers.om.single_figures import FidelityPoint
from querymesh_lab.papers.reproduced import Figures, Reproduced


def example(bench: Bench) -> Reproduced:
    """§ 3.2: how weights choose between two plans."""
    return Reproduced(weights_example.results())


def figure_3a(bench: Bench) -> Reproduced:
    """3a, the chart behind it, and the decisions of § 5.2."""
    folder = trace_folder()
    if folder is None:
        return Reproduced(no_trace(bench, "3a", ["Q1: rounds with the best plan, k = 10"]))
    results, found = single_figures.figure_3a(bench, folder)
    return Reproduced(
        results, [lambda: om_charts.sel_lambda(found[0]), lambda: om_charts.by_time(found)]
    )


def _by_setting(
    figure: str,
    measure: Callable[[Bench, Path], tuple[list[Result], list[FidelityPoint]]],
    draw: Callable[[str, list[FidelityPoint]], dict[str, str]],
    claims: Sequence[str],
) -> Callable[[Bench], Reproduced]:
    """A figure of fidelity by one setting; without the trace, its claims without a value."""

    def run(bench: Bench) -> Reproduced:
        folder = trace_folder()
        if folder is None:
            return Reproduced(no_trace(bench, figure, claims))
        results, points = measure(bench, folder)
        return Reproduced(results, [lambda: draw(figure, points)])

    return run


figure_3b = _by_setting("3b", single_figures.figure_3b, om_charts.by_filter, ["Q1: least fidelity"])
"""3b: fidelity by how erratic λ is."""

figure_3c = _by_setting(
    "3c", single_figures.figure_3c, om_charts.by_partitions, ["Q1: k = 10", "Q1: k = 40"]
)
"""3c: fidelity by k, the partitions of a dimension."""


def figure_4a(bench: Bench) -> Reproduced:
    """4a: joins, by how erratic rates are; and § 4.3's join selectivities."""
    folder = trace_folder()
    if folder is None:
        return Reproduced(no_trace(bench, "4a", ["Q2: smoothest", "Q2: least fidelity"]))
    results, points = join_figures.figure_4a(bench, folder)
    results += join_figures.figure_joins(bench, folder)
    return Reproduced(results, [lambda: om_charts.by_filter("4a", points)])


def figure_4b(bench: Bench) -> Reproduced:
    """4b: fidelity of joins by k; URND needs no trace."""
    folder = trace_folder()
    results, points = join_figures.figure_4b(bench, folder)
    if folder is None:
        results += no_trace(bench, "4b", ["Q2, DEC: points above URND, least over k"])
    return Reproduced(results, [lambda: om_charts.by_partitions("4b", points)])


def many(bench: Bench) -> Reproduced:
    """§ 5.4: ten queries served in turn."""
    folder = trace_folder()
    if folder is None:
        names = ["ten queries: those of one stream", "ten queries: joins"]
        return Reproduced(no_trace(bench, "5.4", names))
    return Reproduced(many_queries.results(bench, folder))


def grid(bench: Bench) -> Reproduced:
    """Beyond the paper: regions split along borders."""
    found = grid_charts.measure(bench)
    return Reproduced(grid_charts.results(found), [lambda: om_charts.grid(found)])


def estimates(bench: Bench) -> Reproduced:
    """Beyond the paper: d, a, and streams that change faster than they are estimated."""
    folder = trace_folder()
    results, points = look_back.drift(bench, folder)
    found = Reproduced(results, [lambda: om_charts.drift(points)])
    if folder is None:
        found.results += no_trace(bench, "estimates", ["Q1, Q2: by d and a"])
    else:
        found.results += look_back.back(bench, folder)[0]
    return found


FIGURES: Figures = {
    "3.2": example,
    "3a": figure_3a,
    "3b": figure_3b,
    "3c": figure_3c,
    "4a": figure_4a,
    "4b": figure_4b,
    "5.4": many,
    "grid": grid,
    "estimates": estimates,
}
