"""Static tables made ready for a query: filtered once by what concerns them alone, and keyed."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.operators import UserCalls
from querymesh.query.evaluate import evaluate
from querymesh.query.expr import Column, Expr
from querymesh.query.model import BoundQuery, Lookup


def make_tables(
    bound: BoundQuery, inputs: Mapping[str, pa.Table], on_error: str = "raise"
) -> dict[str, LookupTable]:
    """The look-up tables of a query by alias; `inputs` are by relation alias."""
    tables = {}
    calls = UserCalls(bound.query.functions, on_error)
    for operator in bound.operators:
        if not isinstance(operator, Lookup):
            continue
        batch = one_batch(inputs[operator.relation])
        for condition in bound.static_filters.get(operator.relation, ()):
            verdict = on_batch(condition, batch, calls)
            kept, _ = calls.mask(verdict, operator.name)
            batch = batch.filter(pa.array(kept))
        keys = [on_batch(key, batch, calls) for key in operator.build_keys]
        calls.take_failed()  # a key that could not be computed is NULL: no match
        tables[operator.relation] = LookupTable(batch, keys)
    return tables


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """A table as a single record batch."""
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return batches[0]
    arrays = [
        pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def on_batch(expr: Expr, batch: pa.RecordBatch, calls: UserCalls) -> pa.Array:
    """An expression over one relation, computed on its rows."""

    def column(wanted: Column) -> pa.Array:
        return batch.column(wanted.name)

    return evaluate(expr, column, batch.num_rows, calls.functions, calls)
