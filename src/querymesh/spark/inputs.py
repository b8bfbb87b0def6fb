"""What a query is given: one DataFrame or Arrow table for each relation, checked and named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.errors import QueryMeshError, SchemaError, did_you_mean
from querymesh.query.bind.share import SharedQuery, share
from querymesh.query.bind.windowed_join import bind_join, stream_count
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery, Query
from querymesh.spark.sample import whole_table
from querymesh.spark.schema import arrow_schema, conform

Data: TypeAlias = DataFrame | pa.Table
Inputs: TypeAlias = Mapping[str, Data]


def bind_inputs(
    query: Query, given: Data | Inputs
) -> tuple[BoundQuery | JoinQuery, dict[str, Data]]:
    """The query bound to its inputs' schemas, and the inputs by alias."""
    inputs = _by_name([relation.name for relation in query.relations], given)
    schemas = {name: arrow_schema(data) for name, data in inputs.items()}
    data = {relation.alias: inputs[relation.name.lower()] for relation in query.relations}
    if stream_count(query, schemas) > 1:
        return bind_join(query, schemas), data
    return query.bind(schemas), data


def bind_shared(
    queries: Sequence[Query], given: Data | Inputs
) -> tuple[SharedQuery, dict[str, Data]]:
    """Queries over one source bound together, and their inputs by common alias."""
    if not queries:
        raise QueryMeshError("there is no query to run: give at least one")
    for query in queries:
        if not isinstance(query, Query):
            raise QueryMeshError(
                f"queries that share one pass are given as Query, not {type(query).__name__}: "
                "their mesh is learned for all of them together"
            )
    names = [relation.name for query in queries for relation in query.relations]
    inputs = _by_name(names, given)
    bounds = [
        query.bind({relation.name: arrow_schema(inputs[relation.name.lower()])
                    for relation in query.relations})
        for query in queries
    ]  # fmt: skip
    bound = share(bounds)
    return bound, {r.alias: inputs[r.name.lower()] for r in bound.query.relations}


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
