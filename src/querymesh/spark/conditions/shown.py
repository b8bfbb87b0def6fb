"""Catalyst's SQL as people would have written it."""

from __future__ import annotations

import re

_CAST_LITERAL = re.compile(r"CAST\((-?[\d.]+|'[^']*') AS [A-Z]+(?:\([\d, ]+\))?\)")
_PLAIN_NAME = re.compile(r"`([A-Za-z_]\w*)`")


def shown_sql(sql: str) -> str:
    """Catalyst's text as people would have written it: without casts of constants, quotes around
    plain names, and brackets around all of it.

    >>> shown_sql("(p.`a` > CAST(3 AS BIGINT))")
    'p.a > 3'
    """
    return _without_brackets(_PLAIN_NAME.sub(r"\1", _CAST_LITERAL.sub(r"\1", sql)))


def _without_brackets(sql: str) -> str:
    """The text without the one pair of brackets that Catalyst puts around every operator.

    >>> _without_brackets("(a > 3)"), _without_brackets("(a) + (b)")
    ('a > 3', '(a) + (b)')
    """
    if not (sql.startswith("(") and sql.endswith(")")):
        return sql
    depth = 0
    for at, character in enumerate(sql):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and at < len(sql) - 1:
            return sql
    return sql[1:-1]
