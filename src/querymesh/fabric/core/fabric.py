"""The self-routing fabric (SRF) of QM § 5: the operator index array and the rusters inside it.

::

                    +---+----+----+----+
    OI-array        | 0 |  1 |  2 |  3 |      0 is the output; the others are operator modules
                    +---+----+----+----+
    ruster <3,1,2>            ^     .  |      goes to 3, which pops its token: <1,2>,
                              '-----.--'      then to 1, then 2, then out; or leaves when empty

No router stands in the middle: a ruster's own token tells where it goes next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.core.operators import MOST_ROWS, FailedCall, UserCalls, make_modules
from querymesh.fabric.core.output import Gathering
from querymesh.fabric.core.pool import Pool
from querymesh.fabric.core.router import Router
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.query.bind.share import SharedQuery
from querymesh.query.model import BoundQuery, Filter


class Fabric:
    """The operators of one query, ready to process windows of its source."""

    def __init__(
        self,
        bound: BoundQuery,
        tables: Mapping[str, LookupTable] | None = None,
        on_error: str = "raise",
    ) -> None:
        self.bound = bound
        filters_only = all(isinstance(operator, Filter) for operator in bound.operators)
        defers = on_error == "raise" and filters_only and not isinstance(bound, SharedQuery)
        alone = len(bound.operators) == 1
        self._calls = UserCalls(bound.query.functions, "defer" if defers else on_error, alone)
        self._output_calls = UserCalls(bound.query.functions, on_error)
        self._tables = dict(tables or {})
        self.modules = make_modules(bound, self._tables, self._calls)
        self.metrics = Metrics()

    def window(self, batch: pa.RecordBatch) -> ClassificationWindow:
        """A batch of the source as a classification window."""
        return ClassificationWindow(self.bound.source.alias, batch, self._tables)

    def run(self, batch: pa.RecordBatch, router: Router) -> Iterator[pa.RecordBatch]:
        """The results of one window, in the order of its rows unless a join made them too many."""
        for part in windows(batch, router):
            started = perf_counter()
            window = self.window(part)
            gathering = Gathering(self.bound, window)
            for ruster in self._travel(window, router):
                self._raise_deferred(ruster)
                gathering.add(ruster)
                if gathering.rows >= MOST_ROWS:
                    yield from self._out(gathering)
            if gathering.rows:
                yield from self._out(gathering)
            self.metrics.total_seconds += perf_counter() - started

    def passes(self, batch: pa.RecordBatch, router: Router) -> Bools:
        """For a query without look-ups: which rows of one batch pass every operator."""
        passed, failed = self.decide(batch, router)
        for call in failed.values():
            raise call.error()
        return passed

    def decide(self, batch: pa.RecordBatch, router: Router) -> tuple[Bools, dict[int, FailedCall]]:
        """Which rows pass, and of these the ones on which a function raised: if nothing else drops
        them, that is the query's error."""
        started = perf_counter()
        passed = np.zeros(batch.num_rows, dtype=bool)
        failed: dict[int, FailedCall] = {}
        first = 0
        for part in windows(batch, router):
            for ruster in self._travel(self.window(part), router):
                passed[first + ruster.rows] = True
            for row, call in self._calls.deferred.items():
                if passed[first + row]:
                    failed[first + row] = call
            first += part.num_rows
            router.saw(self.metrics)
        self.metrics.rows_out += int(passed.sum())
        self.metrics.total_seconds += perf_counter() - started
        return passed, failed

    def failed_calls(self) -> Mapping[int, FailedCall]:
        """By row of the window, the calls that raised and were let travel on."""
        return self._calls.deferred

    def _raise_deferred(self, ruster: Ruster) -> None:
        """A row that passed every operator and on which a function raised is the query's error."""
        if self._calls.deferred:
            for row in ruster.rows:
                if (call := self._calls.deferred.get(int(row))) is not None:
                    raise call.error()

    def _travel(self, window: ClassificationWindow, router: Router) -> Iterator[Ruster]:
        """The rusters that reach the output."""
        yield from self._move(self._set_out(window, router), router)

    def _set_out(self, window: ClassificationWindow, router: Router) -> list[Ruster]:
        """A window's rusters, classified and counted, at the start of their routes."""
        started = perf_counter()
        self._calls.deferred.clear()
        rusters = router.rusters(window)
        metrics = self.metrics
        metrics.classify_seconds += perf_counter() - started
        metrics.windows += 1
        metrics.rows_in += window.rows
        metrics.rusters += len(rusters)
        for made in rusters:
            metrics.leaf_rows[router.version, made.leaf] += len(made)
        return rusters

    def _move(
        self,
        rusters: Iterable[Ruster],
        router: Router,
        until: Callable[[Ruster], bool] | None = None,
    ) -> Iterator[Ruster]:
        """Follow rusters to the output, or to where `until` is true of them."""
        if not router.decides:
            yield from self._follow(rusters, router, until)
            return
        pool = Pool()
        arriving = iter(rusters)
        while True:
            for ruster in arriving:
                if not ruster.token.stack or (until is not None and until(ruster)):
                    yield ruster
                elif pool.rows + len(ruster) > MOST_ROWS:
                    yield from self._follow([ruster], router, until)
                else:
                    pool.add(ruster)
            if not pool:
                return
            arriving = self._drawn(pool.take(), router)

    def _follow(
        self,
        rusters: Iterable[Ruster],
        router: Router,
        until: Callable[[Ruster], bool] | None = None,
    ) -> Iterator[Ruster]:
        """Follow rusters depth first, one after the other."""
        inside = [iter(rusters)]  # depth first, so that a large fan-out is never held at once
        while inside:
            ruster = next(inside[-1], None)
            if ruster is None:
                inside.pop()
            elif until is not None and until(ruster):
                yield ruster
            elif ruster.token.choices or (router.decides and ruster.token.stack):
                inside.append(self._drawn(ruster, router))
            elif ruster.token.stack:
                inside.append(self._go_on(ruster, router.version))
            else:
                yield ruster

    def _drawn(self, ruster: Ruster, router: Router) -> Iterator[Ruster]:
        """Visit the operators that the router chooses for a ruster, and tell it what came out."""
        started = perf_counter()
        parts = router.choose(ruster)
        self.metrics.routing_seconds += perf_counter() - started
        for chosen in parts:
            index = chosen.token.top
            listener = router.hear(ruster, chosen)
            if listener.calls:
                self.metrics.routing[index, listener.went_by] += listener.calls
            visits = self.metrics.visits[router.version, chosen.leaf, index]
            # No other ruster of this leaf visits the operator until this one is done.
            evaluated, passed, seconds = visits.evaluations, visits.passed, visits.seconds
            for out in self._visit(chosen, router.version):
                listener.out(out)
                yield out
            started = perf_counter()
            listener.done(
                visits.evaluations - evaluated, visits.passed - passed, visits.seconds - seconds
            )
            self.metrics.learning_seconds += perf_counter() - started

    def _go_on(self, ruster: Ruster, version: int) -> Iterator[Ruster]:
        """Visit at least the next operator of a route that is known."""
        return self._visit(ruster, version)

    def _visit(self, ruster: Ruster, version: int) -> Iterator[Ruster]:
        index = ruster.token.top
        visits = self.metrics.visits[version, ruster.leaf, index]
        visits.calls += 1
        visits.evaluations += len(ruster)
        module = self.modules[index - 1]
        errors, comparisons = module.errors, module.comparisons
        started = perf_counter()
        for out in module.process(ruster):
            visits.seconds += perf_counter() - started
            visits.passed += len(out)
            visits.errors += module.errors - errors
            visits.comparisons += module.comparisons - comparisons
            if len(out):
                yield out
            errors, comparisons = module.errors, module.comparisons  # others may have run meanwhile
            started = perf_counter()
        visits.seconds += perf_counter() - started
        visits.comparisons += module.comparisons - comparisons

    def _out(self, gathering: Gathering) -> Iterator[pa.RecordBatch]:
        """What was gathered, in one batch unless its texts are too long for that."""
        metrics = self.metrics
        metrics.output_errors += gathering.rows
        started = perf_counter()
        for batch in gathering.take(self._output_calls):
            metrics.rows_out += batch.num_rows
            metrics.output_errors -= batch.num_rows
            metrics.output_seconds += perf_counter() - started
            yield batch
            started = perf_counter()


def windows(batch: pa.RecordBatch, router: Router) -> Iterator[pa.RecordBatch]:
    """The batch in classification windows of at most as many rows as the router takes (W^TC,
    QM § 5.1); it is asked before each."""
    first = 0
    while True:
        most = router.window
        if first == 0 and (most is None or batch.num_rows <= most):
            yield batch
            return
        part = batch.slice(first, most)
        yield part
        first += part.num_rows
        if first >= batch.num_rows:
            return
