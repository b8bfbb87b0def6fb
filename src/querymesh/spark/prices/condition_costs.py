"""What conditions cost in Catalyst: timed, and where a time is not to be believed, by its price.

In a session that has just begun Java has compiled nothing yet, and a condition's first time may be
fifty times what it takes later, in a job of millions of rows. It is never shorter. So a time far
above a price that is fairly sure is taken to be of that kind, and the price is nearer the truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from querymesh.arrays import Bools, Floats
from querymesh.cost.catalyst_cost import Estimate, estimate_us
from querymesh.spark.context import analysed
from querymesh.spark.prices.catalyst_costs import BUDGET_S, timed_by_outcome_us, timed_us
from querymesh.spark.prices.machine_prices import cost_table

FAR_ABOVE = 3.0
"""Prices that are fairly sure are wrong by less than this; a longer time was the compiler's."""

FAIRLY_SURE = 0.6
TELLING_US = 0.1
"""What is cheaper than this is too near to what can be told apart for its time to judge prices."""

LEAST_PRICE_US = 0.02
"""Below this all is cheap, and times and prices say no more than that."""


def condition_costs_us(
    session: SparkSession,
    sample: pa.Table,
    conditions: Sequence[Column | str],
    budget_s: float = BUDGET_S,
) -> Floats | None:
    """Microseconds a row of each condition; see `timed_us` for what cannot be timed."""
    timed = timed_us(session, sample, conditions, budget_s)
    if timed is None:
        return None
    return believed_us(timed, condition_prices(session, sample, conditions))


def condition_costs_by_outcome_us(
    session: SparkSession,
    sample: pa.Table,
    conditions: Sequence[Column | str],
    passes: Bools,
    budget_s: float = BUDGET_S,
) -> tuple[Floats, Floats] | None:
    """The same on rows that a condition drops, and on rows that it lets through."""
    timed = timed_by_outcome_us(session, sample, conditions, passes, budget_s)
    if timed is None:
        return None
    prices = condition_prices(session, sample, conditions)
    return believed_us(timed[0], prices), believed_us(timed[1], prices)


def condition_prices(
    session: SparkSession, sample: pa.Table, conditions: Sequence[Column | str]
) -> list[Estimate]:
    """What the table of prices says of each condition, on texts as long as the sample's."""
    columns = [F.expr(each) if isinstance(each, str) else each for each in conditions]
    read = analysed(session.createDataFrame(sample.slice(0, 1)), columns)
    lengths, table = mean_bytes(sample), cost_table(session)
    return [estimate_us(each.tree, lengths, table) for each in read]


def believed_us(timed: Floats, prices: Sequence[Estimate]) -> Floats:
    """Times; in place of one that is far above a price that is fairly sure, that price."""
    us = np.array([max(price.us, LEAST_PRICE_US) for price in prices])
    sure = np.array([price.how_sure >= FAIRLY_SURE for price in prices])
    return np.where(sure & (timed > FAR_ABOVE * us), us, timed)


def ratio_to_prices(timed: Floats, prices: Sequence[Estimate]) -> float | None:
    """How many times their prices conditions took, in the median of those whose price is fairly
    sure and that are dear enough to be told from nothing; None where there are none."""
    ratios = [
        us / price.us
        for us, price in zip(timed, prices, strict=True)
        if np.isfinite(us) and price.how_sure >= FAIRLY_SURE and min(us, price.us) >= TELLING_US
    ]
    return float(np.median(ratios)) if ratios else None


def mean_bytes(sample: pa.Table) -> dict[str, float]:
    """The mean length of each column's values in bytes, and of fields of structs as `column.field`.

    >>> mean_bytes(pa.table({"s": ["ab", "abcd"], "st": [{"t": "abc"}, {"t": "a"}]}))
    {'s': 3.0, 'st.t': 2.0}
    """
    found: dict[str, float] = {}
    for name, column in zip(sample.column_names, sample.columns, strict=True):
        found |= _lengths(name, column.combine_chunks())
    return found


def _lengths(name: str, values: pa.Array) -> Mapping[str, float]:
    kind = values.type
    if pa.types.is_struct(kind):
        fields = [kind.field(number).name for number in range(kind.num_fields)]
        below = (_lengths(f"{name}.{field}", pc.struct_field(values, field)) for field in fields)
        return {path: length for each in below for path, length in each.items()}
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        mean = pc.mean(pc.binary_length(values)).as_py()
        return {} if mean is None else {name: float(mean)}
    if pa.types.is_list(kind) and len(values):
        return {name: 8.0 * (pc.mean(pc.list_value_length(values)).as_py() or 0.0)}
    return {}
