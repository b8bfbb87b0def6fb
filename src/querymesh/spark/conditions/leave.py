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
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

from querymesh.errors import QueryMeshError, SchemaError, UnsupportedError
from querymesh.query.bind.bind import Binding, check_output_names, streams_of
from querymesh.query.bind.names import Scope
from querymesh.query.bind.static_joins import relations_of
from querymesh.query.expr import (
    Call,
    Column,
    Expr,
    Literal,
    SparkText,
    rewritten,
    spark_texts_of,
    user_calls_of,
)
from querymesh.query.model import Output, Query
from querymesh.query.render import spark_column, to_text
from querymesh.query.types import Kind, kind_of, sql_name
from querymesh.spark.conditions.around import Above, Around, Below, Guarded
from querymesh.spark.conditions.ask_spark import AskSpark, Understood, check_condition
from querymesh.spark.conditions.facts import CHEAP
from querymesh.spark.conditions.read import ConditionReader
from querymesh.spark.filters.native import CatalystColumns, native_sql
from querymesh.spark.schema import arrow_schema, arrow_type

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}

KEY = "__querymesh_"
"""What the names of columns begin with that only we and Spark know of."""


Data: TypeAlias = DataFrame | pa.Table


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
    leaving = _Leaving(query, data, session)
    conditions = leaving.conditions()
    outputs = leaving.outputs()
    every = [*conditions, *(expr for _, expr in outputs)]
    if not any(spark_texts_of(expr) for expr in every) and shared is None:
        return None
    for text in (text for expr in every for text in spark_texts_of(expr)):
        leaving.ask_first(text)
    alone = len(data) == 1 and shared is None
    if alone and not any(user_calls_of(expr) for _, expr in outputs) and not leaving.mixed(every):
        return _Routed(leaving).left(conditions, outputs)
    return _Surrounded(leaving, shared).left(conditions, outputs)


Outputs = Sequence[tuple[str, Expr]]


class _Leaving:
    """A query about to be shared with Spark: what of it we understand by ourselves."""

    def __init__(self, query: Query, data: Mapping[str, Data], session: SparkSession) -> None:
        self.query = query
        self.data = data
        self.session = session
        self.schemas = {alias: arrow_schema(given) for alias, given in data.items()}
        self.scope = Scope(query.relations, self.schemas, query.using)
        self.binding = Binding(query, query.relations[0], self.scope)

    @cached_property
    def spark(self) -> AskSpark:
        """Spark, who is asked only where there is a question."""
        return AskSpark(self.session, self.frames, lambda expr: self.typed(expr)[1])

    @cached_property
    def frames(self) -> dict[str, DataFrame]:
        """The inputs as DataFrames: of tables beside others only their schema is needed."""
        alone = len(self.data) == 1
        return {
            alias: given
            if isinstance(given, DataFrame)
            else self.session.createDataFrame(given if alone else given.slice(0, 0))
            for alias, given in self.data.items()
        }

    def typed(self, expr: Expr) -> tuple[Expr, pa.DataType]:
        """An expression with its names resolved and its casts made explicit, and its type."""
        return self.binding.typed(self.scope.resolve(expr))

    def conditions(self) -> list[Expr]:
        """The conjuncts, those as texts that we cannot evaluate by ourselves."""
        texts = self.query.texts or ("",) * len(self.query.conjuncts)
        return [
            self._settled(conjunct, text, condition=True)
            for conjunct, text in zip(self.query.conjuncts, texts, strict=True)
        ]

    def outputs(self) -> list[tuple[str, Expr]]:
        """The outputs by name, `*` spelled out."""
        found: list[tuple[str, Expr]] = []
        for output in self.query.outputs or (Output("*", Column(None, "*")),):
            expr = output.expr
            if isinstance(expr, Column) and expr.name == "*":
                found += self.binding.starred(expr.relation)
                continue
            settled = self._settled(expr, output.text, condition=False)
            if isinstance(expr, Column) and isinstance(settled, Column):
                settled = self.scope.column(settled)
                bare = output.name == expr.name
                found.append((settled.name if bare else output.name, settled))
            else:
                found.append((output.name, settled))
        check_output_names([name for name, _ in found])
        return found

    def mixed(self, exprs: Sequence[Expr]) -> bool:
        """Whether what only Spark understands holds calls of Python functions."""
        return any(user_calls_of(text) for expr in exprs for text in spark_texts_of(expr))

    def ask_first(self, text: SparkText) -> None:
        """Tell at once what neither we nor Spark understand."""
        if not user_calls_of(text):
            self.spark.understood(text)

    def understood(self, text: SparkText) -> Understood:
        """A text as Catalyst reads it."""
        return self.spark.understood(text)

    def _settled(self, expr: Expr, text: str, *, condition: bool) -> Expr:
        """The expression; where we cannot evaluate it and Spark might, its text."""
        if not spark_texts_of(expr):
            try:
                dtype = self.typed(expr)[1]
                if condition and kind_of(dtype) not in (Kind.BOOLEAN, Kind.NULL):
                    shown = to_text(expr, qualified=len(self.data) > 1)
                    raise SchemaError(f"{shown} is {sql_name(dtype)}, not a condition; compare it")
                return expr
            except QueryMeshError as problem:
                if not user_calls_of(expr):
                    return SparkText(text or to_text(expr, qualified=True), (), problem)
        return rewritten(expr, self._nested)

    def _nested(self, expr: Expr) -> Expr | None:
        """`payload.size` looks like a column of a relation, until it is known that none is so."""
        if isinstance(expr, SparkText):
            parts = (
                part if isinstance(part, Column) else rewritten(part, self._nested)
                for part in expr.parts
            )
            return replace(expr, parts=tuple(parts))
        if isinstance(expr, Column) and expr.relation is not None:
            try:
                self.scope.column(expr)
            except QueryMeshError as problem:
                return SparkText(spark_column(expr), (), problem)
        return None


class _Routed:
    """A query over one relation: what Catalyst evaluates is an operator like any other."""

    def __init__(self, leaving: _Leaving) -> None:
        self.leaving = leaving
        ((self.alias, self.frame),) = leaving.frames.items()
        self.reader = ConditionReader(self.frame.alias(self.alias), dict(leaving.query.functions))

    def left(self, conditions: Sequence[Expr], outputs: Outputs) -> LeftQuery:
        for condition in conditions:
            if isinstance(condition, SparkText):
                found = self.leaving.understood(condition)
                self.reader.read_analysed(found.found, found.shown)
            else:
                self._known(condition)
        finishing = _Finishing(outputs)
        for name, expr in outputs:
            if isinstance(expr, SparkText):
                finishing.compute(name, self.leaving.understood(expr))
            else:
                finishing.keep(name, expr)
        query = replace(
            self.leaving.query,
            conjuncts=tuple(self.reader.conjuncts),
            guarded=frozenset(self.reader.guarded),
            functions=self.reader.functions,
            outputs=finishing.made(),
            texts=(),
            asked=self.leaving.query,
        )
        columns = CatalystColumns(self.reader.columns, self.reader.remote)
        around = Around(self.leaving.session, {}, finishing.above(), ())
        return LeftQuery(query, self.leaving.frames, columns, around)

    def _known(self, condition: Expr) -> None:
        """A condition of ours; arguments of functions may be Spark's."""

        def computed(expr: Expr) -> Expr | None:
            if not isinstance(expr, SparkText):
                return None
            return self.reader.argument(self.leaving.understood(expr).found)

        self.reader.conjuncts.append(rewritten(condition, computed))
        if not user_calls_of(condition):
            self.reader.guards.append(F.expr(native_sql(self.leaving.typed(condition)[0])))


class _Surrounded:
    """A query that Spark helps from below and from above."""

    def __init__(self, leaving: _Leaving, shared: str | None) -> None:
        self.leaving = leaving
        self.shared = shared
        self.kept: list[Expr] = []
        self.filters: dict[str, list[Guarded]] = {alias: [] for alias in leaving.data}
        self.columns: dict[str, dict[str, Guarded]] = {alias: {} for alias in leaving.data}
        self.guards: dict[str, list[Understood | Expr]] = {alias: [] for alias in leaving.data}
        self.later: list[Understood] = []
        self.names: list[str] = []

    def left(self, conditions: Sequence[Expr], outputs: Outputs) -> LeftQuery:
        for condition in conditions:
            if isinstance(condition, SparkText):
                self._condition(condition)
            else:
                self._known(condition)
        finishing = _Finishing(outputs)
        for condition in self.later:
            finishing.filter_by(condition)
        for name, expr in outputs:
            if not isinstance(expr, SparkText):
                finishing.keep(name, self._with_columns(expr))
                continue
            found = self._understood(expr)
            column = self._cheap(found)
            if column is not None:
                finishing.keep(name, column)
            else:
                finishing.compute(name, found)
        query = replace(
            self.leaving.query,
            conjuncts=(*self.kept, *self._links()),
            outputs=finishing.made(),
            texts=(),
            asked=self.leaving.query,
        )
        below = {
            alias: Below(tuple(self.filters[alias]), self.columns[alias], self._blanks(alias))
            for alias in self.leaving.data
        }
        below = {alias: each for alias, each in below.items() if each != Below()}
        around = Around(self.leaving.session, below, finishing.above(), tuple(self.names))
        data = {alias: around.input(alias, given) for alias, given in self.leaving.data.items()}
        return LeftQuery(query, data, CatalystColumns(), around)

    def _blanks(self, alias: str) -> dict[str, DataType]:
        """What Spark computes for the same relation under other aliases: its schema is one.

        Queries that share a pass have one input for all aliases.
        """
        names = {r.alias: r.name.lower() for r in self.leaving.query.relations}
        if self.shared is not None:
            return {}
        return {
            name: each.what.found.type
            for other, columns in self.columns.items()
            if other != alias and names[other] == names[alias]
            for name, each in columns.items()
        }

    def _known(self, condition: Expr) -> None:
        self.kept.append(self._with_columns(condition))
        if not user_calls_of(condition):
            expr, _ = self.leaving.typed(condition)
            reads = relations_of(expr)
            if len(reads) == 1:
                self.guards[min(reads)].append(expr)

    def _condition(self, text: SparkText) -> None:
        found = self._understood(text)
        check_condition(found)
        if len(found.relations) == 1 and not found.parts:
            self._of_one(min(found.relations), found)
        elif (comparison := self._comparison(found)) is not None:
            self.kept.append(comparison)
        else:
            self.names.append(found.shown)
            self.later.append(found)

    def _of_one(self, alias: str, found: Understood) -> None:
        """A condition on one input. Rows that a window counts must not go missing."""
        relation = next(r for r in self.leaving.query.relations if r.alias == alias)
        counts = relation.window is not None and relation.window.kind == "rows"
        if counts or self.shared is not None:
            self.kept.append(self._column(alias, found))
        else:
            self.names.append(found.shown)
            self.filters[alias].append(self._guarded(alias, found))
        self.guards[alias].append(found)

    def _comparison(self, found: Understood) -> Expr | None:
        """A comparison of two relations, of which each computes its own side."""
        operator = _COMPARISONS.get(found.found.tree.kind)
        if operator is None or found.parts:
            return None
        sides = [found.child(0), found.child(1)]
        reads = [side.relations for side in sides]
        if [len(each) for each in reads] != [1, 1] or reads[0] == reads[1]:
            return None
        types = [arrow_type(side.found.type, self.leaving.spark.joined) for side in sides]
        kinds = {kind_of(dtype) for dtype in types}
        if len(kinds) > 1 or kinds & {Kind.OTHER, Kind.NULL}:
            return None
        if any(map(pa.types.is_decimal, types)):
            self.later.append(found)  # joined as DOUBLE, and then compared digit by digit
        left, right = (
            self._column(min(read), side) for read, side in zip(reads, sides, strict=True)
        )
        return Call(operator, (left, right))

    def _links(self) -> list[Expr]:
        """For streams that only what Spark evaluates above connects: a condition that always holds,
        so that all their combinations come out."""
        query = self.leaving.query
        if len(streams_of(query, self.leaving.schemas)) < 2:
            return []
        joined = [relations_of(self.leaving.scope.resolve(expr)) for expr in self.kept]
        links = []
        for condition in self.later:
            first, *others = sorted(condition.relations) or [""]
            for other in others:
                if not _connected(first, other, joined):
                    links.append(self._always(first, other))
                    joined.append(frozenset({first, other}))
        return links

    def _always(self, one: str, other: str) -> Expr:
        left, right = (Column(a, self.leaving.schemas[a].names[0]) for a in (one, other))
        nulls = Call("is null", (left,)), Call("is not null", (left,)), Call("is null", (right,))
        return Call("or", nulls)

    def _with_columns(self, expr: Expr) -> Expr:
        """An expression of ours with what Spark computes for it as columns of the inputs."""

        def computed(part: Expr) -> Expr | None:
            if not isinstance(part, SparkText):
                return None
            found = self._understood(part)
            relations = found.relations or {self.leaving.query.relations[0].alias}
            if len(relations) > 1 or found.parts:
                raise UnsupportedError(
                    f"{found.shown} is an argument of a Python function and reads "
                    f"{' and '.join(sorted(relations)) or 'another'}: give the function what it "
                    "reads of each as an argument of its own"
                )
            return self._column(min(relations), found)

        return rewritten(expr, computed)

    def _understood(self, text: SparkText) -> Understood:
        parts = (
            part if isinstance(part, Column) else self._with_columns(part) for part in text.parts
        )
        return self.leaving.understood(replace(text, parts=tuple(parts)))

    def _cheap(self, found: Understood) -> Column | None:
        """An output as a column of its input: a field of a wide struct, which then need not travel
        as a whole."""
        plain = all(node.kind in CHEAP for node in found.found.tree.walk())
        if len(found.relations) != 1 or found.parts or found.may_raise or not plain:
            return None
        return self._column(min(found.relations), found)

    def _column(self, alias: str, found: Understood) -> Column:
        """A column of this input that Spark computes; one that it has is taken as it is."""
        if found.found.tree.kind == "AttributeReference":
            return next(iter(found.reads.values()))
        for name, known in self.columns[alias].items():
            if known.what is found:
                return Column(alias, name)
        number = sum(map(len, self.columns.values())) + 1
        name = f"{KEY}{self.shared or ''}{number}"
        self.columns[alias][name] = self._guarded(alias, found)
        dtype = arrow_type(found.found.type, self.leaving.spark.joined)
        self.leaving.schemas[alias] = self.leaving.schemas[alias].append(pa.field(name, dtype))
        return Column(alias, name)

    def _guarded(self, alias: str, found: Understood) -> Guarded:
        return Guarded(found, tuple(self.guards[alias]))


class _Finishing:
    """The outputs that the query itself has, and what Spark makes of them."""

    def __init__(self, asked: Outputs) -> None:
        self.asked = [name for name, _ in asked]
        self.outputs: list[Output] = []
        self.carried: dict[int, str] = {}
        self.conditions: list[Understood] = []
        self.computed: dict[str, Understood] = {}

    def keep(self, name: str, expr: Expr) -> None:
        """An output that the query has by itself."""
        self.outputs.append(Output(name, expr))

    def compute(self, name: str, found: Understood) -> None:
        """An output that Spark computes of others."""
        self.computed[name] = found

    def filter_by(self, found: Understood) -> None:
        """A condition on what comes out."""
        self.conditions.append(found)

    def made(self) -> tuple[Output, ...]:
        """The query's own outputs: those asked for, and those that Spark reads."""
        for found in (*self.conditions, *self.computed.values()):
            for number, expr in {**found.reads, **found.parts}.items():
                self.carried[number] = self._under_some_name(expr)
        return tuple(self.outputs) or (Output(f"{KEY}row", Literal(True)),)

    def above(self) -> Above | None:
        """What Spark does above; None where all is as it was asked for."""
        if not self.computed and not self.conditions:
            return None
        outputs = {name: self.computed.get(name) for name in self.asked}
        return Above(tuple(self.conditions), outputs, self.carried)

    def _under_some_name(self, expr: Expr) -> str:
        for output in self.outputs:
            if output.expr == expr and isinstance(expr, Column):
                return output.name
        name = f"{KEY}carried_{len(self.outputs) + 1}"
        self.outputs.append(Output(name, expr))
        return name


def _connected(one: str, other: str, joined: Sequence[frozenset[str]]) -> bool:
    """Whether conditions lead from one relation to the other, directly or through others."""
    reached = {one}
    while True:
        further = {alias for pair in joined if pair & reached for alias in pair} - reached
        if not further:
            return other in reached
        reached |= further
