"""How a filter runs, as text: in a line, what was left to Spark, its order, what was found out."""

from __future__ import annotations

from textwrap import indent

from querymesh.mesh.mesh import Mesh
from querymesh.mesh.stages import python_part
from querymesh.query.bind.share import SharedQuery
from querymesh.query.model import BoundQuery, Filter
from querymesh.report.text.figures import counted
from querymesh.report.text.mesh_text import route_of_leaf, stages_legend
from querymesh.report.text.preparation_text import preparation_text
from querymesh.runtime.run import Run


def filter_parts(run: Run) -> list[str]:
    """What is known of a filter besides what it has done so far, part by part."""
    mesh = run.view.mesh
    if not mesh.operators and run.left_to_spark:
        return ["Spark evaluates all of it by itself: there is no order to choose", *left_part(run)]
    if run.preparation is None:
        return [mesh.explain(), *settled_parts(run)]
    parts = [_in_a_line(run, mesh), *left_part(run)]
    parts.append(mesh.explain() if mesh.is_learned else _as_written(run, mesh))
    return [*parts, *prepared_part(run)]


def settled_parts(run: Run) -> list[str]:
    """What was settled before the run."""
    return [*left_part(run), *prepared_part(run)]


def left_part(run: Run) -> list[str]:
    """The conditions that Spark evaluates by itself, if there are some."""
    if not run.left_to_spark:
        return []
    return [
        "left to Spark, which has them in its scan\n" + indent("\n".join(run.left_to_spark), "  ")
    ]


def prepared_part(run: Run) -> list[str]:
    """What was found out before a filter ran, if anybody looked."""
    if run.preparation is None:
        return []
    return ["before it ran\n" + indent(preparation_text(run.preparation), "  ")]


def _in_a_line(run: Run, mesh: Mesh) -> str:
    costly = any(each.is_costly for each in run.view.bound.query.functions.values())
    if not mesh.is_learned and (costly or _is_more_than_a_filter(run.view.bound)):
        return "runs in Python, on Arrow batches, in the order as written"
    if not mesh.is_learned:
        return "runs as written, as plain Spark would"
    routes = counted(len(mesh.routes), "route")
    if run.engine == "native":
        return f"runs in Catalyst, Spark's generated code, on {routes}"
    stages = mesh.stages
    if stages is None or len(stages.in_python(mesh)) == len(mesh.operators):
        return f"runs in Python, on Arrow batches, on {routes}"
    return f"runs partly in Catalyst and partly in Python, on {routes}"


def _is_more_than_a_filter(bound: BoundQuery) -> bool:
    """Whether look-ups, or other queries in the same pass, leave plain Spark no such filter."""
    return isinstance(bound, SharedQuery) or not all(
        isinstance(operator, Filter) for operator in bound.operators
    )


def _as_written(run: Run, mesh: Mesh) -> str:
    """The conditions by number, and the order that they start with."""
    width = len(str(len(mesh.operators)))
    listed = [f"{n:>{width}}  {op.name}" for n, op in enumerate(mesh.operators, 1)]
    lines = [*listed, f"order: {route_of_leaf(mesh, 0)}", stages_legend(mesh)]
    if run.engine == "fabric" and len(python_part(mesh).leaf_routes[0]) > 1:
        lines.append("in Python a task takes another order, if its first rows show it to be better")
    return "conditions\n" + indent("\n".join(filter(None, lines)), "  ")
