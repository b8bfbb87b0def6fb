"""A planner by charts as text: what `qm.inspect(out).plan_loop.explain()` prints.

A chart is drawn with a letter for each plan. Where the estimates have been, the letter is small;
where they are now, there is an @::

    rate of b at the joins
     240 AAAAAAAABBBB
         AAAAaaBBBBBB
         AAAAa@BBBBBB
       0 AAAACCCCCCCC
         0        480 rate of a at the joins
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from textwrap import indent

from querymesh.optimize.chart.chart import PlanChart
from querymesh.optimize.chart.chart_planner import ChartPlanner, PathPoint
from querymesh.optimize.chart.regular import SparseChart
from querymesh.report.charts.chart_slices import Slice, plan_shares, slices_of
from querymesh.report.text.figures import counted, leaf_name, percent, table

COLUMNS, ROWS = 40, 12
_SHOWN_STEPS = 12
DRAWN_STEPS = 200
STREAM_PLANS = ("σ → π", "π → σ")
"""A stream's two plans, as `candidates.stream_plans` has them."""


def planner_text(planner: ChartPlanner) -> str:
    """The estimates, the charts, the plans chosen and what was counted and assumed, as text."""
    settings = planner.charting
    weights = settings.w
    parts = [
        f"policy chart: w_r {weights.rate:g} / output rate + w_m {weights.memory:g} * memory"
        f", k {settings.k}{', split along borders' if settings.adaptive else ''}",
        _section("estimates", _estimates(planner)),
        _section("between streams", _pairs(planner)),
    ]
    if planner.rounds is None:
        parts.append(
            f"no charts yet: {counted(planner.seen, 'round')} of {settings.settle} observed, the "
            "orders are as written"
        )
    else:
        parts.append(_section("charts", _charts(planner)))
        parts.append(_section("plans", _orders(planner)))
        parts.append(_section("path", path_text(planner)))
        parts.append(_section("counts", counts_text(planner)))
    parts.append(_section("rows that waited at the sources, by Spark", buffered_text(planner)))
    if planner.assumptions:
        parts.append(_section("assumed", "\n".join(planner.assumptions)))
    return "\n\n".join(part for part in parts if part)


def _section(head: str, text: str) -> str:
    return f"{head}\n{indent(text, '  ')}" if text else ""


def _estimates(planner: ChartPlanner) -> str:
    if not planner.seen:
        return "none before the first round"
    rows = []
    for alias in planner.join.aliases:
        has_own = alias in planner.selected
        share = planner.selectivities[alias] if has_own else 1.0
        rate = planner.rates[alias]
        tpr = planner.observed.selection_tpr.get(alias)
        rows.append(
            (
                alias,
                f"{rate:,.4g}",
                percent(share) if has_own else "",
                f"{rate * share:,.4g}",
                f"{tpr:,.0f}" if tpr is not None and has_own else "",
            )
        )
    head = ("stream", "tuples a second", "passes", "to the joins", "own conditions, tuples a s")
    return table(head, rows, left=(0,))


def _pairs(planner: ChartPlanner) -> str:
    rows = []
    for (one, other), pair in planner.observed.pairs.items():
        rows.append(
            (
                f"{one}, {other}",
                " AND ".join(condition.name for condition in pair.conditions),
                "" if pair.estimate is None else f"{pair.estimate:.3g}",
                pair.by,
                "" if pair.observed is None else f"{pair.observed:.3g}",
                "" if pair.tpr is None else f"{pair.tpr:,.0f}",
            )
        )
    head = ("streams", "conditions", "selectivity", "from", "seen lately", "probes a s")
    return table(head, rows, left=(0, 1, 3))


def _charts(planner: ChartPlanner) -> str:
    assert planner.rounds is not None
    query = planner.rounds.query
    parts = [f"W is {query.window_s:,.4g} s"]
    for stream, chart in query.stream_charts.items():
        # The order of π and σ is the model's alone: here a projection takes no step of its own.
        plans = ", ".join(stream_plan_text(plan) for plan in range(len(STREAM_PLANS)))
        parts.append(f"sel-λ chart of {stream}: {size_text(chart)}; {plans}")
        here = stream_point(planner, stream)
        parts.append(slice_text(slices_of(chart, here, COLUMNS, ROWS)[0], (), here, leaf_name))
    chart_of_joins = planner.chart
    if chart_of_joins is None:
        parts.append(
            f"the only order is {planner.plan_text(query.orders[0])}, so there is no λ-λ chart"
        )
        return "\n".join(parts)
    parts.append(f"λ-λ chart: {size_text(chart_of_joins)}")
    letters = plan_letters(planner)
    for each in slices_of(chart_of_joins, planner.point, COLUMNS, ROWS):
        parts.append(held_text(each, chart_of_joins))
        parts.append(slice_text(each, drawn_steps(planner, each), planner.point, letters))
    return "\n".join(part for part in parts if part)


def stream_plan_text(plan: int) -> str:
    """One of a stream's plans.

    >>> stream_plan_text(1)
    'B: π → σ'
    """
    return f"{leaf_name(plan)}: {STREAM_PLANS[plan]}"


def stream_point(planner: ChartPlanner, stream: str) -> tuple[float, float]:
    """Where the estimates are in a stream's sel-λ chart."""
    return planner.selectivities[stream], planner.rates[stream]


def size_text(chart: PlanChart) -> str:
    """How large a chart is, and what became of it if it is too large."""
    text = (
        f"{counted(chart.regions, 'region')}, {counted(chart.held, 'region')} held in "
        f"{chart.memory_bytes:,} bytes"
    )
    if isinstance(chart, SparseChart):
        text += ", too many to hold all: each is worked out when it is first entered"
    if not getattr(chart, "complete", True):
        text += ", coarser than asked for, since most_regions was reached"
    return text


def held_text(each: Slice, chart: PlanChart) -> str:
    """Where a slice lies in the dimensions that it does not show."""
    rest = [axis for axis in range(len(chart.dimensions)) if axis not in each.axes]
    if not rest:
        return ""
    if each.same:
        return f"alike at any {each.same}"
    at = ", ".join(f"{chart.dimensions[axis].name} at {each.held[axis]:,.4g}" for axis in rest)
    return f"{at}{', where the point is' if each.has_point else ''}"


def plan_letters(planner: ChartPlanner) -> Callable[[int], str]:
    """Letters of plans, by their place among the orders, the one with most of the chart first."""
    ranked = list(plan_shares(planner.chart)) if planner.chart is not None else [0]
    known = {plan: leaf_name(place) for place, plan in enumerate(ranked)}
    return lambda plan: known.setdefault(plan, leaf_name(len(known)))


def drawn_steps(planner: ChartPlanner, each: Slice) -> list[PathPoint]:
    """The steps to draw on a slice: the last of them, on the one that holds the point."""
    return list(planner.steps)[-DRAWN_STEPS:] if each.has_point else []


def slice_text(
    each: Slice, steps: Sequence[PathPoint], point: Sequence[float], letters: Callable[[int], str]
) -> str:
    """A slice, the lowest row at the bottom."""
    rows, columns = each.plans.shape
    grid = [[letters(int(plan))[-1] for plan in row] for row in each.plans]
    for step in steps:
        row, column = _cell(each, step.point)
        grid[row][column] = grid[row][column].lower()
    if each.has_point:
        row, column = _cell(each, point)
        grid[row][column] = "@"
    high, low = f"{each.up.high:,.4g}", f"{each.up.low:,.4g}"
    width = max(len(high), len(low))
    lines = [each.up.name] if rows > 1 else []
    for row in range(rows - 1, -1, -1):
        label = high if row == rows - 1 and rows > 1 else low if row == 0 and rows > 1 else ""
        lines.append(f"{label:>{width}} {''.join(grid[row])}")
    first, last = f"{each.across.low:,.4g}", f"{each.across.high:,.4g}"
    ruler = first + last.rjust(columns - len(first))
    lines.append(f"{'':>{width}} {ruler} {each.across.name}")
    return "\n".join(lines)


def _cell(each: Slice, point: Sequence[float]) -> tuple[int, int]:
    rows, columns = each.plans.shape
    across, up = each.place(point)
    return min(int(up * rows), rows - 1), min(int(across * columns), columns - 1)


def _orders(planner: ChartPlanner) -> str:
    assert planner.rounds is not None
    shares: Mapping[int, float] = plan_shares(planner.chart) if planner.chart else {0: 1.0}
    letters = plan_letters(planner)
    orders, now = planner.rounds.query.orders, planner.steps[-1].order
    used = Counter(step.order for step in planner.steps)
    shown = [*shares, *(orders.index(each) for each in used if each in orders)]
    rows = [
        (
            letters(plan),
            planner.plan_text(orders[plan]),
            percent(shares.get(plan, 0.0)),
            f"{used[orders[plan]]:,}",
            "now" if orders[plan] == now else "",
        )
        for plan in dict.fromkeys(shown)
    ]
    text = table(("", "join order", "of the chart", "rounds", ""), rows, left=(0, 1, 4))
    probes = "\n".join(
        f"a tuple of {alias} probes {', then '.join(order)}"
        for alias, order in planner.orders.items()
    )
    return f"{text}\n{counted(len(orders), 'order')} to choose from\n{probes}"


def path_text(planner: ChartPlanner) -> str:
    """The newest steps, a line each."""
    rows = []
    for step in list(planner.steps)[-_SHOWN_STEPS:]:
        place = ", ".join(
            f"{alias} {rate:,.4g}"
            for alias, rate in zip(planner.join.aliases, step.point, strict=True)
        )
        what = "switched" if step.switched else "moved" if step.moved else ""
        plan = planner.plan_text(step.order)
        rows.append((f"{step.after_round:,}", place, plan, what, step.rebuilt))
    head = ("after round", "at the joins, tuples a second", "plan", "", "")
    return table(head, rows, left=(1, 2, 3, 4))


def counts_text(planner: ChartPlanner) -> str:
    """Moves, switches, hits and fidelity of § 5.1, and how often charts were built."""
    rounds = planner.rounds
    assert rounds is not None
    return (
        f"{counted(rounds.rounds, 'round')} planned: {counted(rounds.moves, 'move')}, "
        f"{rounds.switches:,} switch{'' if rounds.switches == 1 else 'es'}, "
        f"{counted(rounds.hits, 'hit')} in {rounds.judged:,} that are over, "
        f"fidelity {percent(rounds.fidelity)}\n"
        f"{counted(planner.outside, 'round')} beyond the chart, where the nearest region stood in; "
        f"charts built {planner.built:,} time{'' if planner.built == 1 else 's'}\n"
        f"{counted(planner.results, 'result')}"
    )


def buffered_text(planner: ChartPlanner) -> str:
    """OM's input queues as Spark has told of them; of a batch job there are none."""
    rows = [
        (
            alias,
            f"{each.batch:,}",
            f"{each.taken:,}",
            "not told" if each.left is None else f"{each.left:,}",
            f"{each.arriving:,.4g}",
            f"{each.processed:,.4g}",
            ", ".join(f"{name} {value}" for name, value in each.told.items()),
        )
        for alias, each in planner.buffered.items()
    ]
    if not rows:
        return ""
    head = ("stream", "batch", "taken by it", "left behind", "arriving a s", "processed a s", "")
    return table(head, rows, left=(0, 6))
