"""LIKE: `%` is any text, `_` any one character, newlines included; a backslash escapes both.

Most patterns are a prefix, a suffix or a part, for which Arrow has kernels without a regular
expression.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from querymesh.errors import QueryError
from querymesh.query.functions.spec import Datum


class Token(NamedTuple):
    """One character of a pattern, and whether it is a wildcard."""

    character: str
    wild: bool


def tokens(pattern: str, escape: str = "\\") -> list[Token]:
    """The pattern with its escapes resolved; Spark's rules for what may be escaped."""
    found: list[Token] = []
    characters = iter(pattern)
    for character in characters:
        if character != escape:
            found.append(Token(character, character in "%_"))
            continue
        escaped = next(characters, None)
        if escaped is None or escaped not in ("%", "_", escape):
            raise QueryError(
                f"LIKE pattern {pattern!r}: {escape!r} must be followed by '%', '_' or itself; "
                f"write {escape * 2!r} for the character itself"
            )
        found.append(Token(escaped, False))
    return found


def check(pattern: str) -> None:
    """QueryError if the pattern is malformed."""
    tokens(pattern)


def with_backslash(pattern: str, escape: str) -> str:
    """A pattern with another ESCAPE character, rewritten to the usual one."""
    return "".join(
        character if wild or character not in "%_\\" else "\\" + character
        for character, wild in tokens(pattern, escape)
    )


def like(strings: Datum, pattern: pa.Scalar) -> Datum:
    """Whether each string matches the whole pattern."""
    parsed = tokens(pattern.as_py())
    wild = [i for i, token in enumerate(parsed) if token.wild]
    plain = "".join(token.character for token in parsed if not token.wild)
    anys = [i for i in wild if parsed[i].character == "%"]
    last = len(parsed) - 1
    if not wild:
        return pc.equal(strings, pa.scalar(plain))
    if anys == wild:
        if wild == [last]:
            return pc.starts_with(strings, plain)
        if wild == [0]:
            return pc.ends_with(strings, plain)
        if wild == [0, last]:
            return pc.match_substring(strings, plain)
    return pc.match_substring_regex(strings, rf"(?s)\A{_regex(parsed)}\z")


def _regex(parsed: list[Token]) -> str:
    wild = {"%": ".*", "_": "."}
    return "".join(wild[t.character] if t.wild else re.escape(t.character) for t in parsed)
