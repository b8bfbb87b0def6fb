"""Plain Spark as the rival: `filter(udf & udf & ...)` in every way PySpark has to write it.

Spark puts all Python functions of a filter into one evaluation node, so each of these runs every
function on every row. `by hand` is what an expert writes instead: one function that stops at the
first no, in the best single order. It is no longer a filter of several predicates (nothing of it
can be reordered, reused or pushed down), but it is what has to be beaten in earnest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType

from querymesh.stats.profile import Route
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.row_predicate import RowFunction, RowPredicate
from querymesh_lab.bench.filters.contest import FilterContest, cached
from querymesh_lab.bench.fingerprint import Fingerprint, of_ids
from querymesh_lab.bench.measure import interleave

TRIED_SHARE = 10

_by_hints: Any = F
"""PySpark's types do not know functions that say by type hints what they take and give."""


def _pickled(fn: RowFunction) -> Any:
    return F.udf(fn, BooleanType(), useArrow=False)


def _arrow_optimised(fn: RowFunction) -> Any:
    return F.udf(fn, BooleanType(), useArrow=True)


def _pandas(fn: RowFunction) -> Any:
    pd: Any = import_module("pandas")

    def over_series(*values: pd.Series) -> pd.Series:
        return pd.Series([fn(*row) for row in zip(*values, strict=True)], dtype=bool)

    over_series.__annotations__ = {"values": pd.Series, "return": pd.Series}
    return _by_hints.pandas_udf(over_series, BooleanType())


def _arrow(fn: RowFunction) -> Any:
    def over_array(*values: pa.Array) -> pa.Array:
        rows = zip(*(value.to_pylist() for value in values), strict=True)
        return pa.array([fn(*row) for row in rows], pa.bool_())

    over_array.__annotations__ = {"values": pa.Array, "return": pa.Array}
    return _by_hints.arrow_udf(over_array, BooleanType())


WAYS: dict[str, Callable[[RowFunction], Any]] = {
    "udf, pickled": _pickled,
    "udf, Arrow": _arrow_optimised,
    "pandas_udf": _pandas,
    "arrow_udf": _arrow,
}


def ways() -> list[str]:
    """The ways this PySpark has: `arrow_udf` came with 4.1, and pandas need not be installed."""
    found = ["udf, pickled", "udf, Arrow"]
    if find_spec("pandas") is not None:
        found.append("pandas_udf")
    return [*found, "arrow_udf"] if hasattr(F, "arrow_udf") else found


def filtered(df: DataFrame, predicates: Sequence[RowPredicate], way: str) -> DataFrame:
    """`df.filter(p1 & p2 & ...)`, each predicate a function of its own."""
    make = WAYS[way]
    conditions: list[Column] = [make(p.fn)(*map(F.col, p.columns)) for p in predicates]
    return df.filter(reduce(lambda a, b: a & b, conditions))


def fastest_way(
    bench: Bench, contest: FilterContest, predicates: Sequence[RowPredicate]
) -> tuple[str, dict[str, float]]:
    """Which way of writing the filter is plain Spark's best, tried on a part of the rows.

    Also the median seconds of each way.
    """
    table = contest.question.table
    part = cached(bench.session, table.slice(0, table.num_rows // TRIED_SHARE))

    def attempt(way: str) -> Callable[[], Fingerprint]:
        return lambda: of_ids(filtered(part, predicates, way))

    names = ways()
    timing = interleave({way: attempt(way) for way in names}, bench.rounds(3, 1))
    part.unpersist()
    medians = timing.median_seconds()
    return timing.fastest(names), {name: round(medians[name], 4) for name in names}


def by_hand(df: DataFrame, predicates: Sequence[RowPredicate], route: Route) -> DataFrame:
    """One Arrow function that tries the predicates in one order and stops at the first no."""
    ordered = [predicates[index - 1] for index in route]
    steps = []
    taken = 0
    for predicate in ordered:
        steps.append((predicate.fn, slice(taken, taken + len(predicate.columns))))
        taken += len(predicate.columns)

    def all_of(*values: Any) -> bool:
        return all(fn(*values[own]) for fn, own in steps)

    together = F.udf(all_of, BooleanType(), useArrow=True)
    return df.filter(together(*(F.col(c) for predicate in ordered for c in predicate.columns)))


def in_order(df: DataFrame, conditions: Sequence[str], route: Route) -> DataFrame:
    """SQL conditions written in one order, as one AND."""
    return df.filter(" AND ".join(f"({conditions[index - 1]})" for index in route))
