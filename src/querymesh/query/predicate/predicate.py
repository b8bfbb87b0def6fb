"""A user's function as the optimizer and the operators see it.

A function gets Arrow arrays, pandas Series or single values, and gives one value per row back. What
it gives is checked each time, because a wrong length or type would otherwise surface far away, as a
wrong result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools
from querymesh.errors import OptionError, PredicateError, QueryError, SetupError
from querymesh.explained import Shown
from querymesh.query.costly.account.permits import Permits
from querymesh.query.costly.account.price import Price
from querymesh.query.costly.accumulators import accumulates
from querymesh.query.costly.answers import Answers, FailedCall
from querymesh.query.costly.calling import USUAL, Calling
from querymesh.query.costly.calls.forms import call_of, is_async
from querymesh.query.costly.calls.work import Unanswered
from querymesh.query.costly.in_run import asking_of
from querymesh.query.costly.memo import Memo, memo_of
from querymesh.query.costly.pieces import Heard, Piece, call_in_pieces
from querymesh.query.costly.proxy.options import Proxy, proxy_of
from querymesh.query.predicate.failing_rows import Raised, failure, results_by_halves
from querymesh.query.predicate.result_array import as_array
from querymesh.query.predicate.user_frames import user_traceback
from querymesh.query.predicate.wrong_use import Given, remedy

_BOOLEAN = pa.bool_()
_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Applied:
    """What a function says of some rows, NULL where it `failed` and may.

    `unasked` are rows that the budget could not pay for, None if there are none: whatever the
    expression around the call makes of their value, it `passes` them or it does not.
    """

    values: pa.Array
    failed: Bools
    unasked: Bools | None = None
    passes: bool = False


@dataclass(frozen=True, repr=False)
class Predicate(Shown):
    """A Python function with what the optimizer must know about it.

    `columns` are its arguments when it stands alone or is called without any; `cost_us` stands for
    the measured time of a row; `after` names operators that must come earlier on every route;
    `vectorised` says what the function is given. `calling` is how it is called, `memo` what is
    remembered of it (None is what pays), `deterministic` whether equal inputs have equal answers,
    `price` what calls cost, `proxy` what decides clear rows without one, approximately.
    `identity` tells it apart in a run (`in_run.py`).
    """

    fn: Callable[..., Any]
    name: str
    columns: tuple[str, ...] = ()
    cost_us: float | None = None
    after: tuple[str, ...] = ()
    returns: pa.DataType = _BOOLEAN
    vectorised: Given = True
    calling: Calling = USUAL
    memo: Memo | bool | None = None
    deterministic: bool = True
    price: Price | None = None
    proxy: Proxy | None = None
    identity: str = field(default="", compare=False)

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
        if not isinstance(self.deterministic, bool):
            raise OptionError(
                f"predicate {self.name}: deterministic is True or False, not {self.deterministic!r}"
            )
        memo_of(self.name, self.memo)
        proxy_of(self.name, self.proxy)
        if self.proxy is not None and self.returns != _BOOLEAN:
            raise OptionError(
                f"predicate {self.name}: a proxy decides booleans, not {self.returns}"
            )
        if self.memo and not self.deterministic:
            raise OptionError(
                f"predicate {self.name}: what is not deterministic cannot be remembered: leave out "
                "memo= or deterministic=False"
            )

    def __repr__(self) -> str:
        returns = "" if self.returns == _BOOLEAN else f" gives {self.returns}"
        forms = {True: "", False: ", row by row", "pandas": ", over pandas Series"}
        rows = forms[self.vectorised]
        after = f", after {', '.join(self.after)}" if self.after else ""
        costly = ", costly" if self.is_costly else ""
        return f"<Predicate {self.name}({', '.join(self.columns)}){returns}{rows}{after}{costly}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, so that a decorated function can still be tested alone."""
        return self.fn(*args, **kwargs)

    @property
    def is_costly(self) -> bool:
        """Whether its options say that a call of it costs more than any other work on a row."""
        options = (not self.calling.is_usual, self.memo, self.price, self.proxy)
        return any(options) or is_async(self.fn)

    @property
    def may_be_remembered(self) -> bool:
        """Whether equal inputs may be asked about once: not where the function counts its calls
        elsewhere, in an accumulator of Spark's."""
        return self.deterministic and self.memo is not False and not accumulates(self.fn)

    def apply(self, args: Sequence[pa.Array], n: int, *, alone: bool = False) -> pa.Array:
        """The function's value for each of n rows; PredicateError if it raises or misbehaves.

        `alone` says that the query has no other operator, for the advice in an error.
        """
        return self.of_rows(args, n, alone=alone).values

    def apply_dropping(self, args: Sequence[pa.Array], n: int) -> tuple[pa.Array, Bools]:
        """Like `apply`, but rows on which the function raises are NULL; also which these are."""
        found = self.of_rows(args, n, drops=True)
        return found.values, found.failed

    def of_rows(
        self, args: Sequence[pa.Array], n: int, *, drops: bool = False, alone: bool = False
    ) -> Applied:
        """The same, with the rows on which it raised, if it `drops` them, and those that the budget
        could not pay for."""
        if n == 0:
            return Applied(pa.array([], self.returns), np.zeros(0, dtype=bool))
        answers = self._answers(args, n, drops=drops)
        failed = np.zeros(n, dtype=bool)
        if drops:
            failed[list(answers.failed)] = True
        elif answers.failed:
            call = next(iter(answers.failed.values()))
            text, cause = self._why_it_raised(call, alone)
            # Its frames stand in the text, which goes where they cannot: from a task to the driver.
            raise PredicateError(text) from cause.with_traceback(None)
        if not answers.unasked:
            return Applied(answers.values, failed)
        end = next(iter(answers.unasked.values())).end
        then = asking_of(self).then if self.identity else "stop"
        if end is not None and then == "stop":
            raise end.error(self.name, asking_of(self).kept_where if self.identity else "")
        unasked = np.zeros(n, dtype=bool)
        unasked[list(answers.unasked)] = True
        passes = then == "keep"
        values = answers.values
        if passes and self.returns == _BOOLEAN:
            values = pc.if_else(pa.array(unasked), True, values)
        return Applied(values, failed, unasked, passes=passes)

    def _answers(self, args: Sequence[pa.Array], n: int, *, drops: bool) -> Answers:
        """What the function says, where `drops` of all rows on which it does not fail."""

        has_failed = False

        def ask(args: Sequence[pa.Array], n: int, heard: Heard | None) -> list[Piece]:
            nonlocal has_failed
            if has_failed:  # the query fails: no further call is worth its price
                return [Piece(0, n, Unanswered())]
            pieces = self._called(args, n, heard, drops=drops)
            has_failed = not drops and any(isinstance(each.result, Raised) for each in pieces)
            return pieces

        if self.identity and args:
            return asking_of(self).answers(ask, args, n)
        return Answers.of(ask(args, n, None), args, self.returns)

    def _called(
        self, args: Sequence[pa.Array], n: int, heard: Heard | None, *, drops: bool
    ) -> list[Piece]:
        """The function's answers, call by call; where it `drops`, only single rows fail."""
        if not self.is_costly:
            calls = n if self.vectorised is False else 1
            pieces = [Piece(0, n, self._result(args, n), calls)]
        else:
            pieces = self._in_pieces(self.calling, args, n, heard, stop_at_failure=not drops)
        return list(self._halved(pieces, args)) if drops else pieces

    def _result(self, args: Sequence[pa.Array], n: int) -> pa.Array | Raised:
        """What one call gives."""
        try:
            return self._call(args, n)
        except PredicateError:
            raise
        except Exception as error:
            return Raised(error)

    def _in_pieces(
        self,
        calling: Calling,
        args: Sequence[pa.Array],
        n: int,
        heard: Heard | None = None,
        *,
        stop_at_failure: bool,
    ) -> list[Piece]:
        return call_in_pieces(
            self._call, calling, args, n,
            by_row=self.vectorised is False,
            allowance=self._permits,
            stop_at_failure=stop_at_failure,
            heard=heard,
        )  # fmt: skip

    def _halved(self, pieces: Sequence[Piece], args: Sequence[pa.Array]) -> Iterator[Piece]:
        """The calls that failed, by halves until each row on which they do stands alone."""
        for piece in pieces:
            if not isinstance(piece.result, Raised) or piece.rows == 1:
                yield piece
                continue
            permits, start = self._permits, piece.start
            before = permits.spent
            about = [arg.slice(start, piece.rows) for arg in args]
            found = list(results_by_halves(self._once, about, piece.rows, known=piece.result))
            more = permits.spent
            calls = piece.calls + more.calls - before.calls
            money = piece.money + more.money - before.money
            for rows, result in found:
                yield Piece(start, rows, result, calls, money)
                start, calls, money = start + rows, 0, 0

    def _why_it_raised(self, call: FailedCall, alone: bool) -> tuple[str, Exception]:
        error = call.error
        if (instead := remedy(self.fn, self.vectorised, error)) is not None:
            told = f"predicate {self.name} raised {type(error).__name__}: {instead}.\n"
            return told + user_traceback(error), error
        labels = self._labels(call.args)
        found = failure(self.name, labels, self._once, call.args, call.rows, error, alone=alone)
        return found.text, found.cause

    def _once(self, args: Sequence[pa.Array], n: int) -> pa.Array:
        """What the function says in one call, raising what it raises."""
        calling = replace(self.calling, batch=n, retries=0)
        (piece,) = self._in_pieces(calling, args, n, stop_at_failure=True)
        if isinstance(piece.result, Raised):
            raise piece.result.error
        return piece.result

    @property
    def _permits(self) -> Permits:
        """Its leave to be called: in a run that of this process, which others share."""
        return asking_of(self).permits if self.identity else Permits(self.name, self.price)

    @property
    def _call(self) -> Callable[[Sequence[pa.Array], int], Any]:
        """One call of the function, its result checked; of an `async def`, to be awaited."""
        call = call_of(self.fn, self.vectorised)
        if not is_async(self.fn):
            return lambda args, n: self._checked(call(args, n), n)

        async def awaited(args: Sequence[pa.Array], n: int) -> pa.Array:
            return self._checked(await call(args, n), n)

        return awaited

    def _checked(self, result: Any, n: int) -> pa.Array:
        is_single = isinstance(result, (bool, np.bool_)) and self.vectorised is not False
        hint = "; a function of the values of one row needs vectorised=False" if is_single else ""
        return as_array(self.name, result, n, self.returns, hint)

    def _labels(self, args: Sequence[pa.Array]) -> tuple[str, ...]:
        if len(self.columns) == len(args):
            return self.columns
        return tuple(f"argument {i}" for i in range(1, len(args) + 1))
