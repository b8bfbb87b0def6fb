"""What Spark does around a query: below it, on its inputs, and above it, on what comes out.

::

    inputs ─> conditions on one of them; columns computed for the query ─> the query, routed ─┐
    out   <─ columns that only Spark computes <─ conditions on several inputs at once  <──────┘
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

from querymesh.query.expr import Expr
from querymesh.query.render import quoted_name
from querymesh.spark.conditions.ask_spark import Understood
from querymesh.spark.context import placed_on
from querymesh.spark.filters.native import native_sql


@dataclass(frozen=True)
class Guarded:
    """What Spark evaluates on one input; if it may raise, only where its guards hold.

    Guards are conditions on the same input that were written before it.
    """

    what: Understood
    guards: tuple[Understood | Expr, ...] = ()

    def column(self, frame: DataFrame) -> SparkColumn:
        """It as a Column of that input."""
        made = self.what.of_relation(frame)
        if not self.what.may_raise:
            return made
        for guard in reversed(self.guards):
            if isinstance(guard, Understood):
                made = F.when(guard.of_relation(frame), made)
            else:
                made = F.when(F.expr(native_sql(guard)), made)
        return made


@dataclass(frozen=True)
class Below:
    """What Spark does with one input beforehand: rows it keeps, columns it adds by name.

    `blanks` are columns that the same relation has under another alias: here they are NULL.
    """

    conditions: tuple[Guarded, ...] = ()
    columns: Mapping[str, Guarded] = field(default_factory=dict)
    blanks: Mapping[str, DataType] = field(default_factory=dict)

    def of(self, frame: DataFrame) -> DataFrame:
        """The input as the query gets it."""
        made = {name: each.column(frame) for name, each in self.columns.items()}
        made |= {name: F.lit(None).cast(kind) for name, kind in self.blanks.items()}
        for condition in self.conditions:
            frame = frame.filter(condition.column(frame))
        return frame.withColumns(made) if made else frame


@dataclass(frozen=True)
class Above:
    """What Spark makes of the rows that come out of the query.

    `outputs` are the columns that were asked for: those that only Spark computes, and None for
    those that come out as they are. `carried` are the columns of the result under which come what
    the expressions read, by its number in them.
    """

    conditions: tuple[Understood, ...]
    outputs: Mapping[str, Understood | None]
    carried: Mapping[int, str]

    def of(self, out: DataFrame) -> DataFrame:
        """The rows and columns that were asked for."""
        if self.conditions:
            out = out.filter(self._condition(out, self.conditions))
        return out.select(
            *(
                F.col(quoted_name(name))
                if what is None
                else placed_on(out, what.found, self.carried).alias(name)
                for name, what in self.outputs.items()
            )
        )

    def _condition(self, out: DataFrame, conditions: Sequence[Understood]) -> SparkColumn:
        """All of them, in the order as written: a later one may raise where an earlier fails."""
        first, *others = conditions
        made = placed_on(out, first.found, self.carried)
        return F.when(made, self._condition(out, others)) if others else made


@dataclass(frozen=True)
class Around:
    """What Spark does around one query; `names` are the conditions that are left to it."""

    session: SparkSession
    below: Mapping[str, Below]
    above: Above | None
    names: tuple[str, ...]

    def input(self, alias: str, given: DataFrame | pa.Table) -> DataFrame | pa.Table:
        """An input, or a sample of it, as the query gets it."""
        if alias not in self.below:
            return given
        frame = given if isinstance(given, DataFrame) else self.session.createDataFrame(given)
        return self.below[alias].of(frame)

    def finished(self, out: DataFrame) -> DataFrame:
        """What comes out of the query, with all that was asked for."""
        return out if self.above is None else self.above.of(out)
