"""Comparisons and three-valued logic, with NaN ordered as Spark and DuckDB order it."""

from __future__ import annotations

import functools
import math

import pyarrow as pa
import pyarrow.compute as pc

from querymesh.query.functions.spec import (
    Datum,
    Function,
    anything,
    boolean,
    comparable,
    joined,
    null_where,
    template,
)
from querymesh.query.types import Kind, common_type, kind_of


def aligned(*args: Datum) -> tuple[Datum, ...]:
    """The arguments in one type: differing numbers as DOUBLE, dates as timestamps."""
    types = [arg.type for arg in args]
    if len(set(types)) == 1:
        return args
    common = common_type(types)
    if common is None:
        zones = [t.tz for t in types if pa.types.is_timestamp(t)]
        if not zones or {kind_of(t) for t in types} - {Kind.DATE, Kind.TIMESTAMP, Kind.NULL}:
            raise TypeError(f"values of the types {types} do not compare")
        return tuple(_as_timestamp(arg, zones[0]) for arg in args)
    return tuple(arg if arg.type == common else pc.cast(arg, common, safe=False) for arg in args)


def _as_timestamp(datum: Datum, zone: str | None) -> Datum:
    target = pa.timestamp("us", zone)
    if datum.type == target:
        return datum
    if zone is None or not pa.types.is_date(datum.type):
        return pc.cast(datum, target, safe=False)
    midnight = pc.cast(datum, pa.timestamp("us"), safe=False)
    # A day that begins in a clock change begins where the clock arrives, as in java.time.
    return pc.assume_timezone(midnight, zone, ambiguous="earliest", nonexistent="latest")


def _pair(a: Datum, b: Datum) -> tuple[Datum, Datum]:
    """Both aligned; two bare NULLs as booleans, since Arrow has no kernel for NULL's own type."""
    a, b = aligned(a, b)
    if pa.types.is_null(a.type):
        return pc.cast(a, pa.bool_()), pc.cast(b, pa.bool_())
    return a, b


def _may_be_nan(datum: Datum) -> bool:
    if not pa.types.is_floating(datum.type):
        return False
    if isinstance(datum, pa.Scalar):
        return bool(datum.is_valid and math.isnan(datum.as_py()))
    return True


def equal(a: Datum, b: Datum) -> Datum:
    """a = b, where NaN equals NaN."""
    a, b = _pair(a, b)
    same = pc.equal(a, b)
    if _may_be_nan(a) and _may_be_nan(b):
        same = pc.or_(same, pc.and_(pc.is_nan(a), pc.is_nan(b)))
    return same


def greater(a: Datum, b: Datum) -> Datum:
    """a > b, where NaN is greater than every number."""
    a, b = _pair(a, b)
    if not _may_be_nan(a):
        return pc.greater(a, b)
    above = pc.invert(pc.less_equal(a, b))  # true also if either is NaN
    return pc.and_not(above, pc.is_nan(b)) if _may_be_nan(b) else above


def greater_equal(a: Datum, b: Datum) -> Datum:
    """a >= b, where NaN is greater than every number."""
    a, b = _pair(a, b)
    if not _may_be_nan(a):
        return pc.greater_equal(a, b)
    if _may_be_nan(b):
        return pc.or_(pc.greater_equal(a, b), pc.is_nan(a))
    return pc.invert(pc.less(a, b))


def not_equal(a: Datum, b: Datum) -> Datum:
    """a <> b."""
    return pc.invert(equal(a, b))


def less(a: Datum, b: Datum) -> Datum:
    """a < b."""
    return greater(b, a)


def less_equal(a: Datum, b: Datum) -> Datum:
    """a <= b."""
    return greater_equal(b, a)


def null_safe_equal(a: Datum, b: Datum) -> Datum:
    """a <=> b: as `=`, but two NULLs are equal and the result is never NULL."""
    return pc.or_(pc.fill_null(equal(a, b), False), pc.and_(pc.is_null(a), pc.is_null(b)))


def conjunction(*args: Datum) -> Datum:
    """AND with three values: false if any is false, else NULL if any is NULL."""
    return functools.reduce(pc.and_kleene, args)


def disjunction(*args: Datum) -> Datum:
    """OR with three values: true if any is true, else NULL if any is NULL."""
    return functools.reduce(pc.or_kleene, args)


def between(x: Datum, low: Datum, high: Datum) -> Datum:
    """low <= x AND x <= high."""
    return pc.and_kleene(greater_equal(x, low), greater_equal(high, x))


def member(x: Datum, *items: Datum) -> Datum:
    """x IN (items): by hashing when all items are constants, else one comparison each."""
    if not all(isinstance(item, pa.Scalar) for item in items):
        return disjunction(*(equal(x, item) for item in items))
    x, *constants = aligned(x, *items)
    values = [item for item in constants if item.is_valid]
    has_null = len(values) < len(constants)
    if pa.types.is_floating(x.type) and any(item.as_py() == 0 for item in values):
        values += [pa.scalar(0.0), pa.scalar(-0.0)]
    found = pc.is_in(x, value_set=pa.array([v.as_py() for v in values], x.type))
    if has_null:
        found = null_where(pc.invert(found), found)
    return null_where(pc.is_null(x), found)


def spark_member(x: str, *items: str) -> str:
    """IN for Spark. It hashes long lists bit by bit, so a zero brings its negative along."""
    zeros = ("-0.0D",) if "0.0D" in items else ("0.0D",) if "-0.0D" in items else ()
    return f"({x} IN ({', '.join(items + zeros)}))"


def is_nan(x: Datum) -> Datum:
    """Whether x is NaN; false for NULL, as in Spark."""
    return pc.fill_null(pc.is_nan(x), False)


_SAME = "values of one kind"

COMPARISON = (
    *(
        Function(name, (2, 2), _SAME, comparable, kernel, joined(f" {name} "), aligns=True)
        for name, kernel in {
            "=": equal,
            "<>": not_equal,
            "<": less,
            "<=": less_equal,
            ">": greater,
            ">=": greater_equal,
            "<=>": null_safe_equal,
        }.items()
    ),
    Function("and", (2, None), "booleans", boolean, conjunction, joined(" AND ")),
    Function("or", (2, None), "booleans", boolean, disjunction, joined(" OR ")),
    Function("not", (1, 1), "a boolean", boolean, pc.invert, template("(NOT {0})")),
    Function("in", (2, None), _SAME, comparable, member, spark_member, aligns=True),
    Function(
        "between",
        (3, 3),
        _SAME,
        comparable,
        between,
        template("({0} BETWEEN {1} AND {2})"),
        aligns=True,
    ),
    Function("is null", (1, 1), "one value", anything, pc.is_null, template("({0} IS NULL)")),
    Function(
        "is not null", (1, 1), "one value", anything, pc.is_valid, template("({0} IS NOT NULL)")
    ),
)
