"""Between Spark's types and Arrow's: the same names, the session's time zone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, IntegerType, StructField, StructType

from querymesh.errors import SchemaError, UnsupportedError, did_you_mean
from querymesh.query.bind.share import QUERY, SharedQuery, result_name
from querymesh.query.expr import Column
from querymesh.query.model import BoundQuery


def check_classic(data: object) -> None:
    """Refuse a DataFrame of Spark Connect, which has no plan here to look at."""
    if ".connect." in type(data).__module__:
        raise UnsupportedError(
            "this DataFrame is of Spark Connect, where QueryMesh does not run yet: use a classic "
            "session, such as SparkSession.builder.master('local[*]').getOrCreate()"
        )


def arrow_schema(data: DataFrame | pa.Table) -> pa.Schema:
    """The schema as a task sees it: timestamps carry the session's zone."""
    if isinstance(data, pa.Table):
        return data.schema
    if "timestamp" not in data.schema.simpleString():  # asking for the zone is a call to the JVM
        return to_arrow_schema(data.schema)
    zone = data.sparkSession.conf.get("spark.sql.session.timeZone")
    return to_arrow_schema(data.schema, timezone=zone)


def named_once(schema: pa.Schema) -> pa.Schema:
    """The columns that a name tells: of namesakes none."""
    count = Counter(map(str.lower, schema.names))
    return pa.schema([field for field in schema if count[field.name.lower()] == 1])


def has_namesakes(names: Sequence[str]) -> bool:
    """Whether some names differ in case at most.

    >>> has_namesakes(["a", "A"]), has_namesakes(["a", "b"])
    (True, False)
    """
    return len({*map(str.lower, names)}) < len(names)


def arrow_type(kind: DataType, frame: DataFrame) -> pa.DataType:
    """The Arrow type in which a task sees values of a Spark type."""
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    return to_arrow_type(kind, timezone=zone)


def zoneless_us(time: str) -> str:
    """Microseconds of a reading of the clock, in Spark SQL, whatever the session's zone is."""
    apart = f"CAST({time} - {_EPOCH} AS INTERVAL SECOND)"
    return f"CAST(CAST({apart} AS DECIMAL(20, 6)) * 1000000 AS BIGINT)"


def zoneless_reading(us: str) -> str:
    """The reading of the clock at so many microseconds, in Spark SQL."""
    return f"timestampadd(MICROSECOND, {us}, {_EPOCH})"


_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"

WATERMARK = "spark.watermarkDelayMs"
"""Where Spark notes that a column has a watermark."""


def output_struct(
    bound: BoundQuery,
    inputs: Mapping[str, DataFrame | pa.Table],
    leave_out: Collection[str] = (),
) -> StructType:
    """The result's Spark schema; a bare column keeps its field, metadata and all but `leave_out`.

    `inputs` are by alias. Queries that share one pass have the number of the query, and a struct
    for each.
    """
    if isinstance(bound, SharedQuery):
        return struct_of_parts(bound.parts, inputs)
    fields = []
    for output, arrow in zip(bound.outputs, bound.output_schema, strict=True):
        field = None
        if isinstance(output.expr, Column):
            data = inputs[output.expr.relation or bound.source.alias]
            if isinstance(data, DataFrame):
                field = data.schema[output.expr.name]
        if field is not None:
            metadata = {k: v for k, v in (field.metadata or {}).items() if k not in leave_out}
            fields.append(StructField(output.name, field.dataType, field.nullable, metadata))
        else:
            kind = from_arrow_type(arrow.type, prefer_timestamp_ntz=True)
            fields.append(StructField(output.name, kind, True))
    return StructType(fields)


def struct_of_parts(
    parts: Sequence[BoundQuery],
    inputs: Mapping[str, DataFrame | pa.Table],
    leave_out: Collection[str] = (),
) -> StructType:
    """The Spark schema of what queries in one pass give: the query's number, a struct for each."""
    fields = [StructField(QUERY, IntegerType(), False)]
    for number, part in enumerate(parts):
        struct = output_struct(part, inputs, leave_out)
        fields.append(StructField(result_name(number), struct, True))
    return StructType(fields)


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the schema's columns and types; SchemaError if it cannot have them."""
    if table.schema.equals(schema):
        return table
    for name in schema.names:
        if name not in table.column_names:
            known = did_you_mean(name, table.column_names)
            raise SchemaError(f"the sample or table has no column {name!r}: {known}")
    try:
        return table.select(schema.names).cast(schema)
    except pa.ArrowException as problem:
        raise SchemaError(f"the sample or table does not fit its schema: {problem}") from problem
