"""`querymesh reproduce om`: the example of OM § 3.2, and the figures of § 5."""

from __future__ import annotations

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.om import example as om_example
from querymesh_lab.papers.om import grid_charts as om_grid
from querymesh_lab.papers.om import join_figures as om_joins
from querymesh_lab.papers.om import look_back as om_estimates
from querymesh_lab.papers.om import many_queries as om_many
from querymesh_lab.papers.om import om_charts
from querymesh_lab.papers.om import single_figures as om_single
from querymesh_lab.papers.om.courses import no_trace, trace_folder
from querymesh_lab.papers.reproduced import Figures, Reproduced


def example(bench: Bench) -> Reproduced:
    """§ 3.2: how weights choose."""
    return Reproduced(om_example.results())


def figure_3a(bench: Bench) -> Reproduced:
    """3a, the chart behind it, and the decisions of § 5.2."""
    folder = trace_folder()
    if folder is None:
        return Reproduced(no_trace(bench, "3a", ["Q1: rounds with the best plan, k = 10"]))
    results, found = om_single.figure_3a(bench, folder)
    return Reproduced(
        results, [lambda: om_charts.sel_lambda(found[0]), lambda: om_charts.by_time(found)]
    )


def figure_3b(bench: Bench) -> Reproduced:
    """3b: by how erratic λ is."""
    folder = trace_folder()
    if folder is None:
        return Reproduced(no_trace(bench, "3b", ["Q1: least fidelity"]))
    results, points = om_single.figure_3b(bench, folder)
    return Reproduced(results, [lambda: om_charts.by_filter("3b", points)])


def figure_3c(bench: Bench) -> Reproduced:
    """3c: by k."""
    folder = trace_folder()
    if folder is None:
        return Reproduced(no_trace(bench, "3c", ["Q1: k = 10", "Q1: k = 40"]))
    results, points = om_single.figure_3c(bench, folder)
    return Reproduced(results, [lambda: om_charts.by_partitions("3c", points)])


def figure_4a(bench: Bench) -> Reproduced:
    """4a: joins, by how erratic rates are; and § 4.3's join selectivities."""
    folder = trace_folder()
    if folder is None:
        return Reproduced(no_trace(bench, "4a", ["Q2: smoothest", "Q2: least fidelity"]))
    results, points = om_joins.figure_4a(bench, folder)
    results += om_joins.figure_joins(bench, folder)
    return Reproduced(results, [lambda: om_charts.by_filter("4a", points)])


def figure_4b(bench: Bench) -> Reproduced:
    """4b: joins, by k; URND needs no trace."""
    folder = trace_folder()
    results, points = om_joins.figure_4b(bench, folder)
    if folder is None:
        results += no_trace(bench, "4b", ["Q2, DEC: points above URND, least over k"])
    return Reproduced(results, [lambda: om_charts.by_partitions("4b", points)])


def many(bench: Bench) -> Reproduced:
    """§ 5.4: ten queries."""
    folder = trace_folder()
    if folder is None:
        names = ["ten queries: those of one stream", "ten queries: joins"]
        return Reproduced(no_trace(bench, "5.4", names))
    return Reproduced(om_many.results(bench, folder))


def grid(bench: Bench) -> Reproduced:
    """Beyond the paper: regions split along borders."""
    found = om_grid.measure(bench)
    return Reproduced(om_grid.results(found), [lambda: om_charts.grid(found)])


def estimates(bench: Bench) -> Reproduced:
    """Beyond the paper: d, a, and streams that change faster than they are estimated."""
    folder = trace_folder()
    results, points = om_estimates.drift(bench, folder)
    found = Reproduced(results, [lambda: om_charts.drift(points)])
    if folder is None:
        found.results += no_trace(bench, "estimates", ["Q1, Q2: by d and a"])
    else:
        found.results += om_estimates.back(bench, folder)[0]
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
