"""String functions. Positions and lengths count characters (code points), from 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from querymesh.query.functions import java_regex, like, regex
from querymesh.query.functions.spec import (
    Datum,
    Function,
    Signature,
    call,
    row_by_row,
    template,
    text,
)
from querymesh.query.types import Kind, kind_of

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def _cased(
    ascii_kernel: Callable[[Datum], Datum], whole: Callable[[str], str]
) -> Callable[..., Datum]:
    """Arrow's kernel for ASCII; Python's full case mapping for the rest, which equals Java's."""

    def compute(strings: Datum) -> Datum:
        result = ascii_kernel(strings)
        foreign = pc.invert(pc.fill_null(pc.string_is_ascii(strings), True))
        if not pc.any(foreign).as_py():
            return result
        mapped = [whole(value) for value in strings.filter(foreign).to_pylist()]
        return pc.replace_with_mask(result, foreign, pa.array(mapped, pa.string()))

    return compute


lower = _cased(pc.ascii_lower, str.lower)
upper = _cased(pc.ascii_upper, str.upper)


def ilike(strings: Datum, pattern: pa.Scalar) -> Datum:
    """LIKE without regard to case: both sides in lower case."""
    return like.like(lower(strings), pa.scalar(pattern.as_py().lower()))


def rlike(strings: Datum, pattern: pa.Scalar) -> Datum:
    """Whether the RE2 pattern is found anywhere in the string."""
    return pc.match_substring_regex(strings, pattern.as_py())


def _trimmer(kernel: Callable[..., Datum]) -> Callable[[Datum], Datum]:
    return lambda strings: kernel(strings, characters=" ")


def substring(strings: Datum, position: Datum, length: Datum | None = None) -> Datum:
    """Characters from a position on; 0 is 1, a negative one counts from the end.

    A position before the beginning still uses up length: substring('abc', -5, 3) is 'a'.
    """
    length = pa.scalar(_INT_MAX, pa.int64()) if length is None else length
    if isinstance(position, pa.Scalar) and isinstance(length, pa.Scalar):
        return _slice(strings, position.as_py(), length.as_py())
    return row_by_row(_substring, pa.string(), strings, position, length)


def _slice(strings: pa.Array, position: int | None, length: int | None) -> pa.Array:
    bounds = _bounds(position, length) if position is not None and length is not None else None
    if bounds is None:
        return pa.nulls(len(strings), pa.string())
    return pc.utf8_slice_codeunits(strings, *bounds)


def _substring(string: str, position: int, length: int) -> str | None:
    bounds = _bounds(position, length)
    return None if bounds is None else string[bounds[0] : bounds[1]]


def _bounds(position: int, length: int) -> tuple[int, int | None] | None:
    """Python's slice for Spark's position and length; None (NULL) if they are no INTs."""
    if not (_INT_MIN <= position <= _INT_MAX and _INT_MIN <= length <= _INT_MAX):
        return None
    if length <= 0:
        return 0, 0
    if position >= 0:
        start = max(position, 1) - 1
        return start, start + length
    end = position + length
    return position, end if end < 0 else None


def replace(strings: Datum, search: Datum, replacement: Datum) -> Datum:
    """Every occurrence replaced; an empty search replaces nothing."""
    if isinstance(search, pa.Scalar) and isinstance(replacement, pa.Scalar):
        if not search.is_valid or not replacement.is_valid:
            return pa.nulls(len(strings), pa.string())
        if not search.as_py():
            return strings
        return pc.replace_substring(strings, search.as_py(), replacement.as_py())
    return row_by_row(
        lambda s, f, t: s.replace(f, t) if f else s, pa.string(), *(strings, search, replacement)
    )


def concat(*args: Datum) -> Datum:
    """The strings one after another; NULL if any is."""
    return pc.binary_join_element_wise(*args, pa.scalar(""), null_handling="emit_null")


def _finder(
    kernel: Callable[..., Datum], by_row: Callable[[str, str], bool]
) -> Callable[..., Datum]:
    def compute(strings: Datum, part: Datum) -> Datum:
        if isinstance(part, pa.Scalar):
            if not part.is_valid:
                return pa.nulls(len(strings), pa.bool_())
            return kernel(strings, part.as_py())
        return row_by_row(by_row, pa.bool_(), strings, part)

    return compute


def _length(strings: Datum) -> Datum:
    return pc.cast(pc.utf8_length(strings), pa.int64())


def _substring_rule(types: Sequence[pa.DataType]) -> Signature | None:
    if kind_of(types[0]) not in (Kind.STRING, Kind.NULL):
        return None
    if any(kind_of(t) not in (Kind.INTEGER, Kind.NULL) for t in types[1:]):
        return None
    return Signature((pa.string(), *[pa.int64()] * (len(types) - 1)), pa.string())


def _spark_substring(string: str, *bounds: str) -> str:
    return call("substring")(string, *(f"try_cast({bound} AS INT)" for bound in bounds))


_STRING, _STRINGS, _MATCH = "a string", "strings", "a string and a literal pattern"
_to_string, _to_boolean = text(pa.string()), text(pa.bool_())

TEXT = (
    Function(
        "like",
        (2, 2),
        _MATCH,
        _to_boolean,
        like.like,
        template("({0} LIKE {1})"),
        check=like.check,
    ),
    Function(
        "ilike",
        (2, 2),
        _MATCH,
        _to_boolean,
        ilike,
        template("({0} ILIKE {1})"),
        check=like.check,
    ),
    Function(
        "rlike",
        (2, 2),
        _MATCH,
        _to_boolean,
        rlike,
        template("({0} RLIKE {1})"),
        check=regex.check,
        java=java_regex.to_java,
        read=java_regex.from_java,
    ),
    Function(
        "length",
        (1, 1),
        _STRING,
        text(pa.int32()),
        _length,
        template("CAST(length({0}) AS BIGINT)"),
    ),
    Function("lower", (1, 1), _STRING, _to_string, lower, call("lower")),
    Function("upper", (1, 1), _STRING, _to_string, upper, call("upper")),
    Function("trim", (1, 1), _STRING, _to_string, _trimmer(pc.utf8_trim), call("trim")),
    Function("ltrim", (1, 1), _STRING, _to_string, _trimmer(pc.utf8_ltrim), call("ltrim")),
    Function("rtrim", (1, 1), _STRING, _to_string, _trimmer(pc.utf8_rtrim), call("rtrim")),
    Function(
        "substring",
        (2, 3),
        "a string and one or two integers",
        _substring_rule,
        substring,
        _spark_substring,
    ),
    Function("replace", (3, 3), _STRINGS, _to_string, replace, call("replace")),
    Function("concat", (1, None), _STRINGS, _to_string, concat, call("concat")),
    Function(
        "contains",
        (2, 2),
        _STRINGS,
        _to_boolean,
        _finder(pc.match_substring, lambda s, part: part in s),
        call("contains"),
    ),
    Function(
        "startswith",
        (2, 2),
        _STRINGS,
        _to_boolean,
        _finder(pc.starts_with, str.startswith),
        call("startswith"),
    ),
    Function(
        "endswith",
        (2, 2),
        _STRINGS,
        _to_boolean,
        _finder(pc.ends_with, str.endswith),
        call("endswith"),
    ),
)
