"""What our own reader does not understand of a query, read by Catalyst against the query's inputs.

Nothing runs for it: the texts are analysed on a cross join of the inputs, each under its alias, so
that Spark itself says which column a name means, of which type a text is, and whether it may raise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BooleanType

from querymesh.errors import QueryMeshError, SchemaError, UnsupportedError
from querymesh.query.expr import Column, Expr, SparkText, part_name
from querymesh.query.functions import like
from querymesh.query.render import quoted_name, spark_column, to_text
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.conditions.facts import SUBQUERIES, may_raise
from querymesh.spark.conditions.spark_errors import in_our_words
from querymesh.spark.context import (
    AnalysedExpression,
    analysed,
    attribute_numbers,
    is_java_pattern,
    placed_on,
)

Typed = Callable[[Expr], pa.DataType]
"""The type of an expression that our own reader understands."""

_PATTERNS = {"RLike", "RegExpCount", "RegExpInStr", "RegExpSubStr", "StringSplit"}


@dataclass(frozen=True)
class Understood:
    """An expression that Catalyst understands.

    `reads` are the columns of the inputs that it reads, and `parts` what Python computes for it, by
    the numbers that they have in `found`.
    """

    shown: str
    found: AnalysedExpression
    reads: Mapping[int, Column]
    parts: Mapping[int, Expr] = field(default_factory=dict)

    @property
    def relations(self) -> frozenset[str]:
        """The aliases of the relations whose columns it reads."""
        return frozenset(column.relation for column in self.reads.values() if column.relation)

    @property
    def may_raise(self) -> bool:
        """Whether it could raise on some row."""
        return may_raise(self.found.tree)

    def child(self, number: int) -> Understood:
        """One of its operands."""
        found = self.found.part((number,))
        read = found.tree.attributes
        return Understood(
            found.sql, found, {n: column for n, column in self.reads.items() if n in read}
        )

    def of_relation(self, frame: DataFrame) -> SparkColumn:
        """It as a Column of the one relation that it reads."""
        return placed_on(frame, self.found, {n: column.name for n, column in self.reads.items()})


class AskSpark:
    """Asks Spark about the texts of one query; `frames` are its inputs by alias.

    `merged` are the (alias, column) pairs that unqualified names do not see, because of JOIN USING.
    """

    def __init__(
        self,
        session: SparkSession,
        frames: Mapping[str, DataFrame],
        typed: Typed,
        merged: Collection[tuple[str, str]] = (),
    ) -> None:
        self.session = session
        self.typed = typed
        self.known = [name for frame in frames.values() for name in frame.columns]
        own = {alias: _anew(frame) if len(frames) > 1 else frame for alias, frame in frames.items()}
        self._columns = {
            number: Column(alias, name)
            for alias, frame in own.items()
            for number, name in attribute_numbers(frame).items()
        }
        self.joined = _cross_joined(own)
        self._merged = _cross_joined(_without(own, merged)) if merged else None
        self._found: dict[SparkText, Understood] = {}

    def understood(self, text: SparkText) -> Understood:
        """The text as Catalyst reads it; an error where it does not."""
        if text not in self._found:
            self._found[text] = self._understand(text)
        return self._found[text]

    def _understand(self, text: SparkText) -> Understood:
        written, computed = [], {}
        for number, part in enumerate(text.parts):
            if isinstance(part, Column):
                written.append(spark_column(part))
            else:
                written.append(quoted_name(part_name(number)))
                computed[part_name(number)] = part
        stand_in = {
            name: F.lit(None).cast(from_arrow_type(self.typed(part), prefer_timestamp_ntz=True))
            for name, part in computed.items()
        }
        shown = to_text(text, qualified=True)
        try:
            found = self._analysed(F.expr(text.filled(written)), stand_in)
        except (AnalysisException, ParseException) as refused:
            raise _refusal(refused, text.problem, shown, self.known) from None
        except UnsupportedError as refused:
            raise UnsupportedError(f"{shown}: {refused}") from None
        self._check(found, shown, text.problem)
        read = found.tree.attributes
        parts = {number: computed[name] for number, name in read.items() if name in computed}
        reads = {number: self._columns[number] for number in read if number in self._columns}
        return Understood(shown, found, reads, parts)

    def _analysed(
        self, column: SparkColumn, stand_in: dict[str, SparkColumn]
    ) -> AnalysedExpression:
        try:
            (found,) = analysed(self.joined.withColumns(stand_in), [column])
        except AnalysisException as refused:
            if self._merged is None or refused.getCondition() != "AMBIGUOUS_REFERENCE":
                raise
            (found,) = analysed(self._merged.withColumns(stand_in), [column])
        return found

    def _check(self, found: AnalysedExpression, shown: str, problem: QueryMeshError) -> None:
        nodes = list(found.tree.walk())
        if any(node.kind in SUBQUERIES for node in nodes):
            raise UnsupportedError(
                f"subquery in {shown}: join its result as a look-up table instead"
            )
        if not found.deterministic:
            raise UnsupportedError(
                f"{shown} is not deterministic: when it is evaluated would change the result; make "
                "it a column of the DataFrame that you give, or of the one that comes out"
            )
        for node in nodes:
            pattern = _literal_pattern(node)
            if pattern is None:
                continue
            if node.kind == "Like":
                like.check(pattern)
            elif not is_java_pattern(self.session, pattern):
                raise problem


def check_condition(found: Understood) -> None:
    """Refuse what is no condition."""
    kind = found.found.type
    if not isinstance(kind, BooleanType):
        raise SchemaError(
            f"{found.shown} is {kind.simpleString().upper()}, not a condition; compare it"
        )


def _literal_pattern(node: Node) -> str | None:
    if node.kind not in _PATTERNS and node.kind != "Like":
        return None
    pattern = node.children[1]
    value = pattern.fields.get("value") if pattern.kind == "Literal" else None
    return value if isinstance(value, str) else None


def _cross_joined(frames: Mapping[str, DataFrame]) -> DataFrame:
    first, *others = (frame.alias(alias) for alias, frame in frames.items())
    for other in others:
        first = first.crossJoin(other)
    return first


def _without(
    frames: Mapping[str, DataFrame], columns: Collection[tuple[str, str]]
) -> dict[str, DataFrame]:
    return {
        alias: frame.drop(*(name for owner, name in columns if owner == alias))
        for alias, frame in frames.items()
    }


def _anew(frame: DataFrame) -> DataFrame:
    """The DataFrame with columns that no other has, as if it were read once more."""
    return frame.select(*(F.col(quoted_name(name)).alias(name) for name in frame.columns))


def _refusal(
    refused: AnalysisException | ParseException,
    problem: QueryMeshError,
    shown: str,
    known: Sequence[str],
) -> QueryMeshError:
    """What to say of a text that neither reader understands: the more telling of the two."""
    if isinstance(problem, UnsupportedError) or "unknown relation" in str(problem):
        return in_our_words(refused, shown, known)
    return problem
