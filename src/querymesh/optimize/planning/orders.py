"""From the order in which a tuple meets other relations to the route it takes.

    own conditions  >  probe, and what can be asked then  >  probe, ...  >  output

A condition that reads several relations, and a meeting of two of them, comes as soon as everything
it must come after is there: it only drops rows, and the earlier the better. A stream's own
conditions come as `own_order.py` says, else as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from querymesh.errors import QueryError, did_you_mean
from querymesh.mesh.mesh import PlannedOrder, written_mesh
from querymesh.mesh.route import written_route
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery, Probe
from querymesh.stats.profile import Route


def route_for(view: BoundQuery, order: Iterable[str], own: Sequence[int] = ()) -> Route:
    """The route of a view whose probes come in this order, as far as its precedence allows.

    `own` are conditions in the order they are to have; others that can be asked come behind them.

    A relation that hangs on another one cannot be probed before it: of those that are left, the
    first that can be is taken. Relations that the order leaves out come last, as written.
    """
    probes = {op.relation: op.index for op in view.operators if isinstance(op, Probe)}
    wanted = list(dict.fromkeys(order))
    for relation in wanted:
        if relation not in probes:
            raise QueryError(
                f"a tuple of {view.source.alias} cannot probe {relation!r}: "
                + did_you_mean(relation, probes)
            )
    wanted += [relation for relation in probes if relation not in wanted]
    after = view.precedence
    others = [*own, *(k for k in written_route(after) if k not in {*probes.values(), *own})]
    route: list[int] = []
    while wanted:
        _append_ready(others, after, route)
        relation = next(r for r in wanted if after[probes[r] - 1] <= {*route})
        wanted.remove(relation)
        route.append(probes[relation])
    _append_ready(others, after, route)
    return tuple(route)


def _append_ready(others: list[int], after: tuple[frozenset[int], ...], route: list[int]) -> None:
    """Move to the route whatever can be asked by now, also because of what was just moved."""
    moved = True
    while moved:
        moved = False
        for index in list(others):
            if after[index - 1] <= {*route}:
                others.remove(index)
                route.append(index)
                moved = True


def order_of(view: BoundQuery, route: Route) -> tuple[str, ...]:
    """The relations that a route probes, first to last."""
    operators = (view.operators[k - 1] for k in route)
    return tuple(op.relation for op in operators if isinstance(op, Probe))


def written_orders(join: JoinQuery) -> dict[str, tuple[str, ...]]:
    """The orders as written, of every stream."""
    return {
        alias: order_of(view, written_route(view.precedence)) for alias, view in join.views.items()
    }


def planned_mesh(
    view: BoundQuery, order: Iterable[str], why: str, profiled_rows: int, own: Sequence[int] = ()
) -> PlannedOrder:
    """One route for all tuples of a stream, as a planner chose it; `own` as in `route_for`."""
    written = written_mesh(view)
    route = route_for(view, order, own)
    same = {each.name: getattr(written, each.name) for each in fields(written)}
    chosen = {"routes": (route,), "single": route, "why": why, "profiled_rows": profiled_rows}
    return PlannedOrder(**{**same, **chosen})
