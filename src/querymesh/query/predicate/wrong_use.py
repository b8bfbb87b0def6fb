"""A function that takes another kind of values than it is given, and the remedy.

    qm.predicate(lambda s: s.str.contains("x"), columns=["s"])    a Series, given an Arrow array
    qm.predicate(lambda s: s.lower() == "x", columns=["s"])       a value, given an Arrow array

What was given is known, and what was meant is read from the error: which attribute was missing on
it, or which operation was refused. An error that says neither has no remedy here.
"""

from __future__ import annotations

import datetime
import decimal
import dis
import re
from collections.abc import Callable
from types import CodeType
from typing import Any, Literal

import pyarrow as pa

Given = bool | Literal["pandas"]
"""What a function is given: Arrow arrays (True), single values (False), or pandas Series."""

_NAMES = {True: "Arrow arrays", False: "single values", "pandas": "pandas Series"}
_WRITTEN: dict[Any, str] = {True: "True", False: "False", "pandas": '"pandas"'}

_PANDAS_ONLY = {
    *("abs", "agg", "all", "any", "apply", "array", "astype", "at", "between", "clip", "copy"),
    *("cumsum", "diff", "dt", "dtype", "duplicated", "empty", "eq", "fillna", "ffill", "ge", "gt"),
    *("iat", "iloc", "index", "isin", "isna", "isnull", "le", "loc", "lt", "map", "mask", "max"),
    *("mean", "median", "min", "ne", "notna", "notnull", "nunique", "pipe", "quantile", "rank"),
    *("rolling", "round", "shape", "shift", "std", "str", "sum", "to_frame", "to_list", "tolist"),
    *("transform", "values", "value_counts", "where"),
}
"""Attributes of a Series that neither an Arrow array nor a single value has in that meaning."""

_ARROW_ONLY = {
    *("to_pylist", "fill_null", "is_null", "is_valid", "drop_null", "null_count", "chunks"),
    *("num_chunks", "dictionary_encode"),
}
_SINGLE_VALUES = (
    *(str, bytes, int, float, list, dict),
    *(datetime.datetime, datetime.timedelta, decimal.Decimal),
)
_ARROW_ARRAY = re.compile(r"\bpyarrow\.lib\.\w*Array\b|'\w*[a-z0-9]Array'")
_SERIES = re.compile(r"\bSeries\b")
_REFUSED_OPERATOR = re.compile(r"not supported between|unsupported operand|bad operand type")


def remedy(fn: Callable[..., Any], given: Given, error: BaseException) -> str | None:
    """What to write instead, if the error says that the function is given the wrong kind."""
    if given is True and _is_arrow_scalar(error):
        return "it walks through an Arrow array, whose items are Arrow scalars: use .to_pylist()"
    wanted = _wanted(fn, given, error)
    if wanted is None or wanted == given:
        return None
    return (
        f"it gets {_NAMES[given]} and uses them as {_NAMES[wanted]}: "
        f"write vectorised={_WRITTEN[wanted]}"
    )


def _wanted(fn: Callable[..., Any], given: Given, error: BaseException) -> Given | None:
    if isinstance(error, AttributeError) and _was_given(given, error.obj):
        return _owner_of(error.name)
    if given == "pandas" and "compute function" in str(error):
        return True
    names_a_batch = _ARROW_ARRAY if given is True else _SERIES
    if given is False or not names_a_batch.search(str(error)):
        return None
    if isinstance(error, ValueError):
        return False if "truth value" in str(error) else None
    if not isinstance(error, TypeError):
        return None
    # `a > 3` means the same of a value and of a Series; `a > 3 and b` means values.
    is_whole = _REFUSED_OPERATOR.search(str(error)) and not _branches(fn)
    return "pandas" if is_whole else False


def _owner_of(attribute: str | None) -> Given | None:
    """Which kind of values has an attribute of this name."""
    if attribute is None:  # raised by hand, without saying what is missing
        return None
    if attribute in _PANDAS_ONLY:
        return "pandas"
    if attribute in _ARROW_ONLY:
        return True
    return False if any(hasattr(kind, attribute) for kind in _SINGLE_VALUES) else None


def _was_given(given: Given, value: Any) -> bool:
    if given is True:
        return isinstance(value, (pa.Array, pa.ChunkedArray))
    if given == "pandas":
        return type(value).__name__ == "Series"
    # A NULL has no attributes whatever was meant: that is an error of the row.
    return isinstance(value, _SINGLE_VALUES)


def _is_arrow_scalar(error: BaseException) -> bool:
    if isinstance(error, AttributeError):
        return isinstance(error.obj, pa.Scalar)
    return isinstance(error, TypeError) and "pyarrow.lib." in str(error) and "Scalar" in str(error)


def _branches(fn: Callable[..., Any]) -> bool:
    """Whether the function decides something: `if`, `and`, `or`, `not`, or a chain `a < b < c`."""
    code = getattr(fn, "__code__", None)
    if not isinstance(code, CodeType):
        return False
    return any(
        "_IF_" in step.opname or step.opname == "UNARY_NOT" for step in dis.get_instructions(code)
    )
