"""A run as text: what was decided, and what each operator, leaf and stream really did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import indent

from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.routers.learned import Learned
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.stages import python_part
from querymesh.optimize.adapt.watch import Switch
from querymesh.query.costly.account.price import as_money
from querymesh.query.costly.tally import Tally
from querymesh.report.text.figures import UNKNOWN, counted, leaf_name, percent, seconds, table
from querymesh.report.text.filter_text import filter_parts, settled_parts
from querymesh.report.text.join_run_text import join_run_text
from querymesh.report.text.mesh_text import route_of_leaf
from querymesh.runtime.loops.learner import Learner
from querymesh.runtime.run import Run


def run_text(run: Run) -> str:
    """What `qm.inspect(out).explain()` prints: the mesh, what it did, what changed, what failed."""
    parts = []
    by_mesh = run.tree is None and not run.router_loops and run.plan_loop is None
    if by_mesh and run.cube is None:
        parts += filter_parts(run)
    else:
        if by_mesh:
            parts.append(run.mesh.explain())
        parts += settled_parts(run)
    if run.sharing:
        parts.append("shared\n" + indent("\n".join(run.sharing), "  "))
    parts.append(did_text(run))
    if learning := learning_text(run):
        parts.append("learning\n" + indent(learning, "  "))
    if run.problems:
        parts.append("problems\n" + indent("\n".join(run.problems), "  "))
    return "\n\n".join(parts)


def learning_text(run: Run) -> str:
    """What is being learned of each source that still runs in the order as written."""
    learners = run.loops_of(Learner)
    return "\n".join(loop.explain() for loop in learners if not loop.status.learned)


def did_text(run: Run) -> str:
    """What a run did so far, with its switches and plans."""
    plan_loop = run.plan_loop
    if run.tree is not None and plan_loop is not None:
        return plan_loop.explain()
    if run.cube is not None:
        parts = [join_run_text(run)]
        parts += [f"{switch.stream}: {switches_text([switch])}" for switch in run.switches]
        text = "\n".join(parts)
        return text if plan_loop is None else f"{text}\n\n{plan_loop.explain()}\n"
    view = run.view
    if run.preparation is not None and run.preparation.plainly:
        return "Spark's own filter runs it and calls the Python functions; nothing is counted there"
    if run.engine == "native":
        routes = counted(len(view.mesh.routes), "route")
        return f"Spark's generated code runs it, on {routes}; nothing is counted there"
    text = metrics_text(view.counts, view.mesh, view.version, run.router)
    if run.functions is not None and (proxies := run.functions.proxy_text(view.counts.asked)):
        text = f"{text}\n\napproximate\n{indent(proxies, '  ')}"
    stages = view.mesh.stages
    if stages is not None and len(stages.in_python(view.mesh)) < len(view.mesh.operators):
        text = f"in Python so far, where rows come that Catalyst has left\n{text}"
    return "\n".join([text, switches_text(run.switches)] if run.switches else [text])


def metrics_text(
    metrics: Metrics, mesh: Mesh, version: int | None = None, router: Learned | None = None
) -> str:
    """A run for people. `version` is the mesh's own; by default the newest the run has used.

    Where tuples were not routed by a mesh, `router` is what their routers have learned.
    """
    version = current_version(metrics) if version is None else version
    parts = [_summary(metrics)]
    if mesh.operators:
        parts.append("operators\n" + indent(_operators(metrics, mesh), "  "))
    if asked := functions_text(metrics.asked):
        parts.append("functions\n" + indent(asked, "  "))
    if router is not None:
        parts.append(router.explain())
    elif not _is_told_apart_in_catalyst(mesh):
        parts.append("leaves\n" + indent(_leaves(metrics, mesh, version), "  "))
    return "\n\n".join(parts)


def switches_text(switches: Sequence[Switch]) -> str:
    """When a running stream went over to another mesh, and why; one line each."""
    return "\n".join(
        f"after batch {switch.batch} mesh {switch.version}, expected to save "
        f"{percent(switch.saving)}: {switch.reason}"
        for switch in switches
    )


def current_version(metrics: Metrics) -> int:
    """The newest mesh version that rows have met in this run."""
    return max((version for version, _ in metrics.leaf_rows), default=0)


def classify_share(metrics: Metrics) -> float:
    """The share of the fabric's time that went into classifying; NaN before any row came."""
    if metrics.total_seconds <= 0:
        return float("nan")
    return metrics.classify_seconds / metrics.total_seconds


def _summary(metrics: Metrics) -> str:
    evaluations = counted(metrics.evaluations, "evaluation")
    lines = [
        f"{metrics.rows_in:,} rows in, {metrics.rows_out:,} rows out, "
        f"{counted(metrics.windows, 'window')}, {counted(metrics.rusters, 'ruster')}",
        f"{evaluations}, {_per_row(metrics.evaluations, metrics.rows_in)} a row in, "
        f"in {seconds(metrics.total_seconds)}",
        f"classification {seconds(metrics.classify_seconds)}, "
        f"{percent(classify_share(metrics))} of the time",
    ]
    if metrics.routing_calls:
        lines.append(
            f"{counted(metrics.routing_calls, 'routing call')}, "
            f"{_per_row(metrics.routing_calls, metrics.rows_in)} a row in; deciding "
            f"{seconds(metrics.routing_seconds)}, learning {seconds(metrics.learning_seconds)}"
        )
    if metrics.profiled_rows:
        lines.append(
            f"profiled {counted(metrics.profiled_rows, 'row')} on all operators, "
            f"{counted(metrics.profile_evaluations, 'evaluation')}, "
            f"{seconds(metrics.profile_seconds)}"
        )
    if metrics.errors_dropped:
        lines.append(f"dropped {counted(metrics.errors_dropped, 'row')} a predicate raised on")
    return "\n".join(lines)


def _per_row(count: int, rows: int) -> str:
    return f"{count / rows:.2f}" if rows else UNKNOWN


def _operators(metrics: Metrics, mesh: Mesh) -> str:
    done = metrics.by_operator()
    stages = mesh.stages
    every = range(1, len(mesh.operators) + 1)
    natively = set(every) - stages.in_python(mesh) if stages is not None else set()
    rows = []
    for index, op in enumerate(mesh.operators, 1):
        visits = done.get(index)
        if visits is None or not visits.evaluations:
            none = "in Catalyst" if index in natively else "0"
            rows.append((str(index), op.name, none, UNKNOWN, UNKNOWN, UNKNOWN))
            continue
        rows.append(
            (
                str(index),
                op.name,
                f"{visits.evaluations:,}",
                percent(visits.passed / visits.evaluations),
                seconds(visits.seconds),
                seconds(visits.seconds / visits.evaluations),
            )
        )
    head = ("#", "operator", "evaluations", "passed", "time", "each")
    return table(head, rows, left=(1,))


def functions_text(asked: Mapping[str, Tally]) -> str:
    """How often functions were asked: those that cost money, were asked again where they failed, or
    were asked about fewer rows than there were."""
    told = {n: t for n, t in asked.items() if t.asked < t.rows or t.money or t.calls > t.rows}
    rows = [
        (
            name,
            f"{tally.rows:,}",
            f"{tally.distinct:,}",
            f"{tally.asked:,}",
            f"{tally.calls:,}",
            seconds(tally.seconds),
            as_money(tally.money) if tally.money else UNKNOWN,
        )
        for name, tally in told.items()
    ]
    head = ("function", "rows", "distinct in batches", "asked about", "calls", "time", "money")
    unasked = [
        f"the budget could not pay for {counted(tally.unasked, 'input')} of {name}"
        for name, tally in told.items()
        if tally.unasked
    ]
    paid = any(tally.money for tally in told.values())
    weighed = ["costs above have the money of calls in them, as time"] if paid else []
    return "\n".join([table(head, rows, left=(0,)), *unasked, *weighed]) if rows else ""


def _is_told_apart_in_catalyst(mesh: Mesh) -> bool:
    """Whether Python sees one kind of rows only, so that its counts have no leaves."""
    return mesh.stages is not None and len(python_part(mesh).leaf_routes) < len(mesh.leaf_routes)


def _leaves(metrics: Metrics, mesh: Mesh, version: int) -> str:
    done = metrics.by_leaf(version)
    rows = []
    for leaf in range(len(mesh.leaf_choices)):
        here = metrics.leaf_rows.get((version, leaf), 0)
        visits = done.get(leaf)
        rows.append(
            (
                leaf_name(leaf),
                f"{here:,}",
                percent(here / metrics.rows_in) if metrics.rows_in else UNKNOWN,
                route_of_leaf(mesh, leaf),
                _per_row(visits.evaluations if visits else 0, here),
                seconds(visits.seconds if visits else 0.0),
            )
        )
    head = ("leaf", "rows", "share", "route", "evaluations a row", "time")
    text = table(head, rows, left=(0, 3))
    earlier = sum(rows for (used, _), rows in metrics.leaf_rows.items() if used != version)
    if earlier:
        text += f"\nbefore this version of the mesh: {counted(earlier, 'row')}"
    return text
