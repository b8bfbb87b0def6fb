"""Streams of different schemas laid out as one DataFrame, by shard: one shuffle for any join.

Each stream's rows get a stream number and a shard number, both in one tag, are copied to the shards
the hypercube names (`mesh/hypercube.py`), and all streams are put into one union. Columns of one
Spark type share slots: the union is as wide as the widest need of each type, not as all streams
together::

    a(ts timestamp, id bigint, price double)         b(ts timestamp, id bigint, place bigint)

    tag: shard, stream  timestamp_0  bigint_0  bigint_1  double_0
           3       0       a.ts        a.id      NULL     a.price
           3       1       b.ts        b.id    b.place      NULL

A `SlotMap` (`runtime/task/slots.py`) goes with the task and takes a batch apart again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, MapType, StructType

from querymesh.errors import SchemaError, UnsupportedError, did_you_mean
from querymesh.mesh.hypercube import Hypercube
from querymesh.query.render import quoted_name
from querymesh.runtime.task.slots import STREAM_BITS, TAG, SlotMap

_BASE = "base"
_OFFSET = "offset"


@dataclass(frozen=True)
class StreamInput:
    """One stream to lay out: the columns to send, and its key in each dimension it owns.

    A key is Spark SQL text over the stream's columns, cast to the dimension's common type. A
    dimension that only this stream owns needs none: its rows are spread by the hash of what is
    sent. `time` names the column to sort by, `place` one that tells where a row stood in its input.
    """

    alias: str
    data: DataFrame
    columns: Sequence[str]
    keys: Mapping[str, str] = field(default_factory=dict)
    time: str | None = None
    place: str | None = None


def shard_layout(
    streams: Sequence[StreamInput],
    cube: Hypercube,
    *,
    drop_null_keys: bool = True,
    sort_by_time: bool = False,
    sort_by_place: bool = False,
) -> tuple[DataFrame, SlotMap]:
    """All streams as one DataFrame whose partition s holds shard s, and how to read it.

    A row whose key is NULL joins nothing and is left out, unless `drop_null_keys=False`: a window
    of `[ROWS n]` counts it. Each shard can be sorted by the streams' `time`, by their `place`, or
    by time and then by place; rows that are equal in these, by stream. That is the order in which
    rows count as arrived (`fabric/join/arrivals.py`), so it is the same wherever Arrow ends a
    batch. A streaming DataFrame cannot be sorted.
    """
    _check(streams, cube)
    slots, kinds = _assign(streams)
    parts = [
        _placed(stream, number, cube, _packed(stream, slots[number], kinds), drop_null_keys)
        for number, stream in enumerate(streams)
    ]
    union = parts[0]
    for part in parts[1:]:
        union = union.unionByName(part)
    laid = _partitioned(union, cube.shards)
    time_slot = _common_slot([stream.time for stream in streams], slots)
    place_slot = _common_slot([stream.place for stream in streams], slots)
    if laid.isStreaming and (sort_by_time or sort_by_place):
        raise UnsupportedError(
            "a streaming DataFrame cannot be sorted within its shards: leave sort_by_time and "
            "sort_by_place out"
        )
    by = []
    if sort_by_time:
        by.append(_sortable("time", time_slot, {s.alias: _type(s, s.time) for s in streams}))
    if sort_by_place:
        by.append(_sortable("place", place_slot, {s.alias: _type(s, s.place) for s in streams}))
    if by:
        laid = laid.sortWithinPartitions(*by, TAG)
    return laid, SlotMap(
        aliases=tuple(stream.alias for stream in streams),
        columns=tuple(tuple(stream.columns) for stream in streams),
        slots=tuple(
            tuple(own[name] for name in s.columns) for s, own in zip(streams, slots, strict=True)
        ),
        nullable=tuple(tuple(s.data.schema[name].nullable for name in s.columns) for s in streams),
        time_slot=time_slot,
    )


def _partitioned(union: DataFrame, shards: int) -> DataFrame:
    if shards == 1:
        return union.repartition(1)
    if hasattr(union, "repartitionById"):
        return union.repartitionById(shards, _shard())
    # Before PySpark 4.1 two shards may fall into one partition; the tasks refuse it.
    return union.repartition(shards, _shard())


def _shard() -> Column:
    return F.shiftright(TAG, STREAM_BITS)


def _tag(shard: Column, stream: int) -> Column:
    return (shard * F.lit(1 << STREAM_BITS) + F.lit(stream)).cast("int").alias(TAG)


def _placed(
    stream: StreamInput, number: int, cube: Hypercube, packed: list[Column], drop_null_keys: bool
) -> DataFrame:
    """A stream's rows in their slots, once for each shard they go to."""
    data = stream.data
    if drop_null_keys:
        for key in stream.keys.values():
            data = data.where(F.expr(key).isNotNull())
    base = F.lit(0)
    for d in cube.owned(stream.alias):
        cell = F.pmod(_hash(stream, cube, d), F.lit(cube.shares[d])).cast("int")
        base = base + cell * F.lit(cube.strides[d])
    offsets = cube.offsets(stream.alias)
    if len(offsets) == 1:
        return data.select(_tag(base, number), *packed)
    copied = data.select(base.alias(_BASE), *packed).withColumn(
        _OFFSET, F.explode(F.array(*map(F.lit, offsets)))
    )
    tag = _tag(F.col(_BASE) + F.col(_OFFSET), number)
    return copied.select(tag, *(slot for slot in copied.columns if slot not in (_BASE, _OFFSET)))


def _hash(stream: StreamInput, cube: Hypercube, d: int) -> Column:
    """A row's hash in a dimension: the same for equal keys of all its owners.

    Spark's xxhash64 takes -0.0 for 0.0 and every NaN for the same, as its joins do. The number of
    the dimension goes in first, so that one attribute in two dimensions is spread independently.
    """
    key = stream.keys.get(cube.dimensions[d].name)
    if key is not None:
        return F.xxhash64(F.lit(d), F.expr(key))
    return F.xxhash64(F.lit(d), *(_hashable(stream, name) for name in stream.columns))


def _hashable(stream: StreamInput, name: str) -> Column:
    """A column as xxhash64 takes it: text where it holds a map or a variant."""
    column = F.col(quoted_name(name))
    kind = stream.data.schema[name].dataType
    return F.to_json(F.struct(column)) if _holds_unhashable(kind) else column


def _holds_unhashable(kind: DataType) -> bool:
    if isinstance(kind, MapType) or kind.typeName() == "variant":
        return True
    if isinstance(kind, StructType):
        return any(_holds_unhashable(part.dataType) for part in kind.fields)
    element = getattr(kind, "elementType", None)
    return element is not None and _holds_unhashable(element)


def _packed(
    stream: StreamInput, own: Mapping[str, str], kinds: Mapping[str, DataType]
) -> list[Column]:
    """One column for each slot of the union: the stream's own, or NULL."""
    held = {slot: name for name, slot in own.items()}
    return [
        (F.col(quoted_name(held[slot])) if slot in held else F.lit(None).cast(kind)).alias(slot)
        for slot, kind in kinds.items()
    ]


def _assign(streams: Sequence[StreamInput]) -> tuple[list[dict[str, str]], dict[str, DataType]]:
    """For each stream the slot of each column, and the type of each slot.

    The n-th column of a type lies in the n-th slot of that type; time and place come first, so
    that they lie in one slot of all streams.
    """
    made: dict[str, list[str]] = {}
    kinds: dict[str, DataType] = {}
    assigned = []
    for stream in streams:
        used: dict[str, int] = {}
        own = {}
        first = [name for name in (stream.time, stream.place) if name is not None]
        for name in dict.fromkeys([*first, *stream.columns]):
            kind = stream.data.schema[name].dataType
            text = kind.simpleString()
            of_type = made.setdefault(text, [])
            place = used.get(text, 0)
            used[text] = place + 1
            if place == len(of_type):
                of_type.append(_slot_name(text, kinds))
                kinds[of_type[place]] = kind
            own[name] = of_type[place]
        assigned.append(own)
    return assigned, kinds


def _slot_name(text: str, taken: Mapping[str, DataType]) -> str:
    """The next free `bigint_0`, `bigint_1`, …; decimals or arrays of all kinds count together."""
    word = re.match(r"[a-z_]+", text)
    stem = word.group() if word else "column"
    number = 0
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def _common_slot(names: Sequence[str | None], slots: Sequence[Mapping[str, str]]) -> str | None:
    """The slot that holds these columns, one of each stream, if there is one."""
    held = {own[name] if name else None for name, own in zip(names, slots, strict=True)}
    return held.pop() if len(held) == 1 else None


def _sortable(what: str, slot: str | None, types: Mapping[str, str | None]) -> str:
    if slot is None:
        raise SchemaError(
            f"the shards cannot be sorted by {what}: give each StreamInput a {what}=, all of one "
            "type; "
            + ", ".join(f"{alias}: {kind or f'no {what}='}" for alias, kind in types.items())
        )
    return slot


def _type(stream: StreamInput, name: str | None) -> str | None:
    return stream.data.schema[name].dataType.simpleString() if name else None


def _check(streams: Sequence[StreamInput], cube: Hypercube) -> None:
    """SchemaError where the streams do not fit the cube or their own data."""
    if not streams:
        raise SchemaError("there is no stream to lay out: give at least one StreamInput")
    if len(streams) > 1 << STREAM_BITS:
        raise UnsupportedError(
            f"{len(streams)} streams are more than the {1 << STREAM_BITS} that one join can have: "
            "join some of them before"
        )
    aliases = [stream.alias for stream in streams]
    if len(set(aliases)) < len(aliases):
        raise SchemaError(f"two streams have one alias: {', '.join(aliases)}")
    for stream in streams:
        roles = {"time": stream.time, "place": stream.place}
        for name in (*stream.columns, *filter(None, roles.values())):
            if name not in stream.data.columns:
                raise SchemaError(
                    f"stream {stream.alias} has no column {name!r}: "
                    f"{did_you_mean(name, stream.data.columns)}"
                )
        for role, column in roles.items():
            if column and column not in stream.columns:
                raise SchemaError(f"the {role} {column!r} of {stream.alias} must be sent as well")
    for dimension in cube.dimensions:
        for alias in dimension.owners - set(aliases):
            raise SchemaError(
                f"dimension {dimension.name!r} belongs to {alias}, which is not laid out: "
                f"{did_you_mean(alias, aliases)}"
            )
    _check_keys(streams, cube)


def _check_keys(streams: Sequence[StreamInput], cube: Hypercube) -> None:
    """Every owner has a key, and all keys of a dimension are of one type."""
    for dimension in cube.dimensions:
        types = {}
        for stream in streams:
            if stream.alias not in dimension.owners:
                continue
            key = stream.keys.get(dimension.name)
            if key is not None:
                kind = stream.data.select(F.expr(key).alias("key")).schema["key"].dataType
                types[stream.alias] = kind.simpleString()
            elif len(dimension.owners) > 1:
                raise SchemaError(
                    f"stream {stream.alias} has no key for dimension {dimension.name!r}, which it "
                    "shares with others: add it to keys="
                )
        for alias, type_name in types.items():
            if "collate" in type_name:
                raise UnsupportedError(
                    f"the key of {alias} in dimension {dimension.name!r} is of type {type_name}: "
                    "Spark hashes texts that a collation takes for equal apart; write lower(...) "
                    "or another text of it that is equal byte by byte"
                )
        if len(set(types.values())) > 1:
            raise SchemaError(
                f"the keys of dimension {dimension.name!r} are of different types, and equal "
                "values would part: cast them to one; "
                + ", ".join(f"{alias}: {kind}" for alias, kind in types.items())
            )
