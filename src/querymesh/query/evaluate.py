"""An expression on Arrow arrays: what runs inside the fabric."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache

import pyarrow as pa

from querymesh.query.decimal_types import literal_type
from querymesh.query.expr import (
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    Opaque,
    Scalar,
    SparkText,
    UserCall,
)
from querymesh.query.functions import FUNCTIONS
from querymesh.query.functions.cast import cast
from querymesh.query.functions.spec import Datum, in_compute_type, spread
from querymesh.query.predicate.predicate import Predicate
from querymesh.query.types import LITERAL_ZONE

UserCaller = Callable[[Predicate, list[pa.Array], int], pa.Array]


def evaluate(
    expr: Expr,
    column: Callable[[Column], pa.Array],
    n: int,
    functions: Mapping[str, Predicate],
    call: UserCaller | None = None,
) -> pa.Array:
    """The expression's value on each of n rows.

    `column` gives a column's array; `call` runs a user's function, which lets the caller decide
    what happens when it raises (`Predicate.apply` unless told otherwise). Constants stay scalars
    until the end.
    """
    return spread(_Evaluation(column, n, functions, call or Predicate.apply).of(expr), n)


class _Evaluation:
    """One expression being computed on a batch of n rows."""

    def __init__(
        self,
        column: Callable[[Column], pa.Array],
        n: int,
        functions: Mapping[str, Predicate],
        call: UserCaller,
    ) -> None:
        self.column = column
        self.n = n
        self.functions = functions
        self.call = call

    def of(self, expr: Expr) -> Datum:
        match expr:
            case Column():
                return spread(self.column(expr), self.n)
            case Opaque():
                return spread(self.column(expr.computed), self.n)
            case SparkText():
                raise expr.problem
            case Literal(value):
                return literal(value)
            case Cast(operand, target):
                (computed,) = self.arguments((operand,))
                return _on_arrays(lambda datum: cast(datum, target), (computed,))
            case Call(name, args):
                return _on_arrays(FUNCTIONS[name].arrow, self.arguments(args))
            case UserCall(name, args):
                arrays = [spread(self.of(arg), self.n) for arg in args]
                return self.call(self.functions[name], arrays, self.n)

    def arguments(self, args: Sequence[Expr]) -> list[Datum]:
        return [in_compute_type(self.of(arg)) for arg in args]


def _on_arrays(kernel: Callable[..., Datum], args: Sequence[Datum]) -> Datum:
    """Kernels are written for at least one array: constants alone become an array of one row."""
    if not all(isinstance(arg, pa.Scalar) for arg in args):
        return kernel(*args)
    first, *others = args
    return spread(kernel(spread(first, 1), *others), 1)[0]


def literal(value: Scalar) -> pa.Scalar:
    """The constant as an Arrow scalar of its compute type."""
    return _literal(value, repr(value))


@lru_cache(maxsize=1024, typed=True)
def _literal(value: Scalar, text: str) -> pa.Scalar:
    """Made once; the text tells what is equal but not the same apart, as 0.0 and -0.0."""
    if isinstance(value, dt.datetime):
        zone = None if value.utcoffset() is None else LITERAL_ZONE
        value = value.replace(tzinfo=None) if zone is None else value
        return pa.scalar(value, pa.timestamp("us", zone))
    if isinstance(value, int) and not isinstance(value, bool):
        return pa.scalar(value, pa.int64())
    if isinstance(value, Decimal):
        return pa.scalar(value, literal_type(value))
    return pa.scalar(value)
