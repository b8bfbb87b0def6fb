"""What policy "rate" knows and chose, as text: `qm.inspect(out).plan_loop.explain()`.

Where the tree itself runs, it is drawn; on states, the orders that it means are listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from textwrap import indent

from querymesh.cost.plan_tree import JoinShape, join_shape
from querymesh.optimize.rate.goals import goal_text
from querymesh.optimize.rate.rate_planner import RatePlanner, choice_text, tree_text
from querymesh.optimize.rate.stream_query import RateQuery, Selection
from querymesh.report.text.figures import counted, micros, percent, seconds, table

KEPT = 10
"""So many of the last changes are listed."""


def rate_text(planner: RatePlanner) -> str:
    """Rates, selectivities, costs, the tree and its orders, what it is expected to do, and what
    was assumed."""
    assert planner.goal is not None
    chosen = planner.chosen
    seen = counted(planner.statistics.rounds, "round")
    head = f'policy rate, goal "{goal_text(planner.goal)}", {seen} seen'
    if planner.stores_trees:
        head += ", as a tree of Spark's own joins"
    if chosen is None:
        parts = [head, f"plan\n  {_waiting(planner)}", f"orders\n{indent(_orders(planner), '  ')}"]
        return "\n\n".join(parts)
    plan = [
        f"{tree_text(chosen.tree)}, chosen in round {chosen.round} by {chosen.way} of "
        f"{chosen.among:,} plans",
        choice_text(chosen, planner.goal),
    ]
    if planner.problem:
        plan.append(f"kept, since no plan can be chosen now: {planner.problem}")
    parts = [
        head,
        f"streams\n{indent(_streams(chosen.query), '  ')}",
        f"joins\n{indent(_joins(chosen.query), '  ')}",
        f"costs\n{indent(_costs(chosen.query, planner.stores_trees), '  ')}",
        "plan\n" + indent("\n".join(plan), "  "),
    ]
    if planner.stores_trees:
        parts.append("tree\n" + indent("\n".join(_drawn(join_shape(chosen.tree), "", "")), "  "))
    else:
        parts.append(f"orders\n{indent(_orders(planner), '  ')}")
    if planner.history and not planner.stores_trees:
        parts.append("changes\n" + indent("\n".join(planner.history[-KEPT:]), "  "))
    if planner.assumptions:
        parts.append("assumed\n" + indent("\n".join(planner.assumptions), "  "))
    return "\n\n".join(parts)


def _waiting(planner: RatePlanner) -> str:
    if planner.problem:
        return f"the orders as written: {planner.problem}"
    return "the orders as written, until every pair of relations was seen to match or not"


def _streams(query: RateQuery) -> str:
    steps = {step.stream: step for step in query.steps if isinstance(step, Selection)}
    rows = []
    for each in query.streams:
        step = steps.get(each.name)
        rows.append(
            (
                each.name,
                "table" if step is None else f"{each.rows_a_second:,.4g}",
                f"{each.size:,.0f}" if each.size < math.inf else "no end",
                seconds(each.window_s) if each.window_s < math.inf else "all",
                percent(step.selectivity) if step else "",
                micros(1e6 * step.cost_s) if step else "",
            )
        )
    head = ("stream", "rows a second", "rows", "window", "own conditions pass", "µs a row")
    return table(head, rows, left=(0,))


def _joins(query: RateQuery) -> str:
    rows = [(f"{p.left} ⋈ {p.right}", f"{p.selectivity:.3g}") for p in query.predicates]
    return table(("join", "share of pairs that match"), rows, left=(0,))


def _costs(query: RateQuery, stores_trees: bool) -> str:
    costs = query.costs
    text = f"{micros(1e6 * costs.probe_s)} µs to probe, {micros(1e6 * costs.move_s)} µs for each "
    if stores_trees:
        return (
            f"{text}row found, {micros(1e6 * costs.hash_s)} µs to store a row, on states of our "
            "own: what Spark's joins take is not measured"
        )
    return f"{text}row found, measured; a tuple's own conditions and its storing are above"


def _drawn(shape: JoinShape, stem: str, below: str) -> Iterator[str]:
    """Each line of a tree. `stem` leads to this node, `below` on from it."""
    yield stem + (shape if isinstance(shape, str) else "⋈")
    if not isinstance(shape, str):
        yield from _drawn(shape[0], f"{below}├─ ", f"{below}│  ")
        yield from _drawn(shape[1], f"{below}└─ ", f"{below}   ")


def _orders(planner: RatePlanner) -> str:
    width = max(map(len, planner.orders))
    return "\n".join(
        f"{alias.ljust(width)}  probes {' > '.join(order)}"
        for alias, order in planner.orders.items()
    )
