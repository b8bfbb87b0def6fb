"""What a relation of a join keeps: its tuples as a partition, with the codes that find them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Ints
from querymesh.fabric.core.operators import UserCalls
from querymesh.fabric.core.tables import on_batch, one_batch
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.probe import is_exact
from querymesh.index.store.codes import equality_codes, order_codes
from querymesh.index.store.partition import Partition
from querymesh.index.store.stem import Stem
from querymesh.query.expr import Expr
from querymesh.query.join import JoinQuery, KeyClass
from querymesh.query.types import compute_type


@dataclass(frozen=True)
class Keyed:
    """Tuples of a relation with their codes; `joinable` tells which have a value of every key,
    and `failed` on how many of the others a function in a key raised.

    Every condition of the query must hold of a result, so a tuple with NULL in a key that is
    compared can be in none.
    """

    joinable: Bools
    keys: tuple[Ints, ...]
    orders: tuple[Ints, ...]
    values: Mapping[int, pa.Array]
    failed: int = 0


def keyed(join: JoinQuery, alias: str, rows: pa.RecordBatch, calls: UserCalls) -> Keyed:
    """Compute the keys of a relation's tuples."""
    classes = join.keys_of(alias)
    exprs = [*(each.members[alias] for each in classes), *join.orders_of(alias)]
    arrays = [_computed(expr, rows, calls) for expr in exprs]
    failed = calls.take_failed()
    joinable = np.ones(rows.num_rows, dtype=bool) if failed is None else ~failed
    for array in arrays:
        if array.null_count:
            joinable &= np.asarray(pc.is_valid(array), dtype=bool)
    if not joinable.all():
        chosen = pa.array(joinable)
        arrays = [array.filter(chosen) for array in arrays]
    values = dict(zip([each.number for each in classes], arrays, strict=False))
    keys = tuple(_codes(each, values[each.number]) for each in classes)
    orders = []
    for array in arrays[len(classes) :]:
        codes = order_codes(array)
        if codes is None:
            raise TypeError(f"{alias} is compared by {array.type}, which has no order codes")
        orders.append(codes)
    unsure = {each.number: values[each.number] for each in classes if not is_exact(each.dtype)}
    return Keyed(joinable, keys, tuple(orders), unsure, 0 if failed is None else int(failed.sum()))


def _computed(expr: Expr, rows: pa.RecordBatch, calls: UserCalls) -> pa.Array:
    array = on_batch(expr, rows, calls)
    wanted = compute_type(array.type)
    return array if array.type == wanted else array.cast(wanted)


def _codes(each: KeyClass, values: pa.Array) -> Ints:
    return equality_codes(values if values.type == each.dtype else values.cast(each.dtype)).codes


def stored_columns(join: JoinQuery, alias: str, rows: pa.RecordBatch, key: Keyed) -> pa.RecordBatch:
    """The columns of joinable tuples that are kept in the state."""
    kept = rows.select(join.columns_kept(alias))
    for each in join.keys_of(alias):
        name = join.value_column(each, alias)
        if each.number in key.values and name not in kept.schema.names:
            kept = kept.append_column(name, key.values[each.number])
    return kept


def partition_of(
    join: JoinQuery, alias: str, arrivals: Arrivals, key: Keyed, rows: pa.RecordBatch
) -> Partition:
    """Joinable arrivals as a partition of their stream's state; `rows` are their stored columns."""
    window = join.window_of(alias)
    counts = window is not None and window.kind == "rows"
    return Partition(
        rows=rows,
        keys=key.keys,
        orders=key.orders,
        times=arrivals.numbers if counts else arrivals.times,
        serials=arrivals.serials,
    )


def static_stem(join: JoinQuery, alias: str, table: pa.Table, calls: UserCalls) -> Stem:
    """A static table as a state that is filled once: filtered by what concerns it alone."""
    batch = one_batch(table)
    for condition in join.static_filters.get(alias, ()):
        verdict = on_batch(condition, batch, calls)
        passed, _ = calls.mask(verdict, alias)
        batch = batch.filter(pa.array(passed))
    key = keyed(join, alias, batch, calls)
    batch = batch.filter(pa.array(key.joinable))
    rows = stored_columns(join, alias, batch, key)
    stem = Stem()
    stem.insert(Partition(rows, key.keys, key.orders, np.zeros(rows.num_rows, np.int64), None))
    return stem
