"""The fabric for several queries at once (QM § 5.2): one pass, shared operators run once a tuple.

A token's mask says which queries its tuples still serve. An operator that drops a tuple takes the
queries it belongs to from the mask, and the tuple travels on for the others, if there are any; an
operator that none of a ruster's queries asks for is skipped::

    <1, 2, 3> for q1, q2          operator 2 is q1's alone
       passed by 1, 2:  <3> for q1, q2
       dropped by 2:    <3> for q2

A look-up that only some of the queries have forks the ruster: joined rows for those, the rows
themselves for the others. Both halves may then come to an operator of all of them. What an operator
says about a tuple of the source is therefore remembered while its window lasts, so it is asked once
a tuple, however often the tuple was multiplied. Only operators that read joined columns are asked
once a joined row of each fork.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.fabric.core.fabric import Fabric, windows
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.metrics import Visits
from querymesh.fabric.core.operators import MOST_ROWS, FilterModule, LookupModule
from querymesh.fabric.core.output import Gathering
from querymesh.fabric.core.router import Router
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.query.bind.share import QUERY, SharedQuery, queries_in, result_name
from querymesh.query.model import BoundQuery, Lookup

Answers = tuple[Ints, Ints]
"""For each row: where its matches start, and how many there are; a filter's count is 0 or 1."""

_UNKNOWN = -1


def make_fabric(
    bound: BoundQuery, tables: Mapping[str, LookupTable] | None = None, on_error: str = "raise"
) -> Fabric:
    """The fabric for a query, or for queries that share one pass."""
    kind = SharedFabric if isinstance(bound, SharedQuery) else Fabric
    return kind(bound, tables, on_error)


class SharedFabric(Fabric):
    """The operators of several queries, ready to process windows of their one source."""

    bound: SharedQuery
    _known: dict[int, Answers]
    """What operators have said about tuples of the window, by operator."""

    @cached_property
    def _to_remember(self) -> frozenset[int]:
        return _met_in_forks(self.bound)

    def run(self, batch: pa.RecordBatch, router: Router) -> Iterator[pa.RecordBatch]:
        """The results of one window for each query, in the shared output's columns."""
        for part in windows(batch, router):
            started = perf_counter()
            window = self.window(part)
            gatherings = [Gathering(query, window) for query in self.bound.parts]
            for ruster in self._travel(window, router):
                for number in queries_in(ruster.token.serves):
                    gatherings[number].add(ruster)
                    if gatherings[number].rows >= MOST_ROWS:
                        yield from self._shared_out(number, gatherings[number])
            for number, gathering in enumerate(gatherings):
                if gathering.rows:
                    yield from self._shared_out(number, gathering)
            self.metrics.total_seconds += perf_counter() - started

    def _travel(self, window: ClassificationWindow, router: Router) -> Iterator[Ruster]:
        self._known = {}
        return super()._travel(window, _ForAll(router, self.bound.everyone))

    def _drawn(self, ruster: Ruster, router: Router) -> Iterator[Ruster]:
        token = ruster.token
        for index in token.choices:
            if not token.serves & self.bound.serves[index - 1]:
                yield replace(ruster, token=token.choose(index).pop())  # nobody asks for it
                return
        yield from super()._drawn(ruster, router)

    def _visit(self, ruster: Ruster, version: int) -> Iterator[Ruster]:
        index = ruster.token.top
        served = self.bound.serves[index - 1]
        mine, others = ruster.token.serves & served, ruster.token.serves & ~served
        if not mine:
            yield replace(ruster, token=ruster.token.pop())
            return
        visits = self.metrics.visits[version, ruster.leaf, index]
        visits.calls += 1
        module = self.modules[index - 1]
        started = perf_counter()
        starts, counts = self._answers(index, ruster, visits)
        if isinstance(module, FilterModule):
            passed = counts > 0
            out = [ruster.keep(passed)]
            if others and not passed.all():
                out.append(_serving(ruster.pick(np.flatnonzero(~passed)), others))
            visits.seconds += perf_counter() - started
            yield from (each for each in out if len(each))
            return
        assert isinstance(module, LookupModule)
        for joined in module.joined(ruster, starts, counts):
            visits.seconds += perf_counter() - started
            if len(joined):
                yield _serving(joined, mine)
            started = perf_counter()
        if others:
            yield _serving(replace(ruster, token=ruster.token.pop()), others)

    def _answers(self, index: int, ruster: Ruster, visits: Visits) -> Answers:
        """What the operator says about each row; asked anew only where that is not known."""
        if index not in self._to_remember:
            return self._asked(index, ruster, visits)
        rows = ruster.window.rows
        if index not in self._known:
            self._known[index] = np.zeros(rows, np.int64), np.full(rows, _UNKNOWN)
        starts, counts = self._known[index]
        unknown = np.flatnonzero(counts[ruster.rows] == _UNKNOWN)
        if len(unknown):
            _, first = np.unique(ruster.rows[unknown], return_index=True)
            asked = ruster.pick(unknown[first])
            starts[asked.rows], counts[asked.rows] = self._asked(index, asked, visits)
        return starts[ruster.rows], counts[ruster.rows]

    def _asked(self, index: int, ruster: Ruster, visits: Visits) -> Answers:
        module = self.modules[index - 1]
        before = module.errors
        visits.evaluations += len(ruster)
        if isinstance(module, LookupModule):
            answers = module.probe(ruster)
        else:
            assert isinstance(module, FilterModule)
            passed = module.verdict(ruster).astype(np.int64)
            answers = passed, passed
        visits.passed += int(answers[1].sum())
        visits.errors += module.errors - before
        return answers

    def _shared_out(self, number: int, gathering: Gathering) -> Iterator[pa.RecordBatch]:
        for batch in self._out(gathering):
            yield tagged(self.bound.output_schema, number, batch)


class _ForAll(Router):
    """Another router, whose rusters set out to serve every query."""

    def __init__(self, router: Router, everyone: int) -> None:
        self.version = router.version
        self.choose = router.choose  # type: ignore[method-assign]
        self.hear = router.hear  # type: ignore[method-assign]
        self._router = router
        self._everyone = everyone

    def rusters(self, window: ClassificationWindow) -> list[Ruster]:
        return [_serving(ruster, self._everyone) for ruster in self._router.rusters(window)]


def tagged(schema: pa.Schema, number: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """One query's results in the columns of all."""
    columns = [pa.array(np.full(batch.num_rows, number, np.int32))]
    for field in list(schema)[1:]:
        if field.name == result_name(number):
            columns.append(_struct(batch, field.type))
        else:
            columns.append(pa.nulls(batch.num_rows, field.type))
    assert schema.names[0] == QUERY
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _serving(ruster: Ruster, queries: int) -> Ruster:
    return replace(ruster, token=replace(ruster.token, serves=queries))


def _struct(batch: pa.RecordBatch, kind: pa.StructType) -> pa.Array:
    if not batch.num_columns:
        return pa.array([{}] * batch.num_rows, kind)
    return pa.StructArray.from_arrays(batch.columns, fields=list(kind))


def _met_in_forks(bound: SharedQuery) -> frozenset[int]:
    """Operators of several queries that read the source alone, where look-ups may fork rusters."""
    lookups = {op.index for op in bound.operators if isinstance(op, Lookup)}
    if not lookups:
        return frozenset()
    return frozenset(
        op.index
        for op, served in zip(bound.operators, bound.serves, strict=True)
        if served.bit_count() > 1 and not op.after & lookups
    )
