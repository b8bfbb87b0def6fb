"""The figures of QM § 6.2 as SVG files, drawn from what a run measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from querymesh_lab.drawing import bars, lines
from querymesh_lab.papers.qm.generated import SearchTime
from querymesh_lab.papers.qm.output_rate import OutputRates
from querymesh_lab.papers.qm.over_time import OverTime
from querymesh_lab.papers.qm.rivals import QM, SP
from querymesh_lab.papers.qm.search_time import SHORT
from querymesh_lab.papers.qm.starts import STOPS, Quality


def rates(found: Iterable[OutputRates]) -> dict[str, str]:
    """Figures 10a and 10b. Rates are relative to SP's, since the two data sets differ widely."""
    found = list(found)
    relative = [
        {"data": r.data, "rival": name, "rate": value / r.results_per_second()[SP]}
        for r in found
        for name, value in r.results_per_second().items()
    ]
    times = [
        {"data": r.data, "rival": name, "us": value}
        for r in found
        for name, value in r.us_a_tuple().items()
    ]
    return {
        "figure-10a": bars(relative, "data", "rival", "rate", "output rate, SP = 1"),
        "figure-10b": bars(times, "data", "rival", "us", "µs a tuple"),
    }


def results_by_time(found: OutputRates) -> dict[str, str]:
    """The results of Figure 10's join so far, by processor time, step by step."""
    values = [
        {"seconds": at, "rival": name, "results": count}
        for name, last in found.last.items()
        for at, count in last.curve
    ]
    titles = ("seconds of processor time", "results so far")
    return {"figure-10-results": lines(values, "seconds", "rival", "results", titles)}


def overhead(classify: float, rest: float) -> dict[str, str]:
    """Figure 10c: the share of the time that is not query processing."""
    values = [
        {"what": "classifying", "rival": QM, "percent": classify},
        {"what": "all but operators and output", "rival": QM, "percent": rest},
        {"what": "operators and output", "rival": QM, "percent": 100 - rest},
    ]
    return {"figure-10c": bars(values, "what", "rival", "percent", "% of the fabric's time")}


def over_time(figure: str, seen: OverTime) -> dict[str, str]:
    """Figure 11a or 11b: results over time, a line for each rival."""
    values = [
        {"seconds": at, "rival": name, "results": count}
        for name, curve in seen.curves.items()
        for at, count in curve
    ]
    across = f"seconds (each {seen.scale:g} s of the paper's)"
    drawn = lines(values, "seconds", "rival", "results", (across, "results so far"))
    return {f"figure-{figure}": drawn}


def search_times(
    by_tuples: Sequence[SearchTime], by_operators: Sequence[SearchTime]
) -> dict[str, str]:
    """Figure 12, and its counterpart by operators."""
    drawn = {}
    for name, points, size in (
        ("figure-12", by_tuples, "tuples"),
        ("figure-12-operators", by_operators, "operators"),
    ):
        values = [
            {"size": getattr(p, size), "search": SHORT[p.search], "seconds": p.seconds}
            for p in points
        ]
        title = "training tuples" if size == "tuples" else "operators"
        titles = (title, "seconds to find a mesh")
        drawn[name] = lines(values, "size", "search", "seconds", titles, points=True)
    return drawn


def starts(found: Sequence[Quality]) -> dict[str, str]:
    """Figure 13: tuples a second of the mesh found, by start and stop."""
    values = [{"start": q.start, "stop": q.stop, "rate": 1e6 / q.us} for q in found]
    values.sort(key=lambda value: list(STOPS).index(str(value["stop"])))
    return {"figure-13": bars(values, "start", "stop", "rate", "tuples a second by eq. 2")}
