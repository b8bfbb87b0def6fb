"""One condition in every way it can be written: for plain Spark, and for `qm.where`.

A case lists its conditions once, in the order a user would write them. From that list come the
rival in each of PySpark's forms, and what `qm.where` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType

import querymesh as qm
from querymesh.query.predicate.predicate import Predicate
from querymesh_lab.bench.data.row_predicate import RowPredicate
from querymesh_lab.bench.filters import plain_spark

Given = Literal["predicate", "udf", "pandas_udf", "arrow_udf"]
"""How `qm.where` gets Python conditions: as `qm.predicate`, or as a UDF of PySpark on columns."""

_by_hints: Any = F
"""PySpark's types do not know functions that say by type hints what they take and give."""


@dataclass(frozen=True, slots=True)
class Sql:
    """SQL text; `regex` is its column and pattern where it is one, which other engines spell anew.

    >>> matches("line", "[a]aa")
    Sql(text="line RLIKE '[a]aa'", regex=('line', '[a]aa'))
    """

    text: str
    regex: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ArrayPredicate:
    """A Python function of whole Arrow arrays, one for each of its columns."""

    name: str
    columns: tuple[str, ...]
    fn: Callable[..., pa.Array]


Condition = Sql | RowPredicate | ArrayPredicate
Order = tuple[int, ...]
"""Places in the list of conditions, from 0, in the order in which they are evaluated."""


def matches(column: str, pattern: str) -> Sql:
    """A regular expression that must be found somewhere in a column."""
    return Sql(f"{column} RLIKE '{pattern}'", (column, pattern))


def texts(*conditions: str) -> tuple[Sql, ...]:
    """Several conditions in SQL."""
    return tuple(Sql(text) for text in conditions)


def label(condition: Condition) -> str:
    """A condition as tables name it."""
    if isinstance(condition, Sql):
        return condition.text
    return f"{condition.name}({', '.join(condition.columns)})"


def _arrays_in_arrow(fn: Callable[..., pa.Array]) -> Any:
    def over_arrays(*values: pa.Array) -> pa.Array:
        return fn(*values)

    over_arrays.__annotations__ = {"values": pa.Array, "return": pa.Array}
    return _by_hints.arrow_udf(over_arrays, BooleanType())


def _arrays_in_pandas(fn: Callable[..., pa.Array]) -> Any:
    pd: Any = import_module("pandas")

    def over_series(*values: pd.Series) -> pd.Series:
        return fn(*(pa.array(value, from_pandas=True) for value in values)).to_pandas()

    over_series.__annotations__ = {"values": pd.Series, "return": pd.Series}
    return _by_hints.pandas_udf(over_series, BooleanType())


ARRAY_WAYS: dict[str, Callable[[Callable[..., pa.Array]], Any]] = {
    "arrow_udf": _arrays_in_arrow,
    "pandas_udf": _arrays_in_pandas,
}
DEFAULT_ROW_WAY, DEFAULT_ARRAY_WAY = "udf, Arrow", "arrow_udf"
ROW_WAYS: dict[Given, str] = {
    "udf": DEFAULT_ROW_WAY,
    "pandas_udf": "pandas_udf",
    "arrow_udf": "arrow_udf",
}


def ways(conditions: Sequence[Condition]) -> list[str]:
    """The forms that PySpark has for the Python functions among the conditions; none, no forms."""
    if any(isinstance(c, ArrayPredicate) for c in conditions):
        return [w for w in ARRAY_WAYS if w != "pandas_udf" or find_spec("pandas") is not None]
    if any(isinstance(c, RowPredicate) for c in conditions):
        return plain_spark.ways()
    return []


def default_way(conditions: Sequence[Condition]) -> str:
    """The form PySpark's manual shows first, before it is known which is fastest."""
    arrays = any(isinstance(c, ArrayPredicate) for c in conditions)
    return DEFAULT_ARRAY_WAY if arrays else DEFAULT_ROW_WAY


def column(condition: Condition, way: str, *, barrier: bool = False) -> Column:
    """A condition as plain Spark has it; behind a barrier Spark neither merges nor moves it."""
    if isinstance(condition, Sql):
        return F.expr(condition.text)
    by_way = ARRAY_WAYS if isinstance(condition, ArrayPredicate) else plain_spark.WAYS
    function = by_way[way](condition.fn)
    if barrier:
        function = function.asNondeterministic()
    called: Column = function(*map(F.col, condition.columns))
    return called


def as_written(df: DataFrame, conditions: Sequence[Condition], way: str) -> DataFrame:
    """`df.filter(a & b & ...)`: Spark keeps the order of SQL, and runs all UDFs on what is left."""
    return df.filter(reduce(lambda a, b: a & b, [column(c, way) for c in conditions]))


def in_order(df: DataFrame, conditions: Sequence[Condition], order: Order, way: str) -> DataFrame:
    """The conditions in a forced order.

    Spark evaluates all UDFs of a filter on all its rows, and merges filters, unless they are
    declared non-deterministic: so each Python function gets a filter of its own that is.
    """
    sql: list[Column] = []
    for index in order:
        condition = conditions[index]
        if isinstance(condition, Sql):
            sql.append(column(condition, way))
            continue
        df = _filtered(df, sql)
        sql = []
        df = df.filter(column(condition, way, barrier=True))
    return _filtered(df, sql)


def _filtered(df: DataFrame, sql: list[Column]) -> DataFrame:
    return df.filter(reduce(lambda a, b: a & b, sql)) if sql else df


def for_where(conditions: Sequence[Condition], given: Given) -> list[str | Column | Predicate]:
    """The conditions as `qm.where` is given them."""
    return [_for_where(condition, given) for condition in conditions]


def _for_where(condition: Condition, given: Given) -> str | Column | Predicate:
    if isinstance(condition, Sql):
        return condition.text
    arrays = isinstance(condition, ArrayPredicate)
    if given != "predicate":
        return column(condition, given if arrays else ROW_WAYS[given])
    return qm.predicate(
        condition.fn, columns=condition.columns, name=condition.name, vectorised=arrays
    )
