"""Windows in the papers' notation, which no SQL parser knows: found, read, and blanked out.

`Stock s [RANGE 60 SECONDS]`, `News [ROWS 100]`, `News[1 hour]`, and a trailing `WINDOW 60 seconds`
or `WINDOW 10000`. They are replaced by spaces, so that positions in error messages stay right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlglot import Token, TokenType

from querymesh.query.model import Window
from querymesh.query.parse.syntax import syntax_error, tokenize

_UNITS_US = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
}
_ENDS_FROM = {
    TokenType.WHERE,
    TokenType.GROUP_BY,
    TokenType.ORDER_BY,
    TokenType.HAVING,
    TokenType.LIMIT,
    TokenType.WINDOW,
    TokenType.SEMICOLON,
    TokenType.SELECT,
}
_CONDITION = {TokenType.ON, TokenType.USING}
_NEXT_RELATION = {TokenType.COMMA, TokenType.JOIN}


@dataclass(frozen=True, slots=True)
class SqlWithoutWindows:
    """The SQL without windows; `at` gives the windows by their offset in the text."""

    sql: str
    at: dict[int, Window]
    trailing: Window | None


def without_windows(sql: str) -> SqlWithoutWindows:
    """Take the windows out of a query's text."""
    tokens = tokenize(sql)
    blanked = list(sql)
    at: dict[int, Window] = {}
    trailing = None

    def blank(first: Token, last: Token) -> None:
        for i in range(first.start, last.end + 1):
            if blanked[i] != "\n":
                blanked[i] = " "

    in_from = in_condition = False
    depth = i = 0
    while i < len(tokens):
        kind = tokens[i].token_type
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
        # FROM also stands in extract(YEAR FROM ts) and in IS DISTINCT FROM.
        if kind == TokenType.FROM and not depth and not _is_distinct_from(tokens, i):
            in_from, in_condition = True, False
        elif kind in _ENDS_FROM:
            in_from = False
        elif kind in _CONDITION:
            in_condition = True
        elif kind in _NEXT_RELATION:
            in_condition = False
        if kind == TokenType.L_BRACKET and in_from and not in_condition:
            end = _closing(sql, tokens, i)
            at[tokens[i].start] = _bracketed(sql, tokens[i], tokens[i + 1 : end])
            blank(tokens[i], tokens[end])
            i = end
        elif kind == TokenType.WINDOW and _has_size(tokens, i + 1):
            if trailing is not None:
                raise syntax_error(sql, tokens[i].start, "a second trailing WINDOW")
            end = _trailing_end(tokens, i)
            trailing = _sized(sql, tokens[i], tokens[i + 1 : end], rows_if_bare=True)
            blank(tokens[i], tokens[end - 1])
            i = end - 1
        i += 1
    return SqlWithoutWindows("".join(blanked), at, trailing)


def _is_distinct_from(tokens: list[Token], i: int) -> bool:
    return i > 0 and tokens[i - 1].token_type == TokenType.DISTINCT


def _closing(sql: str, tokens: list[Token], opening: int) -> int:
    for i in range(opening + 1, len(tokens)):
        if tokens[i].token_type == TokenType.R_BRACKET:
            return i
    raise syntax_error(sql, tokens[opening].start, "the window's '[' is not closed")


def _has_size(tokens: list[Token], i: int) -> bool:
    """Tells the papers' WINDOW 60 seconds from SQL's WINDOW name AS (...)."""
    sizes = (TokenType.NUMBER, TokenType.DASH)
    return i < len(tokens) and tokens[i].token_type in sizes


def _trailing_end(tokens: list[Token], start: int) -> int:
    end = start + 1
    while end < len(tokens) and tokens[end].token_type not in _ENDS_FROM and end < start + 4:
        end += 1
    return end


def _bracketed(sql: str, opening: Token, inner: list[Token]) -> Window:
    word = inner[0].text.lower() if inner else ""
    if word == "range":
        return _sized(sql, opening, inner[1:])
    if word == "rows":
        if len(inner) > 1 and inner[-1].text.lower() in ("row", "rows"):
            inner = inner[:-1]
        return _sized(sql, opening, inner[1:], rows_if_bare=True, rows_only=True)
    return _sized(sql, opening, inner)


def _sized(
    sql: str,
    place: Token,
    parts: list[Token],
    *,
    rows_if_bare: bool = False,
    rows_only: bool = False,
) -> Window:
    """`60 seconds` or `100` as a window."""
    negative = bool(parts) and parts[0].token_type == TokenType.DASH
    size = parts[1:] if negative else parts
    if not size or size[0].token_type != TokenType.NUMBER or len(size) > 2:
        raise syntax_error(
            sql, place.start, "a window is [RANGE 60 SECONDS], [ROWS 100] or WINDOW 60 seconds"
        )
    amount = float(size[0].text)
    if negative or amount <= 0:
        raise syntax_error(sql, parts[0].start, "a window's size must be positive")
    if math.isinf(amount * max(_UNITS_US.values())):
        raise syntax_error(
            sql,
            size[0].start,
            f"a window of {size[0].text} cannot be counted: write a smaller number, such as "
            "[RANGE 1e6 DAYS] or [ROWS 1e15] for all there ever is",
        )
    unit = size[1].text.lower() if len(size) == 2 else None
    if unit in ("row", "rows") and rows_if_bare:
        unit = None
    if unit is None or rows_only:
        if not rows_if_bare:
            raise syntax_error(
                sql, size[0].start, f"{size[0].text} of what? {_unit_remedy()}, or [ROWS n]"
            )
        if unit is not None:
            raise syntax_error(sql, size[1].start, f"[ROWS n] takes no unit {size[1].text!r}")
        if amount != int(amount):
            raise syntax_error(sql, size[0].start, "a window of rows takes a whole number")
        return Window("rows", int(amount))
    unit_us = _UNITS_US.get(unit) or _UNITS_US.get(unit.removesuffix("s"))
    if unit_us is None:
        raise syntax_error(sql, size[1].start, f"unknown unit {size[1].text!r}; {_unit_remedy()}")
    size_us = round(amount * unit_us)
    if size_us < 1:
        raise syntax_error(sql, size[0].start, "a window must last at least a microsecond")
    return Window("range", size_us)


def _unit_remedy() -> str:
    return "write microseconds, milliseconds, seconds, minutes, hours or days"
