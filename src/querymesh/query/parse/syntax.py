"""SQL text to a sqlglot tree, with our own errors: where it went wrong, and a caret under it."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Container

from sqlglot import ErrorLevel, Token, TokenType, exp
from sqlglot.dialects import Dialect
from sqlglot.errors import ParseError, TokenError

from querymesh.errors import QueryError
from querymesh.query.aggregate import AGGREGATES, TIME_WINDOWS
from querymesh.query.functions import CALLABLE

_SPARK = Dialect.get_or_raise("spark")
_NOT_CALLS = {"like", "ilike", "rlike", "regexp", "cast", "try_cast"}
"""Words that may stand before a bracket without being a function's name."""

_WORDY = {"extract", "overlay", "position", "substr", "substring", "trim"}
_WORDS = {"both", "for", "from", "in", "leading", "placing", "trailing"}
"""SQL's own way to call some functions, `extract(YEAR FROM ts)`: words between the arguments."""

MARK = "qm__"
"""Set before each function's name, so that sqlglot leaves the call as written for us to read.

Its own reading would be Spark's or another dialect's idea of the function, and would swallow a
user's function that happens to share a name with one it knows.
"""


def tokenize(sql: str) -> list[Token]:
    """The tokens of the text; QueryError at a quote or comment that does not end."""
    try:
        return list(_SPARK.tokenize(sql))
    except TokenError as error:
        found = re.search(r"Missing (.).* from (\d+):(\d+)", str(error.__cause__))
        where = max(len(sql) - 1, 0)
        if found:
            # sqlglot counts the columns of the first line from 0 and those of the others from 1.
            near = _offset(sql, int(found[2]), int(found[3]) + 1)
            where = max(sql.rfind(found[1], 0, near + 1), 0)
        raise syntax_error(sql, where, "a quote or comment is not closed") from None


def parse(sql: str, user_functions: Container[str], shown: str | None = None) -> list[exp.Expr]:
    """The statements of the text (or one bare expression) as sqlglot trees.

    `shown` is the text as the user wrote it, with the windows that `sql` has blanked out.
    """
    tokens = _quotes_joined(sql, tokenize(sql))
    for at, (token, following) in enumerate(itertools.pairwise(tokens)):
        if following.token_type == TokenType.L_PAREN and _is_function(token, user_functions):
            if token.text.lower() in _WORDY and _has_words(tokens, at + 1):
                continue
            token.text = MARK + token.text
            token.token_type = TokenType.VAR
    logger = logging.getLogger("sqlglot")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        statements = _SPARK.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, sql)
    except ParseError as error:
        raise _from_parser(shown or sql, error) from None
    finally:
        logger.disabled = was_disabled
    return [statement for statement in statements if statement is not None]


def as_written(node: exp.Expr) -> str:
    """A part of the tree as SQL, for an error message."""
    return str(node.sql(dialect="spark")).replace(MARK.upper(), "").replace(MARK, "")


def syntax_error(sql: str, offset: int, what: str) -> QueryError:
    """A QueryError with line, column, the line itself and a caret under the place."""
    line = sql.count("\n", 0, offset) + 1
    start = sql.rfind("\n", 0, offset) + 1
    column = offset - start + 1
    shown = sql[start:].split("\n", 1)[0]
    return QueryError(
        f"SQL: {what}, at line {line}, column {column}\n  {shown}\n  {' ' * (column - 1)}^"
    )


def _is_function(token: Token, user_functions: Container[str]) -> bool:
    name = token.text.lower()
    if name in user_functions:
        return True
    known = name in CALLABLE or name in AGGREGATES or name in TIME_WINDOWS
    return (token.token_type == TokenType.VAR or known) and name not in _NOT_CALLS


def _has_words(tokens: list[Token], opening: int) -> bool:
    """Whether the call's arguments are told apart by words."""
    depth = 0
    for token in tokens[opening:]:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 1 and token.token_type != TokenType.STRING and token.text.lower() in _WORDS:
            return True
        if depth == 0:
            return False
    return False


def _quotes_joined(sql: str, tokens: list[Token]) -> list[Token]:
    """'O''Brien' is one string with a quote in it, as in Spark 4; sqlglot sees two strings."""
    joined: list[Token] = []
    for token in tokens:
        before = joined[-1] if joined else None
        if (
            before is not None
            and before.token_type == token.token_type == TokenType.STRING
            and before.end + 1 == token.start
            and sql[before.end] == sql[token.start]
        ):
            text = before.text + sql[token.start] + token.text
            joined[-1] = Token(
                TokenType.STRING, text, before.line, token.col, before.start, token.end
            )
        else:
            joined.append(token)
    return joined


def _from_parser(sql: str, error: ParseError) -> QueryError:
    if not error.errors:
        return QueryError(f"SQL: {error}")
    first = error.errors[0]
    highlight = first["highlight"] or ""
    offset = _offset(sql, first["line"], first["col"] - len(highlight) + 1)
    description = first["description"] or ""
    if description.startswith("Required keyword"):
        what = f"something is missing beside {highlight!r}"
    elif "Unexpected token" in description:
        what = f"unexpected {highlight!r}"
    else:
        what = f"{description[:1].lower()}{description[1:]} near {highlight!r}"
    return syntax_error(sql, offset, what)


def _offset(sql: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = sql.index("\n", start) + 1
    return min(start + max(column - 1, 0), max(len(sql) - 1, 0))
