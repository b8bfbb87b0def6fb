"""Who evaluates what of a query: which of its expressions we can, and which are Spark's to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from querymesh.errors import QueryMeshError, SchemaError
from querymesh.query.bind.bind import Binding
from querymesh.query.bind.names import Scope
from querymesh.query.expr import (
    Column,
    Expr,
    SparkText,
    rewritten,
    spark_texts_of,
    user_calls_of,
)
from querymesh.query.model import Output, Query, check_output_names
from querymesh.query.render import spark_column, to_text
from querymesh.query.types import Kind, kind_of, sql_name
from querymesh.spark.conditions.ask_spark import AskSpark, Understood
from querymesh.spark.schema import arrow_schema

Data: TypeAlias = DataFrame | pa.Table

Outputs: TypeAlias = Sequence[tuple[str, Expr]]
"""Output columns by name."""


class Division:
    """A query divided between us and Spark; `data` are its inputs by alias."""

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

        def dtype(expr: Expr) -> pa.DataType:
            return self.typed(expr)[1]

        return AskSpark(self.session, self.frames, dtype, self.query.using)

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
