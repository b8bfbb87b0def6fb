"""Strategies that an option chooses: a name from a table, or a caller's own function."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeVar, cast

from querymesh.errors import OptionError
from querymesh.options import check_name

Strategy = TypeVar("Strategy")


def name_of(choice: object) -> str:
    """A strategy for people: its name, or that of the function given, however it was wrapped.

    >>> name_of("auto"), name_of(partial(partial(sorted, key=len), reverse=True))
    ('auto', 'sorted')
    """
    while isinstance(choice, partial):
        choice = choice.func
    if isinstance(choice, str):
        return choice
    return str(getattr(choice, "__name__", type(choice).__name__))


def chosen(what: str, choice: str | Strategy, strategies: Mapping[str, Strategy]) -> Strategy:
    """The strategy of that name, or the function that was given in its place."""
    if isinstance(choice, str):
        check_name(what, choice, strategies)
        return strategies[choice]
    if not callable(choice):
        raise OptionError(
            f"a {what} is a name or a function, not {choice!r}. "
            f"Known: {', '.join(sorted(strategies))}"
        )
    return cast(Strategy, choice)
