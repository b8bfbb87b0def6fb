"""A query with texts that only Spark understands, to one that we route and what Spark does of it.

Over one relation such a condition stays an operator, which Catalyst evaluates wherever that is best
(`Opaque`). Beside look-ups and in window joins it goes where it needs least:

============================  ==================================================================
reads one relation            a filter on that input, below everything
compares two relations        both sides become columns of their inputs, and the query joins by them
reads several otherwise       a filter on what comes out; what it reads travels along
an output                     a column of what comes out, or of its input where that costs nothing
an argument of a function     a column of its input
============================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from querymesh.query.costly.in_run import in_run
from querymesh.query.expr import Expr, SparkText, rewritten, spark_texts_of, user_calls_of
from querymesh.query.model import Query
from querymesh.spark.conditions.around import Around
from querymesh.spark.conditions.division import Data, Division, Outputs
from querymesh.spark.conditions.finishing import Finishing
from querymesh.spark.conditions.read import ConditionReader
from querymesh.spark.conditions.surround import Surrounded
from querymesh.spark.filters.native import CatalystColumns, native_sql


@dataclass(frozen=True)
class LeftQuery:
    """What remains of a query for us, its inputs by alias, and what Spark does of it.

    `columns` are how Catalyst evaluates the operators that only it can.
    """

    query: Query
    data: Mapping[str, Data]
    columns: CatalystColumns
    around: Around


def leave_to_spark(
    query: Query, data: Mapping[str, Data], session: SparkSession, *, shared: str | None = None
) -> LeftQuery | None:
    """The query as it runs with Spark's help; None where there is nothing to help with.

    `data` are the inputs by alias. A query that shares its pass with others, of which `shared` is a
    name, has no input to itself: its conditions are columns there, and not filters.
    """
    division = Division(query, data, session)
    conditions = division.conditions()
    outputs = division.outputs()
    every = [*conditions, *(expr for _, expr in outputs)]
    if not any(spark_texts_of(expr) for expr in every) and shared is None:
        return None
    for text in (text for expr in every for text in spark_texts_of(expr)):
        division.ask_first(text)
    alone = len(data) == 1 and shared is None
    if alone and not any(user_calls_of(expr) for _, expr in outputs) and not division.mixed(every):
        return _Routed(division).left(conditions, outputs)
    remaining, around = Surrounded(division, shared).left(conditions, outputs)
    inputs = {alias: around.input(alias, given) for alias, given in data.items()}
    return LeftQuery(remaining, inputs, CatalystColumns(), around)


class _Routed:
    """A query over one relation: what Catalyst evaluates is an operator like any other."""

    def __init__(self, division: Division) -> None:
        self.division = division
        ((self.alias, self.frame),) = division.frames.items()
        self.reader = ConditionReader(self.frame.alias(self.alias), dict(division.query.functions))

    def left(self, conditions: Sequence[Expr], outputs: Outputs) -> LeftQuery:
        for condition in conditions:
            if isinstance(condition, SparkText):
                found = self.division.understood(condition)
                self.reader.read_analysed(found.found, found.shown)
            else:
                self._known(condition)
        finishing = Finishing(outputs)
        for name, expr in outputs:
            if isinstance(expr, SparkText):
                finishing.compute(name, self.division.understood(expr))
            else:
                finishing.keep(name, expr)
        query = replace(
            self.division.query,
            conjuncts=tuple(self.reader.conjuncts),
            guarded=frozenset(self.reader.guarded),
            functions=in_run(self.reader.functions),
            outputs=finishing.made(),
            texts=(),
            asked=self.division.query,
        )
        columns = CatalystColumns(
            self.reader.columns,
            self.reader.remote,
            self.reader.guarded_columns,
            self.reader.trees,
        )
        around = Around(self.division.session, {}, finishing.above(), ())
        return LeftQuery(query, self.division.frames, columns, around)

    def _known(self, condition: Expr) -> None:
        """A condition of ours; arguments of functions may be Spark's."""

        def computed(expr: Expr) -> Expr | None:
            if not isinstance(expr, SparkText):
                return None
            return self.reader.argument(self.division.understood(expr).found)

        self.reader.conjuncts.append(rewritten(condition, computed))
        if not user_calls_of(condition):
            self.reader.guards.append(F.expr(native_sql(self.division.typed(condition)[0])))
