"""Regular expressions: one meaning, RE2's, and its translation for Java.

The fabric matches through Arrow, hence RE2; Catalyst matches with java.util.regex. The syntaxes
look alike and differ in detail (`$`, `\\b`, `\\s`, classes, flags), so a pattern is taken apart and
written anew in the part of Java's syntax that has no surprises: literals escaped, classes as
explicit ranges, anchors as look-arounds. Under the flag `i` a letter becomes the class of its
cases: by Java's own flag `i` would also find `İ` and `ı`, and `ß` would not find `ẞ`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from querymesh.errors import QueryError
from querymesh.query.functions.char_ranges import (
    LAST,
    Ranges,
    class_body,
    complement,
    ranges_of,
    spelled,
)

_LAST_WITH_CASE = 0x1E943
"""The last letter of the last alphabet in Unicode that has capitals (Adlam)."""


def check(pattern: str) -> None:
    """QueryError unless RE2 accepts the pattern."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
        to_java(pattern)
    except pa.ArrowInvalid as error:
        raise QueryError(
            f"RLIKE pattern {pattern!r}: {error}. Patterns are RE2's: look-around and "
            "back-references are not supported; use a qm.predicate for those"
        ) from error


def to_java(pattern: str) -> str:
    """The same pattern for java.util.regex.

    >>> to_java(r"^[[:digit:]]+$")
    '\\\\A[0-9]+\\\\z'
    """
    return _Translation(pattern).run()


_PERL = {"d": ranges_of("0-9"), "w": ranges_of("0-9A-Za-z_"), "s": ranges_of("\t\n\f\r ")}
_POSIX = {
    "alnum": ranges_of("0-9A-Za-z"),
    "alpha": ranges_of("A-Za-z"),
    "ascii": [(0, 0x7F)],
    "blank": ranges_of("\t "),
    "cntrl": [(0, 0x1F), (0x7F, 0x7F)],
    "digit": ranges_of("0-9"),
    "graph": ranges_of("!-~"),
    "lower": ranges_of("a-z"),
    "print": ranges_of(" -~"),
    "punct": ranges_of("!-/:-@[-`{-~"),
    "space": ranges_of("\t\n\v\f\r "),
    "upper": ranges_of("A-Z"),
    "word": ranges_of("0-9A-Za-z_"),
    "xdigit": ranges_of("0-9A-Fa-f"),
}
_CONTROL = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_ASSERTIONS = {
    "A": r"\A",
    "z": r"\z",
    # Java's own \b has followed Unicode in some versions and ASCII in others.
    "b": r"(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))",
}
_REFUSED = {
    "C": "one byte",
    "B": "no word boundary, which RE2 also finds between the bytes of one character",
}
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")
_GROUP = re.compile(r"\(\?(?:P?<\w+>|([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)]))")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))")
_CATEGORY = re.compile("[CLMNPSZ][a-z]?")
"""A property by a general category, as Lu; every other is a script, which Java wants marked."""
_NUMBER = re.compile(r"\\(?:x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2})|([0-7]{1,3}))")
_CLASS_NAME = re.compile(r"\[:(\^?)(\w+):\]")


@cache
def _letters_with_case() -> pa.Array:
    """Every character that has another case."""
    characters = map(chr, range(_LAST_WITH_CASE + 1))
    return pa.array([c for c in characters if c != c.lower() or c != c.upper()])


@lru_cache(maxsize=1024)
def _other_cases(characters: str) -> Ranges:
    """The letters that RE2 finds by a class of characters under the flag `i` only."""
    letters = _letters_with_case()
    plain, any_case = (
        pc.match_substring_regex(letters, rf"\A(?{flag}:{characters})\z") for flag in ("", "i")
    )
    found: Ranges = []
    for code in map(ord, letters.filter(pc.and_not(any_case, plain)).to_pylist()):
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return found


@dataclass
class _Flags:
    """The flags in force at a place; a group has its own copy."""

    dot_all: bool = False
    lines: bool = False
    any_case: bool = False


class _Translation:
    """One pass over a pattern that RE2 has already accepted."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = [_Flags()]

    def run(self) -> str:
        pieces = []
        while self.at < len(self.pattern):
            pieces.append(self.piece())
        return "".join(pieces)

    def piece(self) -> str:
        character = self.pattern[self.at]
        handler = {"\\": self.escape, "[": self.bracket, "(": self.group}.get(character)
        if handler is not None:
            return handler()
        if character == "{" and (repeat := _REPEAT.match(self.pattern, self.at)):
            self.at = repeat.end()
            return repeat.group()
        self.at += 1
        flags = self.flags[-1]
        match character:
            case ")":
                self.flags.pop()
                return ")"
            case "|" | "*" | "+" | "?":
                return character
            case ".":
                return r"[\x{0}-\x{10FFFF}]" if flags.dot_all else r"[^\x{A}]"
            case "^":
                return r"(?:\A|(?<=\x{A}))" if flags.lines else r"\A"
            case "$":
                return r"(?=\x{A}|\z)" if flags.lines else r"\z"
            case _:
                return self.literal(ord(character))

    def group(self) -> str:
        """Groups are never referred to: all become non-capturing, which Java matches faster."""
        flags = self.flags[-1]
        opening = _GROUP.match(self.pattern, self.at)
        if opening is None or opening[3] is None:
            self.at = opening.end() if opening else self.at + 1
            self.flags.append(replace(flags))
            return "(?:"
        self.at = opening.end()
        on, off = opening[1] or "", opening[2] or ""
        changed = _Flags(
            (flags.dot_all or "s" in on) and "s" not in off,
            (flags.lines or "m" in on) and "m" not in off,
            (flags.any_case or "i" in on) and "i" not in off,
        )
        if opening[3] == ":":
            self.flags.append(changed)
            return "(?:"
        self.flags[-1] = changed
        return ""

    def escape(self) -> str:
        """An escape outside a class."""
        rest = self.pattern[self.at + 1 :]
        if rest[0] == "Q":
            literal, _, _ = rest[1:].partition(r"\E")
            self.at += 2 + len(literal) + (2 if r"\E" in rest else 0)
            return "".join(self.literal(ord(character)) for character in literal)
        if rest[0] in _ASSERTIONS:
            self.at += 2
            return _ASSERTIONS[rest[0]]
        if rest[0] in _REFUSED:
            raise QueryError(
                f"RLIKE pattern {self.pattern!r}: \\{rest[0]} ({_REFUSED[rest[0]]}) is not "
                "supported; use a qm.predicate"
            )
        ranges, named = self.escaped()
        if named:
            return f"[{class_body(ranges)}{named}]" if ranges else named
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            return self.literal(ranges[0][0])
        return f"[{class_body(ranges)}]"

    def literal(self, code: int) -> str:
        """One character, or the class of its cases."""
        cases = self.in_any_case([(code, code)])
        return (
            spelled(code) if len(cases) == 1 and cases[0][1] == code else f"[{class_body(cases)}]"
        )

    def in_any_case(self, ranges: Ranges) -> Ranges:
        """The ranges, with the other cases of their letters where the flag `i` is in force."""
        return ranges + (_other_cases(f"[{class_body(ranges)}]") if self.flags[-1].any_case else [])

    def escaped(self) -> tuple[Ranges, str]:
        """An escape that stands for characters: ranges, and a Unicode property by its name."""
        if (named := _PROPERTY.match(self.pattern, self.at)) is not None:
            self.at = named.end()
            name = named[3] or named[4]
            negated = (named[1] == "P") != bool(named[2])
            if name == "Any":
                return ([], r"[^\x{0}-\x{10FFFF}]") if negated else ([(0, LAST)], "")
            script = "" if _CATEGORY.fullmatch(name) else "Is"
            cases = _other_cases(rf"\p{{{name}}}") if self.flags[-1].any_case else []
            if not negated:
                return cases, rf"\p{{{script}{name}}}"
            if not cases:
                return [], rf"\P{{{script}{name}}}"
            return [], rf"[^\p{{{script}{name}}}{class_body(cases)}]"
        if (number := _NUMBER.match(self.pattern, self.at)) is not None:
            self.at = number.end()
            code = int(number[3], 8) if number[3] else int(number[1] or number[2], 16)
            return [(code, code)], ""
        character = self.pattern[self.at + 1]
        self.at += 2
        if character.lower() in _PERL:
            members = _PERL[character.lower()]
            folded = self.in_any_case(members)
            return (complement(folded) if character.isupper() else folded), ""
        code = _CONTROL.get(character, ord(character))
        return [(code, code)], ""

    def bracket(self) -> str:
        """A class, as explicit ranges: Java would read `[`, `&&` and nested classes differently."""
        self.at += 1
        negated = self.pattern[self.at] == "^"
        self.at += negated
        ranges: Ranges = []
        properties = ""
        first = True
        while first or self.pattern[self.at] != "]":
            first = False
            if (named := _CLASS_NAME.match(self.pattern, self.at)) is not None:
                self.at = named.end()
                members = _POSIX[named[2]]
                folded = self.in_any_case(members)
                ranges += complement(folded) if named[1] else folded
                continue
            members, named_property = self.member()
            properties += named_property
            if named_property:
                ranges += members
                continue
            if self.is_range() and len(members) == 1 and members[0][0] == members[0][1]:
                self.at += 1
                (_, high), *_ = self.member()[0]
                members = [(members[0][0], high)]
            # Of a single character or a range; named classes have their cases already.
            ranges += self.in_any_case(members) if len(members) == 1 else members
        self.at += 1
        return f"[{'^' if negated else ''}{class_body(ranges)}{properties}]"

    def member(self) -> tuple[Ranges, str]:
        if self.pattern[self.at] == "\\":
            return self.escaped()
        code = ord(self.pattern[self.at])
        self.at += 1
        return [(code, code)], ""

    def is_range(self) -> bool:
        return self.pattern[self.at] == "-" and self.pattern[self.at + 1] != "]"
