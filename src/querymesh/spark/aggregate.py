"""Aggregates on top of a query, by Spark: groupBy, agg, HAVING, and the columns asked for.

On a stream the result is an aggregation of Spark's own: `writeStream` takes outputMode "complete"
or "update"; "append" also works where a time window is grouped by and a watermark is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType, TimestampNTZType

from querymesh.errors import QueryError, QueryMeshError, SchemaError, UnsupportedError
from querymesh.query.aggregate import Aggregation, ComputedColumn
from querymesh.query.bind.infer import typed
from querymesh.query.expr import Column, Expr, SparkText
from querymesh.query.model import Output
from querymesh.query.render import quoted_name, spark_sql, to_text
from querymesh.query.types import Kind, kind_of, sql_name
from querymesh.spark.context import analysed
from querymesh.spark.schema import WATERMARK, zoneless_reading, zoneless_us

Types: TypeAlias = Callable[[Column], pa.DataType]

_A_ROW = ComputedColumn("a0", "count(1)", "count(*)")
"""Groups without aggregates: Spark wants one, and leaves it out of the plan again."""


def aggregated(
    out: DataFrame,
    aggregation: Aggregation,
    watermark: str | None = None,
    texts: Mapping[str, str] | None = None,
) -> DataFrame:
    """The asked columns, of the DataFrame that the query without its aggregates gave.

    `watermark` is how late a row of a stream may come ("10 seconds"). With it, the groups of a time
    window are finished, and their state is dropped, once time has gone on by so much. A watermark
    that the time column carries already stands. `texts` tell errors what the columns of the
    DataFrame are in the query's own words.
    """
    time, keys = aggregation.time, aggregation.keys
    zoneless = False
    if out.isStreaming and watermark is not None and time is not None:
        zoneless = isinstance(out.schema[time].dataType, TimestampNTZType)
        if zoneless:
            out, keys = _with_instants(out, time), _by_instants(time, keys)
            out = out.withWatermark(_EVENT, watermark)
        elif WATERMARK not in out.schema[time].metadata:
            out = out.withWatermark(time, watermark)
    try:
        groups = _groups(out, keys, aggregation.aggregates)
    except AnalysisException as problem:
        said = _in_words(str(problem.getMessage()).splitlines()[0], texts or {})
        raise SchemaError(
            f"{_guilty(out, aggregation)}: Spark cannot compute it here: {said}"
        ) from problem
    if zoneless:
        groups = _read_off(groups, [k.name for k in keys if quoted_name(_EVENT) in k.sql])
    types = _types_of(groups)
    if aggregation.having is not None:
        groups = groups.filter(_having(groups, aggregation, types))
    return groups.select(*(_output(groups, each, types) for each in aggregation.outputs))


_EVENT = "event"
"""A column beside c1, c2, …: the instant that stands for a reading of the clock."""


def _with_instants(out: DataFrame, time: str) -> DataFrame:
    """Spark has watermarks of instants only. A reading of the clock is as if in UTC: its windows
    are the same, whatever the zone of the session."""
    return out.withColumn(_EVENT, F.expr(f"timestamp_micros({zoneless_us(quoted_name(time))})"))


def _by_instants(time: str, keys: Sequence[ComputedColumn]) -> tuple[ComputedColumn, ...]:
    """The keys with the time window over the instants."""
    own = re.compile(r"(\w*window\()" + re.escape(quoted_name(time)))
    event = quoted_name(_EVENT)
    return tuple(replace(key, sql=own.sub(rf"\1{event}", key.sql, count=1)) for key in keys)


def _read_off(groups: DataFrame, windows: Sequence[str]) -> DataFrame:
    """The bounds of time windows as readings of the clock again."""
    for name in windows:
        window = quoted_name(name)
        bounds = (
            F.expr(zoneless_reading(f"unix_micros({window}.{bound})")).alias(bound)
            for bound in ("start", "end")
        )
        groups = groups.withColumn(name, F.struct(*bounds))
    return groups


def _having(groups: DataFrame, aggregation: Aggregation, types: Types) -> SparkColumn:
    written = f"HAVING {aggregation.having_text}"
    assert aggregation.having is not None
    if isinstance(aggregation.having, SparkText):
        return _by_spark(groups, aggregation.having, written)
    condition, dtype = _checked(aggregation.having, types, written)
    if kind_of(dtype) not in (Kind.BOOLEAN, Kind.NULL):
        raise SchemaError(f"{written} is {sql_name(dtype)}, not a condition; compare it")
    return F.expr(f"CAST({spark_sql(condition)} AS BOOLEAN)")


def _output(groups: DataFrame, output: Output, types: Types) -> SparkColumn:
    expr = output.expr
    if isinstance(expr, SparkText):
        return _by_spark(groups, expr, output.name).alias(output.name)
    # A bare column may be of any type that Spark has; only what computes needs one of ours.
    if not isinstance(expr, Column):
        expr, _ = _checked(expr, types, output.name)
    return F.expr(spark_sql(expr)).alias(output.name)


def _in_words(said: str, texts: Mapping[str, str]) -> str:
    """What Spark said, with the user's columns for those that only we know."""
    return re.sub(r"`?\b(c\d+)\b`?", lambda found: texts.get(found[1], found[0]), said)


def _by_spark(groups: DataFrame, text: SparkText, where: str) -> SparkColumn:
    """What only Spark understands of keys and aggregates; our error where it does not either."""
    made = F.expr(spark_sql(text))
    try:
        (found,) = analysed(groups, [made])
    except (AnalysisException, ParseException, UnsupportedError) as refused:
        if "UNRESOLVED_COLUMN" in str(refused):
            raise QueryError(
                f"{where}: all that it reads must be grouped by or aggregated: {to_text(text)}"
            ) from None
        raise type(text.problem)(f"{where}: {text.problem}") from None
    if not found.deterministic:
        raise UnsupportedError(
            f"{where} is not deterministic: make it a column of the DataFrame that comes out"
        )
    return made


def _groups(
    out: DataFrame, keys: Sequence[ComputedColumn], aggregates: Sequence[ComputedColumn]
) -> DataFrame:
    """One row a group: its keys and aggregates by their names."""
    grouped = out.groupBy(*(F.expr(key.sql).alias(key.name) for key in keys))
    return grouped.agg(*(F.expr(each.sql).alias(each.name) for each in aggregates or (_A_ROW,)))


def _guilty(out: DataFrame, aggregation: Aggregation) -> str:
    """The first key or aggregate that Spark refuses by itself."""
    alone: list[tuple[ComputedColumn, list[ComputedColumn], list[ComputedColumn]]] = []
    alone += [(key, [key], []) for key in aggregation.keys]
    alone += [(each, [], [each]) for each in aggregation.aggregates]
    for suspect, keys, aggregates in alone:
        try:
            _groups(out, keys, aggregates)
        except AnalysisException:
            return suspect.text
    return "GROUP BY"


def _types_of(groups: DataFrame) -> Types:
    """Arrow's type of a column of the groups; of those alone that something is computed of."""
    zone = groups.sparkSession.conf.get("spark.sql.session.timeZone")

    def type_of(column: Column) -> pa.DataType:
        fields = groups.schema if column.relation is None else groups.schema[column.relation]
        struct = fields if isinstance(fields, StructType) else fields.dataType
        assert isinstance(struct, StructType), "a group of an alias is a struct of its columns"
        only = StructType([struct[column.name]])
        return to_arrow_schema(only, timezone=zone).field(0).type

    return type_of


def _checked(expr: Expr, types: Types, where: str) -> tuple[Expr, pa.DataType]:
    try:
        return typed(expr, types, {})
    except QueryMeshError as problem:
        raise type(problem)(f"{where}: {problem}") from problem
