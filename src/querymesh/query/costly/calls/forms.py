"""A user's function as a call over arrays, whatever it takes and however it answers."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from querymesh.query.costly.calls.work import Call
from querymesh.query.predicate.wrong_use import Given


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether what a function gives must be awaited.

    >>> async def ask(text): ...
    >>> is_async(ask), is_async(functools.partial(ask, "a")), is_async(len)
    (True, True, False)
    """
    while isinstance(fn, functools.partial):
        fn = fn.func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(
        getattr(type(fn), "__call__", None)  # noqa: B004
    )


def call_of(fn: Callable[..., Any], vectorised: Given) -> Call:
    """The call of a function that gets arrays, Series, or the values of one row after the other."""
    if vectorised is not False:
        return functools.partial(_whole, fn, vectorised)
    return functools.partial(_each_awaited if is_async(fn) else _each, fn)


def _whole(fn: Callable[..., Any], vectorised: Given, args: Sequence[pa.Array], n: int) -> Any:
    if vectorised == "pandas":
        return fn(*(arg.to_pandas() for arg in args))
    return fn(*args)


def _each(fn: Callable[..., Any], args: Sequence[pa.Array], n: int) -> list[Any]:
    return [fn(*row) for row in _rows(args, n)]


async def _each_awaited(fn: Callable[..., Any], args: Sequence[pa.Array], n: int) -> list[Any]:
    return [await fn(*row) for row in _rows(args, n)]


def _rows(args: Sequence[pa.Array], n: int) -> list[tuple[Any, ...]]:
    if not args:
        return [()] * n
    return list(zip(*(arg.to_pylist() for arg in args), strict=True))
