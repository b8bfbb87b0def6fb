"""`querymesh reproduce qm`: the figures of QM § 6.2 on this engine."""

from __future__ import annotations

from collections.abc import Callable

from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data import intel_lab
from querymesh_lab.bench.data.real_folder import folder_with
from querymesh_lab.papers.claim import Claim
from querymesh_lab.papers.qm import output_rate, over_time, search_time, starts
from querymesh_lab.papers.qm import qm_charts as charts
from querymesh_lab.papers.qm import qm_lab as lab
from querymesh_lab.papers.qm.rivals import QM, LookUpSubject
from querymesh_lab.papers.qm.ten_way import SOURCE
from querymesh_lab.papers.qm.windows import grid, results_over_time, sensitivity, start_rates
from querymesh_lab.papers.reproduced import Figures, Reproduced, without_data


def figure_10(bench: Bench) -> Reproduced:
    """10a, 10b, 10c: output rate, time a tuple, overhead."""
    poisson = output_rate.measure(bench, output_rate.POISSON)
    uniform = output_rate.measure(bench, output_rate.UNIFORM)
    look_ups = output_rate.race_look_ups(bench, output_rate.LOOK_UPS)
    varied = sensitivity.measure(bench, output_rate.POISSON)
    overhead = output_rate.overhead_percent(poisson.last[QM].metrics)
    return Reproduced(
        output_rate.results(poisson, uniform, look_ups, varied),
        [
            lambda: charts.rates((poisson, uniform)),
            lambda: charts.results_by_time(poisson),
            lambda: charts.overhead(*overhead),
        ],
    )


def grid_of(window_rows: int) -> Callable[[Bench], Reproduced]:
    """A third of the grid that Figure 10 is asked on: all cells with such windows."""
    return lambda bench: Reproduced(grid.measure(bench, grid.cells(window_rows)))


def grid_jobs(bench: Bench) -> Reproduced:
    """The cells of the grid that are timed as whole Spark jobs."""
    return Reproduced(grid.measure_jobs(bench))


def figure_11(bench: Bench) -> Reproduced:
    """11a and 11b on windowed streams; says so where the Lab data are not there."""
    ten = results_over_time.ten_streams(bench.quick)
    found = _over_time("11a", bench, ten)
    folder = folder_with(intel_lab.FILES)
    if folder is None:
        claim = Claim("qm", "11b", "Lab data, windows: results by the end, QM over SP", None)
        found.results += without_data(bench, "Lab data", [claim])
    else:
        found.add(_over_time("11b", bench, results_over_time.lab(folder, bench.quick)))
    return found


def _over_time(figure: str, bench: Bench, subject: results_over_time.WindowedSubject) -> Reproduced:
    seen = results_over_time.watch(bench, subject)
    return Reproduced(
        results_over_time.results(figure, subject.name, seen),
        [lambda: charts.over_time(f"{figure}-windows", seen)],
    )


def figure_11a(bench: Bench) -> Reproduced:
    """11a: results over time, the synthetic data with static partners."""
    design = output_rate.LOOK_UPS
    table = design.source(bench.rows(100_000, 20_000), seed=1)[0]
    subject = LookUpSubject(design.query(), SOURCE, table, design.partner_tables())
    seen = over_time.watch(bench, subject, over_time.ready(subject, 4000), "Poisson")
    rows = over_time.results("11a", "Poisson", seen)
    return Reproduced(rows, [lambda: charts.over_time("11a", seen)])


def figure_11b(bench: Bench) -> Reproduced:
    """11b: results over time, the Lab data; says so where it is not there."""
    folder = folder_with(intel_lab.FILES)
    if folder is None:
        claim = Claim("qm", "11b", "Lab data: results by the end, QM over SP", None)
        return Reproduced(without_data(bench, "Lab data", [claim]))
    subject = lab.subject(folder)
    meshes = over_time.ready(subject, 4000)
    bench.log(f"  Lab data: {meshes[QM].why}")
    seen = over_time.watch(bench, subject, meshes, "Lab data")
    rows = over_time.results("11b", "Lab data", seen)
    return Reproduced(rows, [lambda: charts.over_time("11b", seen)])


def figure_12(bench: Bench) -> Reproduced:
    """12: what a search for a mesh takes."""
    times = search_time.measure(bench)
    return Reproduced(
        search_time.results(times),
        [lambda: charts.search_times(times.by_tuples, times.by_operators)],
    )


def figure_13(bench: Bench) -> Reproduced:
    """13: which start solution leads to the best mesh, on windowed streams."""
    return Reproduced(start_rates.results(start_rates.measure(bench)))


def figure_13_look_ups(bench: Bench) -> Reproduced:
    """13 with static partners, by eq. 2, and for searches cut short."""
    found = starts.measure(bench)
    return Reproduced(starts.results(found), [lambda: charts.starts(found)])


FIGURES: Figures = {
    "10": figure_10,
    **{f"grid-{rows}": grid_of(rows) for rows in grid.WINDOW_ROWS},
    "grid-spark": grid_jobs,
    "11": figure_11,
    "11a-look-ups": figure_11a,
    "11b-look-ups": figure_11b,
    "12": figure_12,
    "13": figure_13,
    "13-look-ups": figure_13_look_ups,
}
