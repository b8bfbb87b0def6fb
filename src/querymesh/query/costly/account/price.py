"""What a call costs in money, how much a job may spend, and what happens at the end of it.

Money has no currency here: a unit is whatever prices and budget are written in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.errors import OptionError, PredicateError
from querymesh.options import check_name, check_number

PARTS = 10**12
"""Money is added up in whole trillionths of a unit: a token may cost a ten-millionth of one, and
floats would lose some of a thousand such sums."""

SECONDS_A_UNIT = 72_000.0
"""An hour of one core costs about 0.05 in a cloud, so that a unit of money buys twenty of them."""

LEARNING_PART = 0.1
"""The part of a budget that learning may spend, unless told."""

CHARACTERS_A_TOKEN = 4
"""Of English text, as most tokenizers have it."""

ENDS = ("stop", "keep", "drop")


@dataclass(frozen=True)
class Price:
    """What it costs to ask a function: for each call, each row of it, and each token.

    `tokens` is called with the values of a row and gives how many tokens they are, those of the
    answer included where they are paid for; without it, four characters of the row's texts are one.

    >>> Price(per_call=0.001, per_row=0.01).of([], 20)
    201000000000
    """

    per_call: float = 0.0
    per_row: float = 0.0
    per_token: float = 0.0
    tokens: Callable[..., int] | None = None

    def __post_init__(self) -> None:
        for name in ("per_call", "per_row", "per_token"):
            _check_money(f"price: {name}", getattr(self, name))
        if not (self.per_call or self.per_row or self.per_token):
            raise OptionError(
                "a price says what is paid for: per_call, per_row or per_token, as in "
                "qm.Price(per_token=0.0000025)"
            )
        if self.tokens is not None and not callable(self.tokens):
            raise OptionError(f"price: tokens is a function of a row's values, not {self.tokens!r}")
        if self.tokens is not None and not self.per_token:
            raise OptionError(
                "price: tokens counts them, but per_token does not say what one costs"
            )

    def of(self, args: Sequence[pa.Array], n: int, calls: int = 1) -> int:
        """What it costs to ask about n rows in so many calls, in `PARTS`, rounded up."""
        total = _exact(self.per_call) * calls + _exact(self.per_row) * n
        if self.per_token:
            total += _exact(self.per_token) * self._tokens(args)
        return math.ceil(total * PARTS)

    def a_row(self, args: Sequence[pa.Array], n: int, batch: int = 1) -> float:
        """What one of n rows costs on average where a call takes `batch` of them."""
        return self.of(args, n, calls=-(-n // batch)) / PARTS / n if n else 0.0

    def _tokens(self, args: Sequence[pa.Array]) -> int:
        if self.tokens is None:
            return _usual_tokens(args)
        rows = zip(*(arg.to_pylist() for arg in args), strict=True)
        return sum(self._counted(row) for row in rows)

    def _counted(self, row: tuple[Any, ...]) -> int:
        assert self.tokens is not None
        try:
            count = self.tokens(*row)
        except Exception as error:
            raise PredicateError(
                f"price: tokens= raised {type(error).__name__} for a row: {error}"
            ) from error
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise PredicateError(
                f"price: tokens= gave {count!r} for a row, not how many tokens it has"
            )
        return int(count)


@dataclass(frozen=True)
class Budget:
    """How much money a job may spend, and what happens to the rows it cannot pay for.

    - `amount`: in the unit of the prices; a call that it cannot pay for in full is not made
    - `then`: `"stop"` ends the job with a `querymesh.BudgetError`, `"keep"` lets rows through on
      which a function was not asked, `"drop"` leaves them out
    - `seconds_a_unit`: what a unit of money is worth in seconds, by which the optimizer adds the
      money of a call to its time. A unit is taken for a dollar or a euro, which buy 72,000 seconds
      of a core; more makes it spare money, less time
    - `sample_budget`: how much of it learning may spend; a tenth unless told
    """

    amount: float
    then: str = "stop"
    seconds_a_unit: float = SECONDS_A_UNIT
    sample_budget: float | None = None

    def __post_init__(self) -> None:
        _check_money("budget", self.amount)
        check_name("end of a budget (then=)", self.then, ENDS)
        _check_money("budget: seconds_a_unit", self.seconds_a_unit)
        if self.sample_budget is not None:
            _check_money("budget: sample_budget", self.sample_budget)
            if self.sample_budget > self.amount:
                raise OptionError(
                    f"budget: sample_budget is at most {self.amount:g}, not {self.sample_budget:g}"
                )

    @property
    def parts(self) -> int:
        """The amount in `PARTS`."""
        return math.floor(_exact(self.amount) * PARTS)

    @property
    def for_learning(self) -> float:
        """What learning may spend."""
        if self.sample_budget is None:
            return LEARNING_PART * self.amount
        return self.sample_budget


def price_of(name: str, given: Price | float | None) -> Price | None:
    """What was given as `price=` of a function; a bare number is the price of a row."""
    if given is None or isinstance(given, Price):
        return given
    if isinstance(given, bool) or not isinstance(given, int | float | np.number):
        raise OptionError(
            f"predicate {name}: price is a number, for each row, or a querymesh.Price, "
            f"not {type(given).__name__}"
        )
    return Price(per_row=float(given))


def budget_of(given: Budget | float | None) -> Budget | None:
    """What was given as `budget=` of a job; a bare number stops the job where it is spent."""
    if given is None or isinstance(given, Budget):
        return given
    if isinstance(given, bool) or not isinstance(given, int | float | np.number):
        raise OptionError(
            f"budget is a number or a querymesh.Budget, not {type(given).__name__}: "
            "write budget=5.0"
        )
    return Budget(float(given))


def as_money(parts: int) -> str:
    """Parts of a unit as people write money.

    >>> as_money(1_500_000_000_000), as_money(2_500_000), as_money(0)
    ('1.50', '0.0000025', '0.00')
    """
    whole, rest = divmod(parts, PARTS)
    digits = f"{rest:012d}".rstrip("0")
    return f"{whole:,}.{digits:<02}"


def _check_money(what: str, value: object) -> None:
    check_number(what, value)
    if not 0 <= float(value) < math.inf:  # type: ignore[arg-type]
        raise OptionError(f"{what} is a number of at least 0, not {value}")


def _exact(money: float) -> Fraction:
    """A number as it was written: 0.1 is a tenth."""
    return Fraction(str(float(money)))


def _usual_tokens(args: Sequence[pa.Array]) -> int:
    texts = [text for arg in args if (text := _as_text(arg)) is not None]
    if not texts:
        raise PredicateError(
            "price: per_token counts characters of text arguments, and there are none: say how "
            "many tokens a row has by tokens=, as in qm.Price(per_token=0.0000025, tokens=count)"
        )
    characters = np.zeros(len(texts[0]), dtype=np.int64)
    for text in texts:
        characters += np.asarray(pc.fill_null(pc.utf8_length(text), 0))
    return int(np.sum(-(-characters // CHARACTERS_A_TOKEN)))


def _as_text(arg: pa.Array) -> pa.Array | None:
    kind = arg.type
    if pa.types.is_dictionary(kind):
        arg, kind = arg.dictionary_decode(), kind.value_type
    return arg if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None
