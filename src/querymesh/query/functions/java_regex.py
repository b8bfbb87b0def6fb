r"""A regular expression as Spark reads it, java.util.regex, written for RE2 with that meaning.

Both libraries read most patterns, and read some parts of them differently::

                        Java                                    RE2
    .                   no line terminator: \n \r \u0085 …      no \n
    $                   also before a last line terminator      at the end
    \s                  with \v                                 without
    (?i)s               s, S                                    s, S, ſ
    [a&&b], [[a]]       intersections, unions                   those characters
    \b                  by Unicode up to Java 18, by ASCII since

So a pattern is taken apart, and written anew in what both read alike: characters by their numbers,
classes by their ranges. What has no such form is refused, and left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from querymesh.errors import UnsupportedError
from querymesh.query.functions import regex
from querymesh.query.functions.char_ranges import (
    LAST,
    Ranges,
    class_body,
    complement,
    spelled,
)

_DIGITS: Ranges = [(0x30, 0x39)]
_WORD: Ranges = [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_SPACE: Ranges = [(0x09, 0x0D), (0x20, 0x20)]
_NAMED = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROL = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}

_TERMINATORS = r"\x{A}\x{D}\x{85}\x{2028}\x{2029}"
_DOLLAR = rf"(?:\x{{D}}\x{{A}}|[{_TERMINATORS}])?\z"
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
_GROUP = re.compile(r"\((?:\?(?:<[A-Za-z][A-Za-z0-9]*>|([is]*)(?:-([is]*))?([:)])))?")
_HEX = re.compile(r"\\(?:x\{([0-9A-Fa-f]{1,6})\}|[xu]([0-9A-Fa-f]{2,4}))")


@lru_cache(maxsize=256)
def from_java(pattern: str) -> str:
    r"""The pattern for RE2 that finds what Java finds by the one given; UnsupportedError if none.

    >>> from_java("(?i)a.$")
    '[aA][^\\x{A}\\x{D}\\x{85}\\x{2028}\\x{2029}](?:\\x{D}\\x{A}|[\\x{A}\\x{D}\\x{85}\\x{2028}\\x{2029}])?\\z'
    """
    pieces = list(_Reading(pattern).pieces())
    for place, piece in enumerate(pieces):
        if piece == "$" and not _ends_there(pieces, place):
            raise _refused(pattern, "$ before the end of the pattern")
        if piece == "$" and not _never_between(pieces[:place]):
            raise _refused(pattern, "$ after what may be a carriage return")
    read = "".join(_DOLLAR if piece == "$" else piece for piece in pieces)
    if len(_written) >= REMEMBERED:
        _written.clear()
    _written[read] = pattern
    return read


REMEMBERED = 1024

_written: dict[str, str] = {}
"""Patterns as they were written, by their form for RE2; so many at most."""


def to_java(pattern: str) -> str:
    """What Spark is given for a pattern of RE2's: as it was written, if it was written for Spark.

    Java is faster by that than by the long form, in which classes are ranges and `$` is a choice.
    """
    return _written.get(pattern) or regex.to_java(pattern)


def _ends_there(pieces: list[str], place: int) -> bool:
    """Whether nothing of the pattern can follow what is at this place."""
    following = pieces[place + 1 :]
    if following and following[0] not in ("|", ")"):
        return False
    while following:
        depth = 1  # on to the end of the alternatives
        while following and depth:
            piece, *following = following
            depth += piece.startswith("(?:")
            depth -= piece == ")"
        if following and following[0] not in ("|", ")"):
            return False
    return True


_MANY = ("*", "+", "*?", "+?")
_OPTIONAL = ("*", "?", "*?", "??")
_RETURN_AND_NEWLINE = pa.array(["\r", "\n"])


def _never_between(before: list[str]) -> bool:
    r"""Whether a match that ends between a last \r and \n could as well end after them.

    Java's $ is not there, but that of `_DOLLAR` is. `before` is what precedes the $. Where it is
    not certain, no.
    """
    depth, quantifier = 0, ""
    for piece in reversed(before):
        if _QUANTIFIER.fullmatch(piece):
            quantifier = piece
            continue
        if piece in ("|", ")") or piece.startswith("(?:"):
            depth += {")": 1, "|": 0}.get(piece, -1)
            quantifier = ""
            continue
        if piece == r"\A" and depth <= 0:
            return True
        returns, newlines = pc.match_substring_regex(_RETURN_AND_NEWLINE, piece).to_pylist()
        if returns and not (newlines and quantifier in _MANY):
            return False
        if depth <= 0 and quantifier not in _OPTIONAL:
            return True
        quantifier = ""
    return True


def _refused(pattern: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"RLIKE pattern {pattern!r}: {what} cannot be read here as Spark reads it; "
        "use a qm.predicate with Python's re"
    )


@dataclass
class _Flags:
    any_case: bool = False
    dot_all: bool = False


class _Reading:
    """One pass over a pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = [_Flags()]

    def pieces(self) -> Iterator[str]:
        """The pattern for RE2, piece by piece; `$` stands for itself."""
        repeatable = False
        while self.at < len(self.pattern):
            quantifier = _QUANTIFIER.match(self.pattern, self.at)
            if quantifier is not None:
                after = self.pattern[quantifier.end() : quantifier.end() + 1]
                if not repeatable or after in ("*", "+", "?", "{"):
                    raise _refused(self.pattern, f"{quantifier[0]}{after}")
                self.at = quantifier.end()
                repeatable = False
                yield quantifier[0]
                continue
            piece, repeatable = self._piece()
            if piece:
                yield piece
        if len(self.flags) > 1:
            raise _refused(self.pattern, "a group that does not end")

    def _piece(self) -> tuple[str, bool]:
        """The next piece, and whether it may be repeated."""
        character = self.pattern[self.at]
        match character:
            case "(":
                return self._group(), False
            case "[":
                return self._class(), True
            case "\\":
                return self._escape()
        self.at += 1
        match character:
            case ")":
                if len(self.flags) == 1:
                    raise _refused(self.pattern, "a group that does not begin")
                self.flags.pop()
                return ")", True
            case "|":
                return "|", False
            case "^":
                return r"\A", False
            case "$":
                return "$", False
            case ".":
                any_one = rf"[\x{{0}}-\x{{{LAST:X}}}]"
                return (any_one if self.flags[-1].dot_all else f"[^{_TERMINATORS}]"), True
            case "{" | "}" | "]":
                raise _refused(self.pattern, f"a bare {character}")
        return self._character(ord(character)), True

    def _group(self) -> str:
        opening = _GROUP.match(self.pattern, self.at)
        if opening is None or self.pattern[opening.end() : opening.end() + 1] == "?":
            raise _refused(self.pattern, self.pattern[self.at : self.at + 4])
        self.at = opening.end()
        on, off, end = opening[1] or "", opening[2] or "", opening[3]
        now = self.flags[-1]
        changed = _Flags(
            (now.any_case or "i" in on) and "i" not in off,
            (now.dot_all or "s" in on) and "s" not in off,
        )
        if end == ")":
            self.flags[-1] = changed
            return ""
        self.flags.append(changed)
        return "(?:"

    def _escape(self) -> tuple[str, bool]:
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter in ("A", "z"):
            self.at += 2
            return f"\\{letter}", False
        if letter.lower() in _NAMED and letter:
            self.at += 2
            return f"[{'^' if letter.isupper() else ''}{class_body(_NAMED[letter.lower()])}]", True
        return self._character(self._escaped()), True

    def _escaped(self) -> int:
        """The character that an escape stands for."""
        number = _HEX.match(self.pattern, self.at)
        if number is not None:
            code = int(number[1] or number[2], 16)
            width = len(number[2] or "")
            of_two = self.pattern[self.at + 1] == "x" and width > 2
            if of_two:
                code, width = int(number[2][:2], 16), 2
            short = self.pattern[self.at + 1] == "u" and width != 4
            if short or code > LAST or 0xD800 <= code <= 0xDFFF:
                raise _refused(self.pattern, number[0])
            self.at = self.at + 2 + width if number[2] else number.end()
            return code
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter in _CONTROL:
            self.at += 2
            return _CONTROL[letter]
        if not letter or letter.isalnum():
            raise _refused(self.pattern, f"\\{letter}")
        self.at += 2
        return ord(letter)

    def _character(self, code: int) -> str:
        ranges = self._in_any_case([(code, code)])
        return spelled(code) if len(ranges) == 1 else f"[{class_body(ranges)}]"

    def _class(self) -> str:
        begin = self.at
        self.at += 1
        negated = self.pattern[self.at : self.at + 1] == "^"
        self.at += negated
        ranges: Ranges = []
        first = True
        while (character := self.pattern[self.at : self.at + 1]) != "]" or first:
            strange = character in ("", "[", "]") or self.pattern.startswith("&&", self.at)
            if strange:
                raise _refused(self.pattern, self.pattern[begin : self.at + 2])
            first = False
            ranges += self._member()
        self.at += 1
        return f"[{'^' if negated else ''}{class_body(ranges)}]"

    def _member(self) -> Ranges:
        """A character, a range or a named class within brackets."""
        letter = self.pattern[self.at + 1 : self.at + 2]
        if self.pattern[self.at] == "\\" and letter.lower() in _NAMED and letter:
            self.at += 2
            if (
                self.pattern[self.at : self.at + 1] == "-"
                and self.pattern[self.at + 1 :][:1] != "]"
            ):
                raise _refused(self.pattern, f"\\{letter}-")
            named = _NAMED[letter.lower()]
            return complement(named) if letter.isupper() else named
        low = self._single()
        ahead = self.pattern[self.at : self.at + 2]
        if ahead[:1] != "-" or ahead == "-]":
            return self._in_any_case([(low, low)])
        self.at += 1
        if ahead[1:] == "[" or self.pattern[self.at :][:2] in (r"\d", r"\w", r"\s"):
            raise _refused(self.pattern, ahead)
        high = self._single()
        if high < low:
            raise _refused(self.pattern, f"{chr(low)}-{chr(high)}")
        return self._in_any_case([(low, high)])

    def _single(self) -> int:
        if self.pattern[self.at : self.at + 1] == "\\":
            return self._escaped()
        code = ord(self.pattern[self.at : self.at + 1] or "\0")
        self.at += 1
        return code

    def _in_any_case(self, ranges: Ranges) -> Ranges:
        """With the other case of ASCII's letters, where the flag `i` is in force."""
        if not self.flags[-1].any_case:
            return ranges
        other: Ranges = []
        for low, high in ranges:
            for first, last, step in ((0x41, 0x5A, 0x20), (0x61, 0x7A, -0x20)):
                begin, end = max(low, first), min(high, last)
                if begin <= end:
                    other.append((begin + step, end + step))
        return ranges + other
