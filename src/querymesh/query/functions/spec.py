"""What the table of functions says of each: what it takes, what it gives, how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from querymesh.query.decimal_types import as_decimal
from querymesh.query.types import Kind, common_type, compute_type, kind_of

Datum = Any
"""A pa.Array, or a pa.Scalar standing for the same value on every row."""


class Signature(NamedTuple):
    """The types a call computes in; None leaves an argument as it is.

    `result` is Spark's own type of the result, whose values come in its compute type: of an INT in
    BIGINT. `rounds_to` names a cast of the result that Spark's arithmetic implies.
    """

    wanted: tuple[pa.DataType | None, ...]
    result: pa.DataType
    rounds_to: str | None = None


Rule = Callable[[Sequence[pa.DataType]], Signature | None]


@dataclass(frozen=True)
class Function:
    """One built-in function or operator.

    `arrow` gets at least one array; other arguments may be scalars. `spark` gets the arguments as
    Spark SQL. `takes` completes the sentence "... takes ..." in an error. `aligns` lets a string
    literal beside a date or timestamp be read as one. A function with `check` has a literal
    pattern as its second argument: `check` rejects a bad one, `read` gives the one that means for
    Arrow what the one as written means to Spark, and `java` rewrites that for Spark again.
    `on_decimals` names the function that stands for it where its argument is a decimal.
    """

    name: str
    arity: tuple[int, int | None]
    takes: str
    rule: Rule
    arrow: Callable[..., Datum]
    spark: Callable[..., str]
    aligns: bool = False
    check: Callable[[str], None] | None = None
    java: Callable[[str], str] | None = None
    read: Callable[[str], str] | None = None
    on_decimals: str | None = None


def comparable(types: Sequence[pa.DataType]) -> Signature | None:
    """Arguments of one kind. Integers keep their width, so that Spark can still push them down."""
    common = common_type(types)
    kinds = {kind_of(dtype) for dtype in types} - {Kind.NULL}
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return Signature((None,) * len(types), pa.bool_())
    if common is None or Kind.OTHER in kinds:
        return None
    wanted = tuple(
        None if kind_of(t) is kind_of(common) and not pa.types.is_decimal(common) else common
        for t in types
    )
    return Signature(wanted, pa.bool_())


def boolean(types: Sequence[pa.DataType]) -> Signature | None:
    """Booleans in, boolean out."""
    return _all_of(types, {Kind.BOOLEAN}, pa.bool_(), pa.bool_())


def numeric(types: Sequence[pa.DataType]) -> Signature | None:
    """Integers in, the widest of them out, or DOUBLE if any argument is one."""
    common = common_type(types)
    if common is None or kind_of(common) not in (Kind.INTEGER, Kind.FLOAT, Kind.NULL):
        return None
    common = pa.int64() if pa.types.is_null(common) else common
    return Signature((common,) * len(types), _widest(types, common))


def arithmetic(exact: Callable[..., pa.DataType], otherwise: Rule = numeric) -> Rule:
    """The rule of an operator whose result on decimals is of the type that `exact` tells."""

    def rule(types: Sequence[pa.DataType]) -> Signature | None:
        kinds = {kind_of(dtype) for dtype in types} - {Kind.NULL}
        if Kind.DECIMAL not in kinds or not kinds <= {Kind.INTEGER, Kind.DECIMAL}:
            found = otherwise(types)
            if found is None or found.result != pa.float32():
                return found
            return found._replace(rounds_to="float")
        known = [as_decimal(t) for t in types if kind_of(t) is not Kind.NULL]
        decimals = [known[0] if kind_of(t) is Kind.NULL else as_decimal(t) for t in types]
        return Signature(tuple(decimals), exact(*decimals))

    return rule


def double(types: Sequence[pa.DataType]) -> Signature | None:
    """Numbers in, DOUBLE out."""
    kinds = {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT}
    return _all_of(types, kinds, pa.float64(), pa.float64())


def integer(types: Sequence[pa.DataType]) -> Signature | None:
    """BIGINT in, BIGINT out."""
    return _all_of(types, {Kind.INTEGER}, pa.int64(), pa.int64())


def text(result: pa.DataType) -> Rule:
    """Strings in, `result` out."""
    return lambda types: _all_of(types, {Kind.STRING}, pa.string(), result)


def one_type(types: Sequence[pa.DataType]) -> Signature | None:
    """Arguments that share a type, and a result of that type (coalesce, greatest)."""
    common = common_type(types)
    if common is None or kind_of(common) is Kind.OTHER:
        return None
    return Signature((common,) * len(types), _widest(types, common))


def _widest(types: Sequence[pa.DataType], common: pa.DataType) -> pa.DataType:
    """Spark's type of a result that computes in `common`: no wider than its arguments."""
    given = [dtype for dtype in types if kind_of(dtype) is not Kind.NULL]
    if not given or any(kind_of(dtype) is not kind_of(common) for dtype in given):
        return common
    if common == pa.int64():
        widths = (d.value_type if pa.types.is_dictionary(d) else d for d in given)
        return max(widths, key=lambda dtype: int(dtype.bit_width))
    if common == pa.float64() and all(dtype == pa.float32() for dtype in given):
        return pa.float32()
    return common


def anything(types: Sequence[pa.DataType]) -> Signature | None:
    """Any argument, boolean out (IS NULL)."""
    return Signature((None,) * len(types), pa.bool_())


def _all_of(
    types: Sequence[pa.DataType], kinds: set[Kind], wanted: pa.DataType, result: pa.DataType
) -> Signature | None:
    if any(kind_of(dtype) not in kinds | {Kind.NULL} for dtype in types):
        return None
    return Signature((wanted,) * len(types), result)


def template(text: str) -> Callable[..., str]:
    """A Spark SQL template with {0}, {1} for the arguments."""
    return text.format


def call(name: str) -> Callable[..., str]:
    """Spark's own function of that name."""
    return lambda *args: f"{name}({', '.join(args)})"


def joined(separator: str) -> Callable[..., str]:
    """All arguments in parentheses, with an operator between them."""
    return lambda *args: f"({separator.join(args)})"


def in_compute_type(datum: Datum) -> Datum:
    """The datum in its compute type, which is the only one the kernels here are written for."""
    dtype = datum.type
    wanted = compute_type(dtype)
    if dtype == wanted:
        return datum
    if pa.types.is_dictionary(dtype):
        return in_compute_type(pc.cast(datum, dtype.value_type))
    if pa.types.is_uint64(dtype):
        return pc.cast(null_where(pc.greater(datum, pa.scalar(2**63 - 1, dtype)), datum), wanted)
    return pc.cast(datum, wanted, safe=False)


def null_where(condition: Datum, datum: Datum) -> Datum:
    """NULL on the rows where the condition is true, the datum's value elsewhere."""
    return pc.if_else(pc.fill_null(condition, False), pa.scalar(None, datum.type), datum)


def spread(datum: Datum, n: int) -> pa.Array:
    """The datum as an array of n rows."""
    if isinstance(datum, pa.Scalar):
        return pa.repeat(datum, n)
    if isinstance(datum, pa.ChunkedArray):
        return pa.concat_arrays(datum.chunks) if datum.num_chunks else pa.array([], datum.type)
    return datum


def rows_of(*args: Datum) -> int:
    """The number of rows of the arguments, of which at least one is an array."""
    return next(len(arg) for arg in args if not isinstance(arg, pa.Scalar))


def row_by_row(fn: Callable[..., Any], result: pa.DataType, *args: Datum) -> pa.Array:
    """Apply a Python function to each row without NULLs; for what Arrow has no kernel for."""
    n = rows_of(*args)
    rows = zip(*(spread(arg, n).to_pylist() for arg in args), strict=True)
    return pa.array([None if None in row else fn(*row) for row in rows], result)
