"""User functions: how a Python function becomes an operator or a part of a SQL expression.

A function gets Arrow arrays, pandas Series or single values, and gives one value per row back. What
it gives is checked each time, because a wrong length or type would otherwise surface far away, as a
wrong result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypedDict, Unpack, overload

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools
from querymesh.errors import OptionError, PredicateError, QueryError, SetupError
from querymesh.explained import Shown
from querymesh.query.predicate.failing_rows import Raised, failure, results_by_halves
from querymesh.query.predicate.result_array import as_array
from querymesh.query.predicate.user_frames import user_traceback
from querymesh.query.predicate.wrong_use import Given, remedy

_BOOLEAN = pa.bool_()
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, repr=False)
class Predicate(Shown):
    """A Python function with what the optimizer must know about it.

    `columns` are its arguments when it stands alone or is called without any; `cost_us` stands for
    the measured time of a row (or for money, or tokens); `after` names operators that must come
    earlier on every route; `vectorised` says what the function is given.
    """

    fn: Callable[..., Any]
    name: str
    columns: tuple[str, ...] = ()
    cost_us: float | None = None
    after: tuple[str, ...] = ()
    returns: pa.DataType = _BOOLEAN
    vectorised: Given = True

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise QueryError(f"a predicate needs a function, not {type(self.fn).__name__}")
        if not _NAME.fullmatch(self.name):
            raise QueryError(
                f"{self.name!r} cannot name a predicate in SQL: "
                'give an identifier, as in qm.predicate(fn, name="is_attack")'
            )
        if self.cost_us is not None and not self.cost_us > 0:
            raise QueryError(
                f"predicate {self.name}: cost_us must be positive, not {self.cost_us!r}"
            )
        if not (isinstance(self.vectorised, bool) or self.vectorised == "pandas"):
            raise OptionError(
                f"predicate {self.name}: vectorised is True (the function takes Arrow arrays), "
                f'"pandas" (Series) or False (the values of one row), not {self.vectorised!r}'
            )
        if self.vectorised == "pandas" and find_spec("pandas") is None:
            raise SetupError(
                f'predicate {self.name}: vectorised="pandas" needs pandas: pip install pandas'
            )

    def __repr__(self) -> str:
        returns = "" if self.returns == _BOOLEAN else f" gives {self.returns}"
        forms = {True: "", False: ", row by row", "pandas": ", over pandas Series"}
        rows = forms[self.vectorised]
        after = f", after {', '.join(self.after)}" if self.after else ""
        return f"<Predicate {self.name}({', '.join(self.columns)}){returns}{rows}{after}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, so that a decorated function can still be tested alone."""
        return self.fn(*args, **kwargs)

    def apply(self, args: Sequence[pa.Array], n: int, *, alone: bool = False) -> pa.Array:
        """The function's value for each of n rows; PredicateError if it raises or misbehaves.

        `alone` says that the query has no other operator, for the advice in an error.
        """
        if n == 0:
            return pa.array([], self.returns)
        try:
            result = self._run(args, n)
        except Exception as error:
            raised = error
        else:
            return self._checked(result, n)
        text, cause = self._why_it_raised(raised, args, n, alone)
        # Its frames stand in the text, which goes where they cannot: from a task to the driver.
        raise PredicateError(text) from cause.with_traceback(None)

    def apply_dropping(self, args: Sequence[pa.Array], n: int) -> tuple[pa.Array, Bools]:
        """Like `apply`, but rows on which the function raises are NULL; also which these are."""
        pieces: list[pa.Array] = []
        failed = np.zeros(n, dtype=bool)
        done = 0
        for rows, result in results_by_halves(self._run, args, n):
            if isinstance(result, Raised):
                failed[done : done + rows] = True
                pieces.append(pa.nulls(rows, self.returns))
            else:
                pieces.append(self._checked(result, rows))
            done += rows
        return (pa.concat_arrays(pieces) if pieces else pa.array([], self.returns)), failed

    def _why_it_raised(
        self, error: Exception, args: Sequence[pa.Array], n: int, alone: bool
    ) -> tuple[str, Exception]:
        if (instead := remedy(self.fn, self.vectorised, error)) is not None:
            told = f"predicate {self.name} raised {type(error).__name__}: {instead}.\n"
            return told + user_traceback(error), error
        found = failure(self.name, self._labels(args), self._run, args, n, error, alone=alone)
        return found.text, found.cause

    def _run(self, args: Sequence[pa.Array], n: int) -> Any:
        if self.vectorised == "pandas":
            return self.fn(*(arg.to_pandas() for arg in args))
        if self.vectorised:
            return self.fn(*args)
        if not args:
            return [self.fn() for _ in range(n)]
        return [self.fn(*row) for row in zip(*(arg.to_pylist() for arg in args), strict=True)]

    def _checked(self, result: Any, n: int) -> pa.Array:
        is_single = isinstance(result, (bool, np.bool_)) and self.vectorised is not False
        hint = "; a function of the values of one row needs vectorised=False" if is_single else ""
        return as_array(self.name, result, n, self.returns, hint)

    def _labels(self, args: Sequence[pa.Array]) -> tuple[str, ...]:
        if len(self.columns) == len(args):
            return self.columns
        return tuple(f"argument {i}" for i in range(1, len(args) + 1))


Decorator = Callable[[Callable[..., Any]], Predicate]


class _Options(TypedDict, total=False):
    """What `predicate` takes by keyword, for type checkers."""

    columns: Iterable[str]
    name: str | None
    cost_us: float | None
    after: Iterable[str]
    vectorised: Given


class _FunctionOptions(_Options, total=False):
    """The same of `function`."""

    returns: pa.DataType


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
) -> Predicate | Decorator:
    """Make a condition of a Python function; as a decorator or as a plain call.

    - `vectorised=True`: the function gets an Arrow array for each column, and returns a boolean for
      each row: an Arrow or numpy array, a Series or a list
    - `vectorised="pandas"`: it gets a pandas Series for each column, with NULL as pandas has it:
      NaN among numbers (integers become floats), NaT among times, None or NaN among texts. So
      `s > 3` is False for a NULL, where SQL has NULL; either drops the row
    - `vectorised=False`: it is called row by row with Python values, None for NULL

    A NULL drops the row.

    >>> import pyarrow.compute as pc
    >>> @predicate(columns=["port"])
    ... def low(port):
    ...     return pc.less(port, 1024)
    >>> low.name, low.columns
    ('low', ('port',))
    """
    return _made(fn, _BOOLEAN, columns, name, cost_us, after, vectorised)


@overload
def function(fn: Callable[..., Any], **options: Unpack[_FunctionOptions]) -> Predicate: ...


@overload
def function(fn: None = None, **options: Unpack[_FunctionOptions]) -> Decorator: ...


def function(
    fn: Callable[..., Any] | None = None,
    *,
    returns: pa.DataType | None = None,
    columns: Iterable[str] = (),
    name: str | None = None,
    cost_us: float | None = None,
    after: Iterable[str] = (),
    vectorised: Given = True,
) -> Predicate | Decorator:
    """Make a function that SQL expressions may call, as in `score(s.data) > 0.5`.

    `returns` is the Arrow type of its values, DOUBLE unless told otherwise.
    """
    returns = pa.float64() if returns is None else returns
    return _made(fn, returns, columns, name, cost_us, after, vectorised)


def _made(
    fn: Callable[..., Any] | None,
    returns: pa.DataType,
    columns: Iterable[str],
    name: str | None,
    cost_us: float | None,
    after: Iterable[str],
    vectorised: Given,
) -> Predicate | Decorator:
    def make(fn: Callable[..., Any]) -> Predicate:
        return Predicate(
            fn=fn,
            name=getattr(fn, "__name__", type(fn).__name__) if name is None else name,
            columns=_names("columns", columns),
            cost_us=cost_us,
            after=_names("after", after),
            returns=returns,
            vectorised=vectorised,
        )

    return make if fn is None else make(fn)


def _names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    given = (names,) if isinstance(names, str) else tuple(names)
    for name in given:
        if not isinstance(name, str) or not name:
            raise QueryError(f"{what}= takes names as text, not {name!r}")
    return given
