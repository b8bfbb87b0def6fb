"""What the endpoint is asked: questions with one true answer each, so that results can be checked.

An input is a text, a number, or a list of them: the values of the columns of one row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

Rule = Callable[[Any], Any]

_BOT = re.compile(r"bot|crawl|spider|slurp|curl|wget|feed|http://", re.IGNORECASE)
_ATTACK = re.compile(
    r"select|union|drop|insert|script|alert|cookie|waitfor|passwd|%0|%3c|%27|\.\.", re.IGNORECASE
)
_GOOD = re.compile(
    r"\b(best|great|good|fun|love|perfect|brilliant|enjoy|excellent|hilarious|spectacular)",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"\b(bad|worst|dull|bore|boring|never|mess|fail|poor|lack|tedious|aimless|unfunny)",
    re.IGNORECASE,
)


def share(text: str) -> float:
    """A number from 0 to 1 that looks like chance, and is always the same for a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") / 2**64


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(value: Any) -> str:
    return " ".join(map(str, _listed(value)))


def _praises(value: Any) -> bool:
    text = _text(value)
    return len(_GOOD.findall(text)) > len(_BAD.findall(text))


RULES: dict[str, Rule] = {
    "bot": lambda value: _BOT.search(_text(value)) is not None,
    "attack": lambda value: _ATTACK.search(_text(value)) is not None,
    "praises": _praises,
    "long": lambda value: len(_text(value)) > 120,
    "length": lambda value: len(_text(value)),
}
"""Questions by name. Beside them, `share 30 salt` is true of 30 % of all inputs, whatever they are:
other salts, other inputs."""


def rule_of(question: str) -> Rule:
    """The rule that answers a question; KeyError says that there is none.

    >>> rule_of("bot")("Googlebot/2.1"), rule_of("share 30 a")("x"), rule_of("share 30 b")("x")
    (True, False, False)
    """
    word, *details = question.split()
    if word != "share" or not details:
        return RULES[question]
    salt = " ".join(details[1:])
    return lambda value: share(f"{salt}|{_text(value)}") < float(details[0]) / 100


def tokens(value: Any) -> int:
    """About as many tokens as a language model would find in an input: four letters each.

    >>> tokens("The Last Jedi offers aimless entertainment.")
    11
    """
    return len(_text(value)) // 4 + 1
