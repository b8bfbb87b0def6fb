"""Functions that choose among values: CASE, coalesce, greatest and their kin."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from querymesh.query.functions.comparison import aligned, equal, greater
from querymesh.query.functions.spec import Datum, Function, Signature, call, null_where, one_type
from querymesh.query.types import Kind, kind_of


def case(*args: Datum) -> Datum:
    """CASE WHEN args[0] THEN args[1] WHEN args[2] THEN args[3] ... ELSE the odd last one."""
    otherwise = args[-1] if len(args) % 2 else pa.scalar(None)
    *values, chosen = aligned(*args[1::2], otherwise)
    for condition, value in zip(
        reversed(args[: 2 * len(values) : 2]), reversed(values), strict=True
    ):
        chosen = pc.if_else(pc.fill_null(condition, False), value, chosen)
    return chosen


def coalesce(*args: Datum) -> Datum:
    """The first argument that is not NULL."""
    return pc.coalesce(*aligned(*args))


def spark_case(*args: str) -> str:
    """The same CASE as Spark SQL."""
    pairs = zip(args[0::2], args[1::2], strict=False)
    arms = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    otherwise = f" ELSE {args[-1]}" if len(args) % 2 else ""
    return f"CASE {arms}{otherwise} END"


def case_rule(types: Sequence[pa.DataType]) -> Signature | None:
    """Conditions are booleans, values share a type."""
    is_value = [i % 2 == 1 or i == len(types) - 1 for i in range(len(types))]
    values = one_type([t for t, chosen in zip(types, is_value, strict=True) if chosen])
    conditions = [t for t, chosen in zip(types, is_value, strict=True) if not chosen]
    if values is None or any(kind_of(t) not in (Kind.BOOLEAN, Kind.NULL) for t in conditions):
        return None
    wanted = tuple(values.wanted[0] if chosen else pa.bool_() for chosen in is_value)
    return Signature(wanted, values.result)


def nullif_rule(types: Sequence[pa.DataType]) -> Signature | None:
    """Arguments that share a type, and a result of the first one's."""
    found = one_type(types)
    if found is None or kind_of(types[0]) is Kind.NULL:
        return found
    return found._replace(result=types[0])


def nullif(a: Datum, b: Datum) -> Datum:
    """NULL where a = b, else a."""
    a, b = aligned(a, b)
    return null_where(equal(a, b), a)


def _extreme(first_wins: Callable[[Datum, Datum], Datum]) -> Callable[..., Datum]:
    """The greatest or least of the arguments that are not NULL, with NaN as the greatest."""

    def pick(a: Datum, b: Datum) -> Datum:
        wins = pc.if_else(pc.is_null(b), pa.scalar(True), pc.fill_null(first_wins(a, b), False))
        return pc.if_else(wins, a, b)

    return lambda *args: functools.reduce(pick, aligned(*args))


_ONE_TYPE = "values of one type"

CONDITIONAL = (
    Function("case", (2, None), "booleans and values of one type", case_rule, case, spark_case),
    Function("if", (3, 3), "a boolean and two values of one type", case_rule, case, call("if")),
    Function("coalesce", (1, None), _ONE_TYPE, one_type, coalesce, call("coalesce"), True),
    Function("nullif", (2, 2), _ONE_TYPE, nullif_rule, nullif, call("nullif"), True),
    Function("greatest", (2, None), _ONE_TYPE, one_type, _extreme(greater), call("greatest"), True),
    Function(
        "least",
        (2, None),
        _ONE_TYPE,
        one_type,
        _extreme(lambda a, b: greater(b, a)),
        call("least"),
        True,
    ),
)
