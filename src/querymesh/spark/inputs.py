"""What a query is given: one DataFrame or Arrow table for each relation, checked and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from querymesh.errors import QueryMeshError, SchemaError, UnsupportedError, did_you_mean
from querymesh.query.bind.share import SharedQuery, result_name, share
from querymesh.query.bind.share_joins import share_joins
from querymesh.query.bind.windowed_join import bind_join, stream_count
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery, Query
from querymesh.query.shared_join import SharedJoin
from querymesh.spark.conditions.around import Around
from querymesh.spark.conditions.leave import LeftQuery, leave_to_spark
from querymesh.spark.filters.native import CatalystColumns
from querymesh.spark.sample import whole_table
from querymesh.spark.schema import arrow_schema, conform

Data: TypeAlias = DataFrame | pa.Table
Inputs: TypeAlias = Mapping[str, Data]


@dataclass(frozen=True)
class BoundInputs:
    """A query bound to its inputs, which are by alias.

    `columns` are how Catalyst evaluates the operators that only it can, `around` is what Spark does
    below and above; both are empty for a query that we understand in full.
    """

    bound: BoundQuery | JoinQuery
    data: Mapping[str, Data]
    columns: CatalystColumns = field(default_factory=CatalystColumns)
    around: Around | None = None

    def sample(self, given: Any) -> Any:
        """A sample of the one source as the query gets it."""
        if self.around is None or not isinstance(given, DataFrame | pa.Table):
            return given
        assert isinstance(self.bound, BoundQuery)
        return self.around.input(self.bound.source.alias, given)


@dataclass(frozen=True)
class SharedInputs:
    """Queries over one source, or over the same windowed streams, bound together, their inputs by
    common alias, and what Spark does around each; empty for queries that we understand in full."""

    bound: SharedQuery | SharedJoin
    data: Mapping[str, Data]
    around: Sequence[Around] = ()
    queries: Sequence[Query] = ()

    def sample(self, given: Any) -> Any:
        """A sample of the source with what Spark computes for the queries; of windowed streams, by
        their names."""
        if isinstance(self.bound, SharedJoin):
            return self._sample_by_name(given)
        if not isinstance(given, DataFrame | pa.Table):
            return given
        for each, part in zip(self.around, self.bound.parts, strict=bool(self.around)):
            given = each.input(part.source.alias, given)
        return given

    def _sample_by_name(self, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        found = {str(name).lower(): each for name, each in given.items()}
        for around, query in zip(self.around, self.queries, strict=bool(self.around)):
            for relation in query.relations:
                name = relation.name.lower()
                if name in found:
                    found[name] = around.input(relation.alias, found[name])
        return found


def bind_inputs(query: Query, given: Data | Inputs) -> BoundInputs:
    """The query bound to its inputs' schemas; what we do not understand of it is Spark's to do."""
    inputs = _by_name([relation.name for relation in query.relations], given)
    schemas = {name: arrow_schema(data) for name, data in inputs.items()}
    data = {relation.alias: inputs[relation.name.lower()] for relation in query.relations}
    try:
        return BoundInputs(_bound(query, schemas), data)
    except QueryMeshError:
        session = _session(data)
        left = None if session is None else leave_to_spark(query, data, session)
        if left is None:
            raise
        schemas = {
            relation.name: arrow_schema(left.data[relation.alias]) for relation in query.relations
        }
        return BoundInputs(_bound(left.query, schemas), left.data, left.columns, left.around)


def bind_shared(queries: Sequence[Query], given: Data | Inputs) -> SharedInputs:
    """Queries over one source, or over the same windowed streams, bound together; what we do not
    understand is Spark's to do."""
    if not queries:
        raise QueryMeshError("there is no query to run: give at least one")
    for query in queries:
        if not isinstance(query, Query):
            raise QueryMeshError(
                f"queries that share one pass are given as Query, not {type(query).__name__}: "
                "their mesh is learned for all of them together"
            )
    inputs = _by_name([relation.name for query in queries for relation in query.relations], given)
    around: Sequence[Around] = ()
    try:
        bounds = _bound_each(queries, inputs)
    except QueryMeshError:
        session = _session(inputs)
        left = [] if session is None else _left_by_each(queries, inputs, session)
        if not any(each.around.below or each.around.above for each in left):
            raise
        around = [each.around for each in left]
        inputs = _with_columns_of(left, inputs)
        queries = [each.query for each in left]
        bounds = _bound_each(queries, inputs)
    bound = _shared(bounds)
    data = {r.alias: inputs[r.name.lower()] for r in bound.query.relations}
    return SharedInputs(bound, data, around, queries)


def _shared(bounds: Sequence[BoundQuery | JoinQuery]) -> SharedQuery | SharedJoin:
    """The queries as one: all of them over one source, or all of them joins."""
    joins = [bound for bound in bounds if isinstance(bound, JoinQuery)]
    if len(joins) == len(bounds):
        return share_joins(joins)
    others = [bound for bound in bounds if isinstance(bound, BoundQuery)]
    if joins:
        apart = " and ".join(
            ", ".join(result_name(k) for k, bound in enumerate(bounds) if isinstance(bound, kind))
            + text
            for kind, text in (
                (JoinQuery, " join windowed streams"),
                (BoundQuery, " read one source"),
            )
        )
        raise UnsupportedError(f"{apart}, which do not share a pass: give them to run_all apart")
    return share(others)


def _bound(query: Query, schemas: Mapping[str, pa.Schema]) -> BoundQuery | JoinQuery:
    if stream_count(query, schemas) > 1:
        return bind_join(query, schemas)
    return query.bind(schemas)


def _bound_each(
    queries: Sequence[Query], inputs: Mapping[str, Data]
) -> list[BoundQuery | JoinQuery]:
    return [
        _bound(query, {relation.name: arrow_schema(inputs[relation.name.lower()])
                       for relation in query.relations})
        for query in queries
    ]  # fmt: skip


def _left_by_each(
    queries: Sequence[Query], inputs: Mapping[str, Data], session: SparkSession
) -> list[LeftQuery]:
    """What remains of each query; all have their outputs spelled out, since `*` must not show what
    Spark computes for the others."""
    found = []
    for number, query in enumerate(queries):
        data = {relation.alias: inputs[relation.name.lower()] for relation in query.relations}
        left = leave_to_spark(query, data, session, shared=f"{number}_")
        assert left is not None
        found.append(left)
    return found


def _with_columns_of(left: Sequence[LeftQuery], inputs: Mapping[str, Data]) -> dict[str, Data]:
    """The inputs with what Spark computes for each of the queries."""
    found = dict(inputs)
    for each in left:
        for relation in each.query.relations:
            name = relation.name.lower()
            found[name] = each.around.input(relation.alias, found[name])
    return found


def _session(data: Mapping[str, Data]) -> SparkSession | None:
    """The session to ask; None where there is none."""
    frames = (given for given in data.values() if isinstance(given, DataFrame))
    first = next(frames, None)
    return SparkSession.getActiveSession() if first is None else first.sparkSession


def _by_name(every: Sequence[str], given: Data | Inputs) -> dict[str, Data]:
    """The inputs by relation name in lower case; each relation must have one, and no other."""
    names = list({name.lower(): name for name in every}.values())
    if not isinstance(given, Mapping):
        if len(names) > 1:
            raise SchemaError(
                f"the query reads {', '.join(names)}: give a dict with a DataFrame for each"
            )
        return {names[0].lower(): given}
    by_lower = {str(name).lower(): data for name, data in given.items()}
    for name in names:
        if name.lower() not in by_lower:
            raise SchemaError(f"no input for relation {name!r}: {did_you_mean(name, given)}")
    known = {name.lower() for name in names}
    for name in given:
        if str(name).lower() not in known:
            raise SchemaError(f"the query has no relation {name!r}: {did_you_mean(name, names)}")
    return {name.lower(): by_lower[name.lower()] for name in names}


def static_tables(bound: BoundQuery, data: Mapping[str, Data]) -> dict[str, pa.Table]:
    """The look-up tables, whole, by alias; a table of several aliases is collected once."""
    collected: dict[int, pa.Table] = {}
    for alias, given in data.items():
        if alias != bound.source.alias and id(given) not in collected:
            collected[id(given)] = conform(whole_table(given, alias), bound.schemas[alias])
    return {a: collected[id(given)] for a, given in data.items() if a != bound.source.alias}
