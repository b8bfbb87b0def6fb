"""What Spark does on top of a query: groups, aggregates and HAVING, as immutable data.

QueryMesh routes the select-project-join part, and Spark aggregates what comes out of it. Between
the two stand columns of names that only they know::

    SELECT s.sector, sum(s.price * 2) / count(*) AS mean FROM ... GROUP BY s.sector HAVING mean > 9

    the query      c1 = s.sector           c2 = s.price * 2     its outputs, made in the fabric
    keys           g1 = c1                                      groupBy
    aggregates     a1 = sum(c2)            a2 = count(1)        agg
    having         a1 / a2 > 9                                  filter
    outputs        sector = g1             mean = a1 / a2       select

An aggregate's arguments are outputs of the query, so user functions may stand in them. Aggregates
themselves are Spark's; what is computed of them has the one meaning that `types` tells of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from querymesh.errors import QueryError
from querymesh.query.expr import Column, Expr

if TYPE_CHECKING:
    from querymesh.query.model import Output, Query

AGGREGATES = frozenset(
    {
        *("any_value", "approx_count_distinct", "approx_percentile", "approx_top_k"),
        *("approx_top_k_accumulate", "approx_top_k_combine", "array_agg", "avg", "bit_and"),
        *("bit_or", "bit_xor", "bitmap_and_agg", "bitmap_construct_agg", "bitmap_or_agg"),
        *("bool_and", "bool_or", "collect_list", "collect_set", "collect_union", "corr", "count"),
        *("count_if", "count_min_sketch", "covar_pop", "covar_samp", "every", "first"),
        *("first_value", "histogram_numeric", "hll_sketch_agg", "hll_union_agg"),
        *("kll_merge_agg_bigint", "kll_merge_agg_double", "kll_merge_agg_float"),
        *("kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float", "kurtosis"),
        *("last", "last_value", "listagg", "max", "max_by", "mean", "median", "min", "min_by"),
        *("mode", "percentile", "percentile_approx", "regr_avgx", "regr_avgy", "regr_count"),
        *("regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"),
        *("skewness", "std", "stddev", "stddev_pop", "stddev_samp", "string_agg", "sum"),
        *("theta_intersection_agg", "theta_sketch_agg", "theta_union_agg", "try_avg", "try_sum"),
        *("tuple_intersection_agg_double", "tuple_intersection_agg_integer"),
        *("tuple_sketch_agg_double", "tuple_sketch_agg_integer", "tuple_union_agg_double"),
        *("tuple_union_agg_integer", "var_pop", "var_samp", "variance"),
    }
)
"""Spark's aggregate functions that are called as `name(arguments)`.

Not among them: `any` and `some`, which are words of LIKE (bool_or is the same); percentile_cont and
percentile_disc, which need WITHIN GROUP (percentile is the same).
"""

TIME_WINDOWS = frozenset({"window", "session_window"})
"""Spark's functions of a timestamp that GROUP BY knows, each a struct of `start` and `end`."""


@dataclass(frozen=True, slots=True)
class GroupColumn(Column):
    """A column that is there once groups are made: a key or an aggregate, by its name.

    `relation` is the key's name where this is a field of a time window. `text` is for people.
    """

    text: str = ""


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column that Spark makes of the query's outputs: its name, the Spark SQL, and as written."""

    name: str
    sql: str
    text: str


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Groups by `keys`, all rows being one group where there are none, and what comes of each.

    `having` and `outputs` read `Grouped` columns. `aliases` are the names in GROUP BY that were
    taken for an output's. `time` is the column of the query that a time window goes by.
    """

    keys: tuple[ComputedColumn, ...]
    aggregates: tuple[ComputedColumn, ...]
    having: Expr | None
    outputs: tuple[Output, ...]
    having_text: str = ""
    aliases: tuple[str, ...] = ()
    time: str | None = None


def split_aggregate(query: Query) -> tuple[Query, Aggregation | None]:
    """The query that the fabric runs, and what Spark is to do on top of it."""
    return replace(query, aggregate=None), query.aggregate


def aggregate_text(aggregation: Aggregation) -> str:
    """What Spark does on top, in a line for `explain`."""
    made = ", ".join(each.text for each in aggregation.aggregates)
    if aggregation.keys:
        text = f"Spark groups by {', '.join(key.text for key in aggregation.keys)}"
        text += f" and computes {made}" if made else ""
    else:
        text = f"Spark computes {made} over all rows" if made else "Spark makes one row of all rows"
    if aggregation.having is None:
        return text
    kept = "the groups" if aggregation.keys else "the row"
    return f"{text}, and keeps {kept} with {aggregation.having_text}"


def check_aliases(aggregation: Aggregation, schemas: Mapping[str, pa.Schema]) -> None:
    """QueryError where a name in GROUP BY is an output's and a column's too; schemas by alias.

    SQL dialects disagree on which of the two is meant, so neither is guessed.
    """
    for name in aggregation.aliases:
        for alias, schema in schemas.items():
            if name.lower() in (column.lower() for column in schema.names):
                raise QueryError(
                    f"GROUP BY {name}: {name} is a column of {alias} and the name of another "
                    f"output; write {alias}.{name}, or the output's expression"
                )
