"""`querymesh.predicate` and `querymesh.function`: what makes a condition of a Python function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypedDict, Unpack, overload

import pyarrow as pa

from querymesh.errors import QueryError
from querymesh.query.costly.account.price import Price, price_of
from querymesh.query.costly.calling import TRANSIENT, Calling
from querymesh.query.costly.memo import Memo
from querymesh.query.costly.proxy.options import Proxy
from querymesh.query.predicate.predicate import Predicate
from querymesh.query.predicate.wrong_use import Given

Decorator = Callable[[Callable[..., Any]], Predicate]


class _Options(TypedDict, total=False):
    """What `predicate` takes by keyword, for type checkers."""

    columns: Iterable[str]
    name: str | None
    cost_us: float | None
    after: Iterable[str]
    vectorised: Given
    memo: Memo | bool | None
    deterministic: bool
    batch: int | None
    concurrency: int
    rate_limit: float | None
    retries: int
    retry_on: type[Exception] | tuple[type[Exception], ...]
    timeout_s: float | None
    price: Price | float | None
    proxy: Proxy | None


@overload
def predicate(fn: Callable[..., Any], **options: Unpack[_Options]) -> Predicate: ...


@overload
def predicate(fn: None = None, **options: Unpack[_Options]) -> Decorator: ...


def predicate(
    fn: Callable[..., Any] | None = None,
    *,
    columns: Iterable[str] = (),
    name: str | None = None,
    cost_us: float | None = None,
    after: Iterable[str] = (),
    vectorised: Given = True,
    memo: Memo | bool | None = None,
    deterministic: bool = True,
    batch: int | None = None,
    concurrency: int = 1,
    rate_limit: float | None = None,
    retries: int = 0,
    retry_on: type[Exception] | tuple[type[Exception], ...] = TRANSIENT,
    timeout_s: float | None = None,
    price: Price | float | None = None,
    proxy: Proxy | None = None,
) -> Predicate | Decorator:
    """Make a condition of a Python function; as a decorator or as a plain call.

    - `vectorised=True`: the function gets an Arrow array for each column, and returns a boolean for
      each row: an Arrow or numpy array, a Series or a list
    - `vectorised="pandas"`: it gets a pandas Series for each column, with NULL as pandas has it:
      NaN among numbers (integers become floats), NaT among times, None or NaN among texts. So
      `s > 3` is False for a NULL, where SQL has NULL; either drops the row
    - `vectorised=False`: it is called row by row with Python values, None for NULL

    A NULL drops the row.

    - `columns`: the columns it reads where it stands alone, `name`: how SQL and `explain` call it,
      the function's own name unless told
    - `cost_us`: what a row costs in microseconds, instead of what is measured
    - `after`: conditions that must come earlier on every route

    For functions that cost much, a model or a remote call:

    - `memo`: equal inputs are asked about once where that pays; True always, False never, or a
      `querymesh.Memo` that says where answers are kept
    - `deterministic=False`: equal inputs may have other answers, so nothing is remembered
    - `batch`: how many rows a call takes, at most; all there are, or where calls are bounded or
      paid for a function of single values gets one
    - `concurrency`: how many calls run at once in a task, in threads, or as tasks of an event loop
      where the function is an `async def`
    - `retries`, `retry_on`: how often a call is tried again that raises one of these, after a pause
      that doubles; unless told, what networks raise, and what took too long
    - `rate_limit`: how many calls a second begin, in all tasks of the job together
    - `timeout_s`: a call that takes longer has failed
    - `price`: what a row costs, or a `querymesh.Price` of calls, rows and tokens
    - `proxy`: a `querymesh.Proxy`, a cheap model that decides the clear rows; results are
      approximate then

    >>> import pyarrow.compute as pc
    >>> @predicate(columns=["port"])
    ... def low(port):
    ...     return pc.less(port, 1024)
    >>> low.name, low.columns
    ('low', ('port',))
    """
    calling = Calling(
        batch=batch, concurrency=concurrency, rate_limit=rate_limit, retries=retries,
        retry_on=retry_on, timeout_s=timeout_s,
    )  # fmt: skip

    def make(fn: Callable[..., Any]) -> Predicate:
        named = getattr(fn, "__name__", type(fn).__name__) if name is None else name
        return Predicate(
            fn=fn,
            name=named,
            price=price_of(named, price),
            proxy=proxy,
            columns=_names("columns", columns),
            cost_us=cost_us,
            after=_names("after", after),
            vectorised=vectorised,
            calling=calling,
            memo=memo,
            deterministic=deterministic,
        )

    return make if fn is None else make(fn)


@overload
def function(
    fn: Callable[..., Any], *, returns: pa.DataType | None = None, **options: Unpack[_Options]
) -> Predicate: ...


@overload
def function(
    fn: None = None, *, returns: pa.DataType | None = None, **options: Unpack[_Options]
) -> Decorator: ...


def function(
    fn: Callable[..., Any] | None = None,
    *,
    returns: pa.DataType | None = None,
    **options: Unpack[_Options],
) -> Predicate | Decorator:
    """Make a function that SQL expressions may call, as in `score(s.data) > 0.5`.

    `returns` is the Arrow type of its values, DOUBLE unless told otherwise. The other options are
    those of `querymesh.predicate`.
    """

    def make(fn: Callable[..., Any]) -> Predicate:
        kind = pa.float64() if returns is None else returns
        return replace(predicate(fn, **options), returns=kind)

    return make if fn is None else make(fn)


def _names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) else tuple(names)
    for name in given:
        if not isinstance(name, str) or not name:
            raise QueryError(f"{what}= takes names as text, not {name!r}")
    return given
