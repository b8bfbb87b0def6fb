"""What a query is given: one DataFrame or Arrow table for each relation, checked and named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from querymesh.errors import SchemaError, did_you_mean
from querymesh.query.model import BoundQuery, Query
from querymesh.spark.sample import whole_table
from querymesh.spark.schema import arrow_schema, conform

Data: TypeAlias = DataFrame | pa.Table
Inputs: TypeAlias = Mapping[str, Data]


def bind_inputs(query: Query, given: Data | Inputs) -> tuple[BoundQuery, dict[str, Data]]:
    """The query bound to its inputs' schemas, and the inputs by alias."""
    inputs = _by_name(query, given)
    bound = query.bind({name: arrow_schema(data) for name, data in inputs.items()})
    return bound, {relation.alias: inputs[relation.name] for relation in query.relations}


def _by_name(query: Query, given: Data | Inputs) -> dict[str, Data]:
    """The inputs by relation name as FROM spells it."""
    names = list(dict.fromkeys(relation.name for relation in query.relations))
    if not isinstance(given, Mapping):
        if len(names) > 1:
            raise SchemaError(
                f"the query reads {', '.join(names)}: give a dict with a DataFrame for each"
            )
        return {names[0]: given}
    by_lower = {str(name).lower(): data for name, data in given.items()}
    for name in names:
        if name.lower() not in by_lower:
            raise SchemaError(f"no input for relation {name!r}: {did_you_mean(name, given)}")
    known = {name.lower() for name in names}
    for name in given:
        if str(name).lower() not in known:
            raise SchemaError(f"the query has no relation {name!r}: {did_you_mean(name, names)}")
    return {name: by_lower[name.lower()] for name in names}


def static_tables(bound: BoundQuery, data: Mapping[str, Data]) -> dict[str, pa.Table]:
    """The look-up tables, whole, by alias."""
    return {
        alias: conform(whole_table(data[alias], alias), bound.schemas[alias])
        for alias in data
        if alias != bound.source.alias
    }
