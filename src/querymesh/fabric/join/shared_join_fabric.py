"""Joins that share one pass: one state a stream, and a view for each group of queries and stream.

::

    arrivals of a ──> conditions of all queries ──> stored once ──┬── group 1 probes ──> q1, q2
                      a mask: which it may be for                 └── group 2 probes ──> q3

Which tuples probe for a group is told by their masks; what is stored for others alone may be found
by a probe all the same, and is left out at the end, as is what a query's own window does not reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.fabric.core.operators import MOST_ROWS, FilterModule, UserCalls
from querymesh.fabric.core.output import Gathering
from querymesh.fabric.core.router import Router
from querymesh.fabric.core.ruster import Ruster
from querymesh.fabric.core.shared_fabric import tagged
from querymesh.fabric.join.admission import Admission, Entered, values_of_group
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.join_fabric import JoinFabric, Routers, Step, static_stems
from querymesh.fabric.join.join_ruster import JoinRuster, JoinWindow, kept, moved
from querymesh.fabric.join.view import Admitted, ViewFabric
from querymesh.index.store.codes import microseconds
from querymesh.index.store.partition import Partition
from querymesh.index.store.stem import Stem
from querymesh.query.bind.share import MOST_QUERIES
from querymesh.query.expr import Column
from querymesh.query.join import JoinQuery
from querymesh.query.shared_join import SharedJoin

_EVERY_QUERY = (1 << MOST_QUERIES) - 1


class GroupView(ViewFabric):
    """A group's view of one stream: its tuples come admitted, and what comes out is of queries."""

    def __init__(
        self, shared: SharedJoin, group: int, alias: str, stems: Mapping[str, Stem], on_error: str
    ) -> None:
        self.group = shared.groups[group]
        self.number = group
        super().__init__(self.group.join, alias, stems, on_error)
        self.shared = shared
        self._rest = [
            (FilterModule(operator, self._calls), served) for operator, served in self.group.rest
        ]
        self._masked = [a for a in self.group.join.aliases if a in shared.masked]
        self.in_common: Mapping[str, int] = {}
        """By stream, the queries that all its stored tuples are for: there is no need to look."""

    def set_out(self, entered: Entered, rows: pa.RecordBatch, router: Router) -> list[Admitted]:
        """The arrivals that are for a query of the group, on their way. `rows` are all of them."""
        mine = entered.mask & self.group.mask != 0
        some = entered.some(mine)
        window = JoinWindow(
            self.alias,
            rows.filter(pa.array(mine)) if not mine.all() else rows,
            self.stems,
            some.key.keys,
            some.key.orders,
            values_of_group(some.key.values, self.shared, self.number, self.alias),
            some.arrivals.times,
            some.arrivals.serials,
            {a: n for a, n in some.arrivals.before.items() if a in self.join.aliases},
        )
        most = router.window if router.decides and router.window else max(window.rows, 1)
        started = perf_counter()
        admitted = [
            self._classified(window.slice(first, min(most, window.rows - first)), router)
            for first in range(0, window.rows, most)
        ]
        self.metrics.total_seconds += perf_counter() - started
        return admitted

    def _classified(self, window: JoinWindow, router: Router) -> Admitted:
        if self._eddy(router) is not None:
            self.metrics.windows += 1
            self.metrics.rows_in += window.rows
            return Admitted(window, None, [])
        leaves = self._leaves(window, router)
        rusters = self._by_own_conditions(window, router) if leaves is None else []
        return Admitted(window, leaves, rusters)

    def results(self, admitted: list[Admitted], router: Router) -> Iterator[pa.RecordBatch]:
        """What admitted tuples become, each row with the number of its query."""
        started = perf_counter()
        for part in admitted:
            gatherings = {
                number: Gathering(self.shared.parts[number], part.window, in_order=False)
                for number in self.group.queries
            }
            for done in self._probed(part, router):
                for number, rows in self._by_query(done):
                    gatherings[number].add(rows)
                full = [n for n, each in gatherings.items() if each.rows >= MOST_ROWS]
                for number in full:
                    for batch in self._out(gatherings[number]):
                        self.metrics.total_seconds += perf_counter() - started
                        yield tagged(self.shared.output_schema, number, batch)
                        started = perf_counter()
            for number, gathering in gatherings.items():
                for batch in self._out(gathering) if gathering.rows else ():
                    self.metrics.total_seconds += perf_counter() - started
                    yield tagged(self.shared.output_schema, number, batch)
                    started = perf_counter()
        self.metrics.total_seconds += perf_counter() - started

    def _by_query(self, done: Ruster) -> Iterator[tuple[int, JoinRuster]]:
        """The combinations that are results, query by query."""
        assert isinstance(done, JoinRuster)
        mask = self._mask(done)
        for module, served in self._rest:
            asked = np.flatnonzero(mask & served)
            if len(asked):
                some = done.pick(asked) if len(asked) < len(done) else done
                errors = module.errors
                mask[asked[~module.verdict(some)]] &= ~served
                self.metrics.output_errors += module.errors - errors
        for number in self.group.queries:
            passed = mask & (1 << number) != 0
            if passed.any():
                yield number, kept(done, passed)

    def _mask(self, done: JoinRuster) -> Ints:
        """For each combination, the queries that all its members are for, and whose windows
        reach from each of them to the newest."""
        mask = np.full(len(done), self.group.mask, np.int64)
        for alias in self._masked:
            if self.in_common.get(alias, 0) & self.group.mask == self.group.mask:
                continue
            masks = done.column(Column(alias, self.shared.queries_column))
            mask &= np.asarray(masks, np.int64)
        times: dict[str, Ints] = {}
        for bound in self.group.bounds:
            if bound.alias not in times:
                time = Column(bound.alias, self.join.times[bound.alias])
                times[bound.alias] = microseconds(done.column(time))
            until = moved(times[bound.alias], bound.range_us)
            mask[done.newest > until] &= ~(1 << bound.query)
        return mask


class SharedJoinFabric(JoinFabric):
    """The states of all streams of joins that share one pass, and the views of their groups."""

    def __init__(
        self,
        join: SharedJoin,
        statics: Mapping[str, Stem] | None = None,
        on_error: str = "raise",
    ) -> None:
        self.join = self.shared = join
        self.streams = {alias: Stem() for alias in join.aliases}
        self.admissions = {
            alias: Admission(join, alias, UserCalls(join.query.functions, on_error))
            for alias in join.aliases
        }
        self.stems: dict[str, Stem] = dict(self.streams)
        self._masks: dict[int, tuple[Partition, int]] = {}
        self._views: dict[str, GroupView] = {}
        for label, (number, alias) in join.labels.items():
            group = join.groups[number].join
            stems = {a: self.streams[a] for a in group.aliases}
            for table in group.statics:
                stems[table.alias] = (statics or {})[_static_name(number, table.alias)]
            self._views[label] = GroupView(join, number, alias, stems, on_error)
        self.views = dict(self._views)

    def admit(self, arrivals: Mapping[str, Arrivals], routers: Routers) -> Step:
        """Store what arrived and is for any query; `routers` are by the label of a view."""
        admitted: dict[str, list[Admitted]] = {}
        partitions = {}
        for alias, arrived in arrivals.items():
            admission = self.admissions[alias]
            entered = admission.enter(arrived)
            self._count(alias)
            partitions[alias] = admission.partition(entered)
            rows = admission.with_mask(entered)
            for label, view in self._views.items():
                if view.alias == alias:
                    admitted[label] = view.set_out(entered, rows, routers[label])
        for alias, partition in partitions.items():
            if len(partition):
                partitions[alias] = self.streams[alias].laid_out(partition)
                self.streams[alias].insert(partitions[alias])
        return Step(admitted, partitions)

    def _in_common(self) -> dict[str, int]:
        """By stream that has masks, the queries that all its stored tuples are for."""
        found = {}
        masks: dict[int, tuple[Partition, int]] = {}
        for alias in self.shared.masked:
            found[alias] = _EVERY_QUERY
            for partition in self.streams[alias].partitions:
                known = self._masks.get(id(partition))
                if known is None or known[0] is not partition:
                    column = partition.rows.column(self.shared.queries_column)
                    known = partition, int(np.bitwise_and.reduce(np.asarray(column, np.int64)))
                masks[id(partition)] = known
                found[alias] &= known[1]
        self._masks = masks
        return found

    def _count(self, alias: str) -> None:
        """Note what was dropped before it was stored, with the first view of the stream."""
        admission = self.admissions[alias]
        view = next(each for each in self._views.values() if each.alias == alias)
        view.unjoinable = admission.unjoinable
        view.metrics.key_errors = admission.failed_keys + admission.errors

    def for_view(self, label: str, arrivals: Arrivals) -> Arrivals:
        """The arrivals that pass the conditions of some query of a view's group."""
        view = self._views[label]
        mask = self.admissions[view.alias].mask(arrivals.rows)
        return arrivals.some(mask & view.group.mask != 0)

    def results(self, step: Step, routers: Routers) -> Iterator[pa.RecordBatch]:
        """The results whose last arrival is in the step, each row with the number of its query."""
        in_common = self._in_common()
        for view in self._views.values():
            view.in_common = in_common
        for label, admitted in step.admitted.items():
            yield from self._views[label].results(admitted, routers[label])
        for stem in self.streams.values():
            stem.settle()


def _static_name(group: int, alias: str) -> str:
    return f"{group}/{alias}"


def static_states(
    join: JoinQuery, tables: Mapping[str, pa.Table], on_error: str = "raise"
) -> dict[str, Stem]:
    """The static tables of a join, or of joins that share a pass, ready to be probed."""
    if not isinstance(join, SharedJoin):
        return static_stems(join, tables, on_error)
    return {
        _static_name(number, alias): stem
        for number, group in enumerate(join.groups)
        for alias, stem in static_stems(group.join, tables, on_error).items()
    }


def make_join_fabric(
    join: JoinQuery, statics: Mapping[str, Stem] | None = None, on_error: str = "raise"
) -> JoinFabric:
    """The fabric of a join, or of joins that share one pass."""
    if isinstance(join, SharedJoin):
        return SharedJoinFabric(join, statics, on_error)
    return JoinFabric(join, statics, on_error)
