"""One stream's view of a join: its operators and the rusters of its arrivals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Ints
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.operators import MOST_ROWS, FilterModule, Module, UserCalls
from querymesh.fabric.core.output import Gathering
from querymesh.fabric.core.router import Router
from querymesh.fabric.core.ruster import Ruster
from querymesh.fabric.core.token import RouteToken, Stack
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.eddy_program import EddyProgram
from querymesh.fabric.join.join_ruster import JoinRuster, JoinWindow, arrived, kept
from querymesh.fabric.join.probe import JoinedKeys, MeetingModule, ProbeModule, Stems
from querymesh.fabric.join.route_plan import RoutePlan, SettingOut, Stretch
from querymesh.fabric.join.state import keyed, partition_of, stored_columns
from querymesh.fabric.routers.eddy import PLAIN, EddyRouter
from querymesh.index.probe.program import Counts
from querymesh.index.store.partition import Partition
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery, Filter, Meeting, Probe


@dataclass(frozen=True)
class Admitted:
    """Stored tuples that are ready to probe: with the leaf of each, where all go as one program, if
    it is known already; else as rusters."""

    window: JoinWindow
    leaves: Ints | None
    rusters: list[JoinRuster]


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
        self.keys = keys = JoinedKeys(join, alias, stems)
        self._plans: dict[tuple[Stack, ...], RoutePlan] = {}
        self._planned: tuple[Sequence[RouteToken], RoutePlan | None] = (), None
        self.modules = tuple(self._module(op, keys, alone) for op in self.bound.operators)
        self._program: EddyProgram | None = None
        others = (op for op in self.bound.operators if op.index not in self.own)
        self._only_probes = all(isinstance(op, Probe | Meeting) for op in others)
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
    ) -> tuple[list[Admitted], list[Partition]]:
        """Arrivals that may be in a result, at the point where they are stored and go on.

        Where a router decides on the way, each classification window has a partition of its own.
        """
        started = perf_counter()
        admitted: list[Admitted] = []
        partitions: list[Partition] = []
        most = router.window if router.decides and router.window else max(len(arrivals), 1)
        for first in range(0, len(arrivals), most):
            part = arrivals.slice(first, min(most, len(arrivals) - first))
            made, partition = self._admit(part, router)
            admitted.append(made)
            partitions.append(partition)
        self.metrics.total_seconds += perf_counter() - started
        return admitted, partitions

    def _admit(self, arrivals: Arrivals, router: Router) -> tuple[Admitted, Partition]:
        """Classify, apply the stream's own conditions, compute the keys."""
        window = JoinWindow(self.alias, arrivals.rows, self.stems, times=arrivals.times)
        leaves = None if self.own else self._leaves(window, router)
        rusters: list[JoinRuster] = []
        alive: Bools | None = None
        eddy = self._eddy(router)
        if eddy is not None and not self.own:
            self.metrics.windows += 1
            self.metrics.rows_in += window.rows
        elif leaves is None:
            rusters = self._by_own_conditions(window, router)
            alive, leaves = _reached(rusters, window.rows)
            if eddy is None and (router.decides or not _are_certain(router.tokens)):
                leaves = None
        left = arrivals if alive is None else arrivals.some(alive)
        key = keyed(self.join, self.alias, left.rows, self._calls)
        joinable = None if key.joinable.all() else key.joinable
        if joinable is not None:
            self.unjoinable += int((~joinable).sum()) - key.failed
            self.metrics.key_errors += key.failed
            left = left.some(joinable)
        if eddy is not None and not self.own:
            # The others are counted chunk by chunk.
            self.metrics.leaf_rows[router.version, PLAIN] += window.rows - len(left)
        stored = JoinWindow(
            self.alias, left.rows, self.stems, key.keys, key.orders, key.values,
            left.times, left.serials, left.before,
        )  # fmt: skip
        for mask in (alive, joinable):
            if mask is not None:
                leaves = None if leaves is None else leaves[mask]
                rusters = [_within(ruster, mask) for ruster in rusters]
        on_their_way = [replace(each, window=stored) for each in rusters if len(each)]
        columns = stored_columns(self.join, self.alias, left.rows, key)
        partition = partition_of(self.join, self.alias, left, key, columns)
        return Admitted(stored, leaves, on_their_way), partition

    def _by_own_conditions(self, window: JoinWindow, router: Router) -> list[JoinRuster]:
        """The rusters that the conditions on the stream alone let through."""
        set_out = [arrived(each, self._range_us) for each in self._set_out(window, router)]
        passed = []
        for ruster in self._move(set_out, router, self._stored):
            assert isinstance(ruster, JoinRuster)
            passed.append(ruster)
        return passed

    def _leaves(self, window: JoinWindow, router: Router) -> Ints | None:
        started = perf_counter()
        leaves = router.leaves(window)
        if leaves is None:
            return None
        metrics = self.metrics
        metrics.classify_seconds += perf_counter() - started
        metrics.windows += 1
        metrics.rows_in += window.rows
        for leaf, rows in enumerate(np.bincount(leaves, minlength=1).tolist()):
            if rows:
                metrics.rusters += 1
                metrics.leaf_rows[router.version, leaf] += rows
        return leaves

    def results(self, admitted: list[Admitted], router: Router) -> Iterator[pa.RecordBatch]:
        """What admitted tuples become, once all of the step are stored."""
        started = perf_counter()
        for part in admitted:
            gathering = Gathering(self.bound, part.window, in_order=False)
            for done in self._probed(part, router):
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

    def _probed(self, part: Admitted, router: Router) -> Iterator[Ruster]:
        """Tuples at the end of their routes: all at once where their routes are known, chunk by
        chunk where an Eddy decides and only probes are ahead, else ruster by ruster."""
        if (eddy := self._eddy(router)) is not None:
            program = self._eddy_program(eddy)
            yield from program.results(part.window, part.leaves, MOST_ROWS, self.metrics)
            return
        if part.leaves is None:
            yield from self._move(part.rusters, router)
            return
        for ruster in self._all_routes(part.window, part.leaves, router):
            if ruster.token.stack:
                yield from self._follow([ruster], router)
            else:
                yield ruster

    def setting_out(self, part: Admitted, router: Router) -> SettingOut | None:
        """Tuples of which only probes are ahead, all in one go; None where that is not so."""
        if (eddy := self._eddy(router)) is not None:
            return self._eddy_program(eddy).whole(part.window, part.leaves, self.metrics)
        plan = self._route_plan(router)
        if part.leaves is None or plan is None or any(each.rest for each in plan.stretches):
            return None
        version = router.version
        return SettingOut(
            plan.program,
            plan.program.automaton,
            plan.begins[part.leaves],
            lambda counts: self._count_plan(counts, version, plan),
        )

    def _eddy_program(self, eddy: EddyRouter) -> EddyProgram:
        if self._program is None or self._program.router is not eddy:
            self._program = EddyProgram(self.bound, self.keys, eddy)
        return self._program

    @property
    def output_calls(self) -> UserCalls:
        """What calls functions in SELECT."""
        return self._output_calls

    def _eddy(self, router: Router) -> EddyRouter | None:
        """The router as an Eddy whose decisions a program can follow: nothing but probes stands
        behind the conditions on the stream alone."""
        return router if isinstance(router, EddyRouter) and self._only_probes else None

    def _all_routes(self, window: JoinWindow, leaves: Ints, router: Router) -> Iterator[JoinRuster]:
        """All tuples through the first stretch of probes on their routes, each on its own."""
        plan = self._plan(router.tokens)
        program, start = plan.program, frozenset({self.alias})
        counts = program.no_counts()
        arriving = self.keys.arriving(window)
        states = plan.begins[leaves]
        for found in program.run(self.keys.probed, [arriving], states, counts, MOST_ROWS):
            reached = plan.leaf_of[found.states] if plan.apart else None
            for leaf in [0] if reached is None else np.unique(reached).tolist():
                stretch = plan.stretches[leaf]
                joined = start.union(stretch.relations)
                token = RouteToken(stretch.rest)
                whole = self.keys.ruster(window, token, leaf, found, joined)
                if reached is not None:
                    whole = kept(whole, reached == leaf)
                checked = self.keys.verified(whole, start, stretch.relations)
                if len(checked):
                    yield checked
        self._count_plan(counts, router.version, plan)

    def _route_plan(self, router: Router) -> RoutePlan | None:
        """How tuples begin on the routes of a router's leaves; None where it decides on the way."""
        tokens = router.tokens
        if self._planned[0] is not tokens:
            certain = not router.decides and _are_certain(tokens)
            self._planned = tokens, self._plan(tokens) if certain else None
        return self._planned[1]

    def _plan(self, tokens: Sequence[RouteToken]) -> RoutePlan:
        """How tuples of leaves with these routes begin, worked out once."""
        stacks = tuple(token.stack for token in tokens)
        if stacks not in self._plans:
            after = [tuple(entry for entry in stack if entry not in self.own) for stack in stacks]
            stretches = [self._stretch(stack) for stack in after]
            sizes = [len(each.probes) for each in stretches]
            # Where something is left to do, or not the same is joined, leaves part behind it.
            ways = {frozenset(each.relations) for each in stretches}
            left = any(each.rest for each in stretches)
            apart = len(stretches) > 1 and (left or len(ways) > 1)
            self._plans[stacks] = RoutePlan(
                stretches,
                self.keys.program(
                    tuple(each.probes for each in stretches), frozenset({self.alias})
                ),
                np.cumsum([0, *sizes]),
                np.repeat(np.arange(len(stretches)), sizes),
                [probe.index for each in stretches for probe in each.probes],
                apart,
            )
        return self._plans[stacks]

    def _go_on(self, ruster: Ruster, version: int) -> Iterator[Ruster]:
        """A ruster through all probes until something else stands on its route."""
        stretch = self._stretch(ruster.token.stack)
        if not stretch.probes:
            if stretch.rest != ruster.token.stack:
                return iter((replace(ruster, token=RouteToken(stretch.rest)),))
            return self._visit(ruster, version)
        assert isinstance(ruster, JoinRuster)
        return self._through(ruster, stretch, version)

    def _through(self, ruster: JoinRuster, stretch: Stretch, version: int) -> Iterator[Ruster]:
        keys = self.keys
        joined = keys.joined(ruster)
        program = keys.program((stretch.probes,), joined)
        counts = program.no_counts()
        states = np.zeros(len(ruster), np.int64)
        arriving, waiting = keys.arriving(ruster.of), keys.waiting(ruster)
        for found in program.run(keys.probed, [arriving], states, counts, MOST_ROWS, waiting):
            by_now = joined.union(stretch.relations)
            out = keys.ruster(ruster.of, RouteToken(stretch.rest), ruster.leaf, found, by_now)
            checked = keys.verified(out, joined, stretch.relations)
            if len(checked):
                yield checked
        indices = [probe.index for probe in stretch.probes]
        self._count(counts, version, [ruster.leaf] * len(indices), indices)

    def _count_plan(self, counts: Counts, version: int, plan: RoutePlan) -> None:
        """Add what a program did to the visits of the leaf and operator of each state of a plan."""
        self._count(counts, version, plan.leaf_of.tolist(), plan.indices)

    def _count(
        self, counts: Counts, version: int, leaf_of: Sequence[int], indices: Sequence[int]
    ) -> None:
        numbers = zip(
            counts.evaluated.tolist(), counts.passed.tolist(), counts.looked.tolist(),
            counts.seconds.tolist(), leaf_of, indices, strict=True,
        )  # fmt: skip
        for evaluated, passed, looked, seconds, leaf, index in numbers:
            if evaluated:
                visits = self.metrics.visits[version, leaf, index]
                visits.evaluations += evaluated
                visits.passed += passed
                visits.comparisons += looked
                visits.seconds += seconds

    def _stretch(self, stack: Stack) -> Stretch:
        """The probes that a route begins with, as far as it is certain, and what follows; a meeting
        takes no visit."""
        probes: list[Probe] = []
        for place, entry in enumerate(stack):
            operator = self.bound.operators[entry - 1] if isinstance(entry, int) else None
            if isinstance(operator, Probe):
                probes.append(operator)
            elif not isinstance(operator, Meeting):
                return Stretch(tuple(probes), stack[place:])
        return Stretch(tuple(probes), ())

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


def _are_certain(tokens: Sequence[RouteToken]) -> bool:
    """Whether there are routes that leave nothing open."""
    entries = [entry for token in tokens for entry in token.stack]
    return bool(tokens) and all(isinstance(entry, int) for entry in entries)


def _reached(rusters: list[JoinRuster], rows: int) -> tuple[Bools, Ints]:
    """Which tuples of a window are in a ruster, and the leaf of each, -1 of others."""
    leaves = np.full(rows, -1)
    for ruster in rusters:
        leaves[ruster.rows] = ruster.leaf
    return leaves >= 0, leaves


def _within(ruster: JoinRuster, mask: Bools) -> JoinRuster:
    """The rows of a ruster that stay where a mask is true, under the numbers they have then."""
    staying = kept(ruster, mask[ruster.rows])
    return replace(staying, rows=(np.cumsum(mask) - 1)[staying.rows])
