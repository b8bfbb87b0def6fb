"""A filter as written: what Catalyst can evaluate first, then Python functions, as Spark does."""

from __future__ import annotations

from dataclasses import replace

from querymesh.errors import UnsupportedError
from querymesh.mesh.mesh import Mesh, written_mesh
from querymesh.mesh.stages import Stages
from querymesh.query.expr import user_calls_of
from querymesh.query.model import BoundQuery, Filter, Operator


def needs_python(operator: Operator) -> bool:
    """Whether only Python can evaluate the operator."""
    return not isinstance(operator, Filter) or bool(user_calls_of(operator.expr))


def written_in_stages(bound: BoundQuery, why: str | None = None) -> Mesh:
    """The order as written, cut into stages where some of it needs Python and some does not.

    What Catalyst evaluates comes before all Python functions, as in plain Spark, but for what must
    come after one of them.
    """
    mesh = written_mesh(bound, why)
    python = {operator.index for operator in bound.operators if needs_python(operator)}
    if not python or len(python) == len(bound.operators):
        return mesh
    before: list[int] = []
    after: list[int] = []
    for operator in bound.operators:
        if operator.index not in python:
            late = operator.after & (python | set(after))
            (after if late else before).append(operator.index)
    for operator in bound.operators:
        if operator.index in python and operator.after & set(after):
            blocking = bound.operators[min(operator.after & set(after)) - 1].name
            raise UnsupportedError(
                f"{operator.name} must come after {blocking}, which only Spark can evaluate and "
                "which itself must come after a Python function: put the later ones into a second "
                "qm.where(...)"
            )
    route = (*before, *sorted(python), *after)
    stages = Stages(((len(before), len(python)),))
    return replace(mesh, routes=(route,), single=route, stages=stages)
