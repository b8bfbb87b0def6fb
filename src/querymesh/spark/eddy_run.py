"""Running with a policy that learns while tuples run: `eddy` and `cbr`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame

from querymesh.errors import QueryMeshError, UnsupportedError
from querymesh.fabric.join.view import own_conditions
from querymesh.fabric.routers.make_eddy import EDDIES, EDDY, make_eddy
from querymesh.fabric.routers.routing import Routing
from querymesh.mesh.mesh import Mesh, written_order
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery, Meeting
from querymesh.runtime.channel import Channel, channel_folder
from querymesh.runtime.loops.router_states import EddyStates
from querymesh.runtime.reports import ReportParam, deliver_to
from querymesh.runtime.run import LiveRun
from querymesh.runtime.task.eddy_source import EddySource
from querymesh.spark.filters.fabric_task import FabricTask
from querymesh.spark.filters.filter_task import columns_to_send, filter_by
from querymesh.spark.inputs import Data, sent_tables
from querymesh.spark.schema import output_struct

log = logging.getLogger("querymesh")


def check_policy(
    policy: str, engine: str, routing: Routing | None, adapt: bool | Adaptation, sample: Any
) -> None:
    """Refuse what only one kind of policy has."""
    if routing is not None and not isinstance(routing, Routing):
        raise QueryMeshError(f"routing is a querymesh.Routing, not {type(routing).__name__}")
    if policy not in EDDIES:
        if routing is not None:
            raise QueryMeshError(
                f"routing= says how policies 'eddy' and 'cbr' decide, and the policy is "
                f"{policy!r}: give policy='cbr', or leave routing= out"
            )
        return
    if engine == "native":
        raise UnsupportedError(
            f"policy {policy!r} decides while tuples run, which a plan that is written beforehand "
            "cannot: use engine='fabric' or 'auto'"
        )
    if isinstance(adapt, Adaptation):
        raise QueryMeshError(
            f"adapt= says how a mesh adapts; policy {policy!r} always does: leave it out, or give "
            "routing=querymesh.Routing(...)"
        )
    if sample is not None:
        log.warning("sample= is not looked at: policy %r learns from the tuples it routes", policy)


def run_eddy(
    source: DataFrame,
    data: Mapping[str, Data],
    bound: BoundQuery,
    policy: str,
    routing: Routing,
    checkpoint: str | None,
    on_error: str,
) -> tuple[DataFrame, LiveRun]:
    """The query as a DataFrame, streaming if its source is; and its run."""
    context = source.sparkSession.sparkContext
    channel = None
    if source.isStreaming:
        channel = eddy_channel(bound, policy, checkpoint, context.master)
    mesh = written(bound, policy)
    live = LiveRun(mesh, "fabric", policy)
    name = uuid4().hex
    deliver_to(name, live, keep=source.isStreaming)
    router_source = EddySource(name, policy, bound, routing, channel=channel)
    follow(live, router_source)
    reports = context.accumulator(None, ReportParam(name))
    sent = sent_tables(context, bound, data)
    task = FabricTask(bound, router_source, reports, sent, on_error)
    # Any column may become a classifier attribute of cbr: its rows travel whole.
    if policy == EDDY and not source.isStreaming and (names := columns_to_send(bound, mesh)):
        return filter_by(source, task, names), live
    return source.mapInArrow(task, output_struct(bound, data)), live


def join_eddies(
    name: str,
    join: JoinQuery,
    policy: str,
    routing: Routing,
    views: Mapping[str, LiveRun],
    checkpoint: str | None,
    master: str | None,
) -> dict[str, EddySource]:
    """Where the tasks of a join find the router of each stream; `master` is Spark's for a stream.

    What the routers learn is kept by the stream's run.
    """
    sources = {}
    for alias, view in join.views.items():
        channel = None
        if master is not None:
            channel = eddy_channel(view, f"{policy} {alias}", checkpoint, master)
        own = own_conditions(view)
        sources[alias] = EddySource(f"{name}/{alias}", policy, view, routing, own, channel)
        follow(views[alias], sources[alias])
    return sources


def follow(live: LiveRun, source: EddySource) -> None:
    """Let a run keep what its routers learn, and take up what an earlier one has learned."""
    bound = source.bound
    operators = {op.index: op.name for op in bound.operators if not isinstance(op, Meeting)}
    fresh = make_eddy(source.policy, bound, source.routing, source.own)
    states = EddyStates(source.policy, operators, fresh, source.channel)
    for problem in states.open():
        log.warning("%s; the query goes on", problem)
        live.problems.append(problem)
    live.follow(states)


def eddy_channel(
    bound: BoundQuery, label: str, checkpoint: str | None, master: str
) -> Channel | None:
    """The channel of a stream's routers, open; None where each worker learns by itself."""
    if len(bound.operators) < 2:
        return None
    try:
        channel = Channel(channel_folder(bound, label, None, checkpoint, master))
        channel.open()
    except (QueryMeshError, OSError) as problem:
        log.warning("each worker learns by itself, and a restart begins anew: %s", problem)
        return None
    return channel


def written(bound: BoundQuery, policy: str) -> Mesh:
    """The order as written, which stands for a mesh where there is none."""
    names = tuple(operator.name for operator in bound.operators)
    mesh = written_order(bound.query, names, bound.precedence)
    return replace(mesh, why=f"policy {policy} decides while tuples run")
