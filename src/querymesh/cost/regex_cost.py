"""What a regular expression costs Java's engine for each byte it reads, by the pattern's form.

Java tries the pattern at every position, so what counts is what it begins with (measured on texts
of 20 to 320 bytes in which nothing matches; `python -m querymesh.spark.prices.calibration` prints
measurements beside these prices):

    ^/index              one position                       nothing for each byte
    abc                  a search for a text                0.004 µs a byte
    index                from four letters on Java leaps    0.0064 / letters
    (?i)index            letter by letter                   0.007
    [?&]id=, [0-9]{6}    a class                            0.007
    \\d+x                 a class again and again            0.013
    a|b|c                each alternative at each position  0.006 for each of them
    (\\w+)@               a class that most text belongs to  0.08
    .*x                  all that follows, at each position 0.0036 for each byte, squared
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LITERAL, FOLDED, CLASS, REPEATED, WORDS, ALTERNATIVE = 0.0036, 0.0066, 0.007, 0.013, 0.08, 0.006
LEAP, LEAST_LEAP = 0.0064, 4
"""Java looks for four letters or more by Boyer and Moore's method, the faster the more."""

ANCHORED_WILD = 0.0073
WILD_SQUARED, INNER_WILD_SQUARED = 0.0036, 0.0002

SURE, FAIRLY_SURE, UNSURE = 0.8, 0.6, 0.3


@dataclass(frozen=True)
class PatternCost:
    """Microseconds for each byte of the text, and for each byte squared; from 0 to 1 how sure."""

    byte_us: float
    squared_us: float = 0.0
    how_sure: float = SURE

    def us(self, length: float) -> float:
        """What a text of so many bytes costs in which the pattern does not match."""
        return self.byte_us * length + self.squared_us * length * length


def pattern_cost(pattern: str) -> PatternCost:
    """What a pattern costs.

    >>> pattern_cost("^/index").us(100), pattern_cost("abc").us(100)
    (0.0, 0.36)
    """
    flags = re.match(r"\(\?[a-zA-Z]+\)", pattern)
    folded = flags is not None and "i" in flags.group()
    body = pattern[flags.end() :] if flags else pattern
    anchored = body.startswith(("^", "\\A"))
    body = body.removeprefix("^").removeprefix("\\A")
    choices = alternatives(_without_group(body))
    if len(choices) > 1:
        each = [_one(choice, folded) for choice in choices]
        squared = sum(cost.squared_us for cost in each)
        byte_us = sum(max(ALTERNATIVE, cost.byte_us) for cost in each)
        sure = min(FAIRLY_SURE, *(cost.how_sure for cost in each))
        return PatternCost(0.0 if anchored else byte_us, squared, sure)
    if anchored:
        wild = len(re.findall(r"\.[*+]", body))
        squared = INNER_WILD_SQUARED * max(0, wild - 2)
        return PatternCost(ANCHORED_WILD if wild else 0.0, squared, UNSURE if wild > 1 else SURE)
    return _one(body, folded)


def alternatives(pattern: str) -> list[str]:
    """The parts between the bars of a pattern that stand in no group or class.

    >>> alternatives("a|b(c|d)|[|]")
    ['a', 'b(c|d)', '[|]']
    """
    parts, depth, in_class, start, at = [], 0, False, 0, 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
        elif in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "|" and depth == 0:
            parts.append(pattern[start:at])
            start = at + 1
        at += 1
    return [*parts, pattern[start:]]


def _without_group(pattern: str) -> str:
    """What is in the group that a pattern begins with, if there are alternatives in it."""
    opened = re.match(r"\((\?:)?", pattern)
    if opened is None or pattern.startswith(("(?=", "(?!", "(?<")):
        return pattern
    depth = 0
    for at, sign in enumerate(pattern):
        if at and pattern[at - 1] == "\\":
            continue
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            inner = pattern[opened.end() : at]
            return inner if len(alternatives(inner)) > 1 else pattern
    return pattern


_CLASS = re.compile(r"\(*(?:\?:)?(\[(?:\\.|[^\]\\])+\]|\\[dDwWsS])([*+]|\{\d*,?\d*\})?")
_MANY = re.compile(r"\\[wWDS]|\[\^|[a-zA-Z]-[a-zA-Z]")
_WILD = re.compile(r"\(*(?:\?:)?\.[*+]")


_LETTERS = re.compile(r"(?:\\[^a-zA-Z0-9]|[^\\.\[\](){}*+?|^$])+(?![*+?{])")


def _search_us(body: str) -> float:
    """What a byte costs where Java looks for the text that a pattern begins with."""
    begins = _LETTERS.match(body)
    letters = 0 if begins is None else len(begins.group().replace("\\", ""))
    return LITERAL if letters < LEAST_LEAP else min(LITERAL, LEAP / letters)


def _one(body: str, folded: bool) -> PatternCost:
    """One alternative, tried at every position."""
    if _WILD.match(body):
        return PatternCost(LITERAL, WILD_SQUARED, FAIRLY_SURE)
    inner = len(re.findall(r"\.[*+]", body))
    squared, sure = INNER_WILD_SQUARED * inner, UNSURE if inner else SURE
    begins = _CLASS.match(body)
    if begins is None:
        return PatternCost(FOLDED if folded else _search_us(body), squared, sure)
    kind, again = begins.groups()
    if again is None:
        return PatternCost(CLASS, squared, min(sure, FAIRLY_SURE))
    many = _MANY.search(kind) is not None
    return PatternCost(WORDS if many else REPEATED, squared, min(sure, FAIRLY_SURE))
