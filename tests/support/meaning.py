"""An expression's values on Arrow and on DuckDB, to compare what the engines take it to mean."""

import math
import re
from collections.abc import Mapping, Sequence

import duckdb
import pyarrow as pa

from duckdb_reading import MACROS, duckdb_sql
from querymesh.errors import UnsupportedError
from querymesh.query.bind.infer import infer, typed
from querymesh.query.evaluate import evaluate
from querymesh.query.expr import Call, Column, Expr, columns_of, walk
from querymesh.query.parse.query import condition_of
from querymesh.query.predicate.predicate import Predicate
from querymesh.query.render import to_text
from random_expressions import table

TABLE = table()
_ARRAYS = {name: TABLE[name].combine_chunks() for name in TABLE.column_names}


def computed(
    sql: str, functions: Mapping[str, Predicate] | None = None, **columns: pa.Array
) -> list[object]:
    """The values of a SQL expression on columns given as arrays; NaN is shown as 'nan'."""
    known = functions or {}
    n = len(next(iter(columns.values())))
    expr, dtype = typed(condition_of(sql, known), lambda c: columns[c.name].type, known)
    result = evaluate(expr, lambda column: columns[column.name], n, known)
    assert len(result) == n
    assert result.type == dtype or pa.types.is_null(dtype)
    return ["nan" if isinstance(v, float) and math.isnan(v) else v for v in result.to_pylist()]


def value_of(sql: str) -> object:
    """The value of an expression without columns, computed as if it had one."""
    (value,) = computed(sql, any_column=pa.array([0]))
    return value


def column_type(column: Column) -> pa.DataType:
    """The type of a column of `TABLE`."""
    return TABLE.schema.field(column.name).type


def all_typed(exprs: Sequence[Expr]) -> list[tuple[Expr, pa.DataType]]:
    """The expressions with their types, but for those that only Spark can read."""
    found = []
    for expr in exprs:
        try:
            found.append(typed(expr, column_type, {}))
        except UnsupportedError as refused:
            if not re.search(
                "zone of the session|TIMESTAMP to DATE|as Spark reads it", str(refused)
            ):
                raise
    assert found
    return found


def on_arrow(expr: Expr) -> list[object]:
    """The values of a typed expression on the rows of `TABLE`."""
    return evaluate(expr, lambda column: _ARRAYS[column.name], TABLE.num_rows, {}).to_pylist()


def duckdb_with_rows() -> duckdb.DuckDBPyConnection:
    """DuckDB with `TABLE` as its table `rows`, its timestamps without their zone, which is UTC."""
    connection = duckdb.connect()
    zoneless = [
        field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field
        for field in TABLE.schema
    ]
    connection.register("rows", TABLE.cast(pa.schema(zoneless)))
    connection.execute(MACROS)
    return connection


def on_duckdb(duck: duckdb.DuckDBPyConnection, exprs: Sequence[Expr]) -> list[list[object]]:
    """The values of each expression on the rows of `TABLE`."""
    types = {f.name: "BIGINT" if pa.types.is_integer(f.type) else "OTHER" for f in TABLE.schema}
    texts = ", ".join(duckdb_sql(expr, types) for expr in exprs)
    rows = duck.sql(f"SELECT {texts} FROM rows ORDER BY id").fetchall()
    return [list(values) for values in zip(*rows, strict=True)]


def duckdb_can(expr: Expr) -> bool:
    """DuckDB's remainder of DOUBLEs is not C's nor Java's: -1.5 % 0.1 is 0 there."""
    return not any(
        isinstance(node, Call)
        and node.function == "%"
        and pa.types.is_floating(infer(node, column_type, {}))
        for node in walk(expr)
    )


def differences(expr: Expr, mine: list[object], theirs: list[object], who: str) -> list[str]:
    """The first row on which the two disagree, in words."""
    return [
        f"{to_text(expr)}: Arrow {a!r}, {who} {b!r} on "
        + str({column.name: TABLE[column.name][row].as_py() for column in columns_of(expr)})
        for row, (a, b) in enumerate(zip(mine, theirs, strict=True))
        if _plain(a) != _plain(b)
    ][:1]


def _plain(value: object) -> object:
    """Values that are equal when SQL calls them equal."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if hasattr(value, "tzinfo"):
        return value.replace(tzinfo=None)
    return value
