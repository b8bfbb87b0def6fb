"""A running join as text: for each stream its rows, its state, and the routes its tuples took."""

from __future__ import annotations

from querymesh.report.text.figures import table
from querymesh.runtime.run import Run


def join_run_text(run: Run) -> str:
    """What a join did: for each stream its rows, its state, and the routes its tuples took."""
    states, shares = run.states, run.route_shares
    rows = []
    for alias, view in run.views.items():
        metrics, stream = view.counts, view.bound.source.alias
        rows.append(
            (
                alias,
                f"{run.arrived[stream]:,}",
                f"{metrics.evaluations:,}",
                f"{metrics.comparisons:,}",
                f"{metrics.rows_out:,}",
                f"{run.late[stream]:,}",
                f"{states[stream].rows:,}",
                f"{states[stream].bytes:,}",
            )
        )
    head = ("stream", "rows", "evaluations", "comparisons", "results", "late", "state rows",
            "state bytes")  # fmt: skip
    lines = [table(head, rows, left=(0,))]
    for alias, routes in shares.items():
        for route, share in sorted(routes.items(), key=lambda item: -item[1]):
            lines.append(f"{alias}: {share:6.1%} of its tuples by {route or '(no operators)'}")
    if (indexing := run.indexing) is not None:
        lines.append(f"\n{indexing.explain()}")
    lines += [f"\n{alias}: {router.explain()}" for alias, router in run.routers.items()]
    return "\n".join(lines)
