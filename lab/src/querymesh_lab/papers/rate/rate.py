"""`querymesh reproduce rate`: RBO's figures, predicted and run on Spark, and its Tables 3 and 6."""

from __future__ import annotations

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.rate import join_costs, rate_figures
from querymesh_lab.papers.rate.rate_charts import outputs_by_time
from querymesh_lab.papers.rate.rate_figures import FIRST, SHOWN, ZOOMED
from querymesh_lab.papers.reproduced import Figures, Reproduced


def figure_1(bench: Bench) -> Reproduced:
    """1: two selections in either order."""
    return Reproduced(rate_figures.figure_1(bench))


def table_3(bench: Bench) -> Reproduced:
    """Table 3: what joins cost on this machine."""
    return Reproduced(join_costs.results(bench))


def figures_7_to_10(bench: Bench) -> Reproduced:
    """7 to 10: two plans of a three-way join, predicted and measured."""
    first, rows = rate_figures.first_results(bench)
    race, more = rate_figures.three_streams(bench)
    return Reproduced(
        [*rows, *more],
        [
            lambda: outputs_by_time(race, ("7", "8"), SHOWN),
            lambda: outputs_by_time(first, ("9", "10"), ZOOMED),
        ],
    )


def figures_12_to_15(bench: Bench) -> Reproduced:
    """12 to 15: plans of a five-way join, their first results and up to the last."""
    first, rows = rate_figures.five_streams(bench)
    last, more = rate_figures.five_to_the_end(bench)
    return Reproduced(
        [*rows, *more, *rate_figures.predicted_of_five(bench)],
        [
            lambda: outputs_by_time(last, ("12", "13"), float("inf")),
            lambda: outputs_by_time(first, ("14", "15"), FIRST),
        ],
    )


def table_6(bench: Bench) -> Reproduced:
    """Table 6: the traditional and the rate-based estimate."""
    return Reproduced(rate_figures.table_6(bench))


FIGURES: Figures = {
    "1": figure_1,
    "table-3": table_3,
    "7-10": figures_7_to_10,
    "12-15": figures_12_to_15,
    "table-6": table_6,
}
