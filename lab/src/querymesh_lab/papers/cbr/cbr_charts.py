"""CBR's Figures 3 to 10 as SVG files, drawn from what a run measured."""

from __future__ import annotations

from collections.abc import Sequence

from querymesh_lab.drawing import bars, lines, strips
from querymesh_lab.papers.cbr.adapt_figures import Moment
from querymesh_lab.papers.cbr.cost_figures import DearerPoint
from querymesh_lab.papers.cbr.eddy_runs import KNOWS, LEARNS, LOTTERY, OWN, SBR
from querymesh_lab.papers.cbr.random_selectivities import RandomStreams
from querymesh_lab.papers.cbr.skew import DRAWN, SkewPoint
from querymesh_lab.papers.cbr.timed_streams import RIVALS, TimedStreams, us_a_call

GAIN = "% improvement over SBR"
CALLS, TIME = "routing calls", "execution time"


def skew(points: Sequence[SkewPoint]) -> dict[str, str]:
    """Figures 3 and 4, and the forms with four and eight joins; "beyond" the paper's settings."""
    drawn = {}
    for joins in sorted({point.joins for point in points}):
        values = []
        for point in sorted((p for p in points if p.joins == joins), key=lambda p: p.skew):
            for name, gain in (
                (f"{CALLS} (Knows)", point.improvement(KNOWS)),
                (f"{CALLS} (Learns)", point.improvement(LEARNS)),
                (f"{CALLS} (Learns, beyond)", point.improvement(OWN)),
            ):
                values.append({"skew": point.skew, "what": name, "gain": gain})
        number = DRAWN.get(joins)
        name = f"figure-{number}" if number else f"figure-3-4-{joins}-joins"
        titles = ("skew = A - B, %", GAIN)
        drawn[name] = lines(values, "skew", "what", "gain", titles, points=True)
    return drawn


def breakdown(found: Sequence[RandomStreams]) -> dict[str, str]:
    """Figure 5: what routing calls went by, by the number of joins."""
    values = [
        {"joins": f"{streams.joins} joins", "went by": kind, "percent": percent}
        for streams in found
        for kind, percent in streams.breakdown().items()
    ]
    return {"figure-5": bars(values, "joins", "went by", "percent", "% of routing calls")}


def by_joins(found: Sequence[RandomStreams]) -> dict[str, str]:
    """Figure 6: improvement by the number of joins."""
    return {"figure-6": _gains([(s.joins, s) for s in found], "joins")}


def by_aggregate(found: Sequence[RandomStreams]) -> dict[str, str]:
    """Figure 7: improvement by aggregate selectivity."""
    points = [(100 * (s.aggregate or 0), s) for s in found]
    return {"figure-7": _gains(points, "aggregate selectivity, %")}


def _gains(points: Sequence[tuple[float, RandomStreams]], across: str) -> str:
    values = [{"x": x, "what": CALLS, "gain": s.improvement(LOTTERY)} for x, s in points]
    return lines(values, "x", "what", "gain", (across, GAIN), points=True)


def times(found: Sequence[TimedStreams]) -> dict[str, str]:
    """The times of Figures 3, 4, 6 and 7: less than either form of SBR."""
    values = [
        {"point": streams.name, "over": over, "gain": streams.gain(over)}
        for streams in found
        for over in RIVALS
    ]
    return {"figure-times": bars(values, "point", "over", "gain", "% less time than SBR")}


def moments(found: Sequence[Moment]) -> dict[str, str]:
    """Figure 8: selectivity, which attribute is best, and the sensor's gain ratio."""
    share = [
        {"hours": m.hours, "what": "light > 500", "percent": 100 * m.selectivity} for m in found
    ]
    gain = [{"hours": m.hours, "what": "sensor", "gain": m.sensor_gain} for m in found]
    best = [{"hours": m.hours, "best": m.best or "none"} for m in found]
    hours = "hours since the first midnight"
    return {
        "figure-8-selectivity": lines(share, "hours", "what", "percent", (hours, "% selectivity")),
        "figure-8-best": strips(best, "hours", "best", hours),
        "figure-8-gain": lines(gain, "hours", "what", "gain", (hours, "gain ratio")),
    }


def dearer(found: Sequence[DearerPoint]) -> dict[str, str]:
    """Figure 9: improvement by what an operator costs."""
    values = [
        {"us": each.cost_us, "what": name, "gain": gain}
        for name, gains in (
            (CALLS, [each.call_gain for each in found]),
            (TIME, [each.time_gain for each in found]),
        )
        for each, gain in zip(found, gains, strict=True)
    ]
    titles = ("operator cost, µs", GAIN)
    return {"figure-9": lines(values, "us", "what", "gain", titles, points=True)}


def overhead(found: Sequence[TimedStreams]) -> dict[str, str]:
    """Figure 10: the overhead of routing, by the number of joins."""
    values = [
        {"joins": f"{streams.point} joins, {name}", "what": what, "us": us}
        for streams in found
        if streams.figure == "6"
        for name in (SBR, LOTTERY, LEARNS)
        for what, us in us_a_call(name, streams).items()
    ]
    return {"figure-10": bars(values, "joins", "what", "us", "µs a routed tuple")}
