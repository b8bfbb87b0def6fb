"""One stream's view of a join: its operators and the rusters of its arrivals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.operators import MOST_ROWS, FilterModule, Module, UserCalls
from querymesh.fabric.core.output import Gathering
from querymesh.fabric.core.router import Router
from querymesh.fabric.core.ruster import Ruster
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.join_ruster import JoinRuster, JoinWindow, arrived, kept
from querymesh.fabric.join.probe import JoinedKeys, MeetingModule, ProbeModule, Stems
from querymesh.fabric.join.state import keyed, partition_of, stored_columns
from querymesh.index.store.partition import Partition
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery, Filter, Meeting, Probe


class ViewFabric(Fabric):
    """The operators that tuples of one stream travel through.

    Conditions on the stream alone come first on every route; what they let through enters the
    stream's state and then goes on through the states of the others.
    """

    def __init__(
        self,
        join: JoinQuery,
        alias: str,
        stems: Stems,
        on_error: str = "raise",
        alone: bool = False,
    ) -> None:
        self.join = join
        self.alias = alias
        self.stems = stems
        self.bound = join.views[alias]
        self.metrics = Metrics()
        self.unjoinable = 0
        self._calls = self._output_calls = UserCalls(join.query.functions, on_error)
        self.own = own_conditions(self.bound)
        keys = JoinedKeys(join, alias, stems)
        self.modules = tuple(self._module(op, keys, alone) for op in self.bound.operators)
        window = self.bound.source.window
        self._range_us = window.size if window is not None and window.kind == "range" else None

    def _module(self, operator: object, keys: JoinedKeys, alone: bool) -> Module:
        if isinstance(operator, Filter):
            return FilterModule(operator, self._calls)
        if isinstance(operator, Probe):
            return ProbeModule(operator, keys, alone)
        assert isinstance(operator, Meeting)
        return MeetingModule(operator, keys, alone)

    def admitted(
        self, arrivals: Arrivals, router: Router
    ) -> tuple[list[JoinRuster], list[Partition]]:
        """Arrivals that may be in a result, at the point where they are stored and go on.

        Each classification window gives its rusters, and a partition of the state.
        """
        started = perf_counter()
        rusters: list[JoinRuster] = []
        partitions: list[Partition] = []
        most = router.window or max(len(arrivals), 1)
        for first in range(0, len(arrivals), most):
            part = arrivals.slice(first, min(most, len(arrivals) - first))
            made, partition = self._admit(part, router)
            rusters += made
            partitions.append(partition)
        self.metrics.total_seconds += perf_counter() - started
        return rusters, partitions

    def _admit(self, arrivals: Arrivals, router: Router) -> tuple[list[JoinRuster], Partition]:
        """Classify, apply the stream's own conditions, compute the keys."""
        window = JoinWindow(self.alias, arrivals.rows, self.stems, times=arrivals.times)
        set_out = [arrived(each, self._range_us) for each in self._set_out(window, router)]
        passed = list(self._move(set_out, router, self._stored))
        alive = np.zeros(window.rows, dtype=bool)
        for ruster in passed:
            alive[ruster.rows] = True
        position = np.cumsum(alive) - 1
        left = arrivals.some(alive)
        key = keyed(self.join, self.alias, left.rows, self._calls)
        if not key.joinable.all():
            self.unjoinable += int((~key.joinable).sum()) - key.failed
            self.metrics.key_errors += key.failed
            left = left.some(key.joinable)
        again = np.cumsum(key.joinable) - 1
        stored = JoinWindow(
            self.alias, left.rows, self.stems, key.keys, key.orders, key.values,
            left.times, left.serials, left.before,
        )  # fmt: skip
        rusters = []
        for ruster in passed:
            assert isinstance(ruster, JoinRuster)
            going_on = kept(ruster, key.joinable[position[ruster.rows]])
            if len(going_on):
                rows = again[position[going_on.rows]]
                rusters.append(replace(going_on, window=stored, rows=rows))
        columns = stored_columns(self.join, self.alias, left.rows, key)
        return rusters, partition_of(self.join, self.alias, left, key, columns)

    def results(self, rusters: list[JoinRuster], router: Router) -> Iterator[pa.RecordBatch]:
        """What admitted rusters become, once all of the step are stored."""
        started = perf_counter()
        by_window: dict[int, list[JoinRuster]] = {}
        for ruster in rusters:
            by_window.setdefault(id(ruster.window), []).append(ruster)
        for group in by_window.values():
            gathering = Gathering(self.bound, group[0].window)
            for done in self._move(group, router):
                gathering.add(done)
                if gathering.rows >= MOST_ROWS:
                    for batch in self._out(gathering):
                        self.metrics.total_seconds += perf_counter() - started
                        yield batch
                        started = perf_counter()
            if gathering.rows:
                for batch in self._out(gathering):
                    self.metrics.total_seconds += perf_counter() - started
                    yield batch
                    started = perf_counter()
        self.metrics.total_seconds += perf_counter() - started

    def everything(self, window: JoinWindow) -> JoinRuster:
        """All tuples of a window, on no route."""
        return arrived(Ruster(window, np.arange(window.rows), RouteToken(())), self._range_us)

    def _stored(self, ruster: Ruster) -> bool:
        """Whether all conditions on the stream alone are behind a ruster."""
        return not any(self.own & _indices(entry) for entry in ruster.token.stack)

    def _visit(self, ruster: Ruster, version: int) -> Iterator[Ruster]:
        if isinstance(self.bound.operators[ruster.token.top - 1], Meeting):
            yield from self.modules[ruster.token.top - 1].process(ruster)
        else:
            yield from super()._visit(ruster, version)


def own_conditions(view: BoundQuery) -> frozenset[int]:
    """The operators that are conditions on the stream alone."""
    return frozenset(
        op.index
        for op in view.operators
        if isinstance(op, Filter)
        and not any(isinstance(view.operators[k - 1], Probe) for k in op.after)
    )


def _indices(entry: int | tuple[int, ...]) -> frozenset[int]:
    return frozenset({entry} if isinstance(entry, int) else entry)
