"""What a strategy is called, be it a name, a function or a partial one."""

from __future__ import annotations

from functools import partial


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
