"""A query beside look-ups or over windowed streams: what Spark does of it goes below or above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.types import DataType

from querymesh.errors import UnsupportedError
from querymesh.query.bind.bind import streams_of
from querymesh.query.bind.static_joins import relations_of
from querymesh.query.expr import Call, Column, Expr, SparkText, rewritten, user_calls_of
from querymesh.query.model import Query
from querymesh.query.types import Kind, kind_of
from querymesh.spark.conditions.around import Around, Below, Guarded
from querymesh.spark.conditions.ask_spark import Understood, check_condition
from querymesh.spark.conditions.division import Division, Outputs
from querymesh.spark.conditions.facts import CHEAP
from querymesh.spark.conditions.finishing import KEY, Finishing
from querymesh.spark.schema import arrow_type

_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}


class Surrounded:
    """A query that Spark helps from below and from above."""

    def __init__(self, division: Division, shared: str | None) -> None:
        self.division = division
        self.shared = shared
        self.kept: list[Expr] = []
        self.filters: dict[str, list[Guarded]] = {alias: [] for alias in division.data}
        self.columns: dict[str, dict[str, Guarded]] = {alias: {} for alias in division.data}
        self.guards: dict[str, list[Understood | Expr]] = {alias: [] for alias in division.data}
        self.later: list[Understood] = []
        self.names: list[str] = []

    def left(self, conditions: Sequence[Expr], outputs: Outputs) -> tuple[Query, Around]:
        """The query that remains for us, and what Spark does around it."""
        for condition in conditions:
            if isinstance(condition, SparkText):
                self._condition(condition)
            else:
                self._known(condition)
        finishing = Finishing(outputs)
        for later in self.later:
            finishing.filter_by(later)
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
            self.division.query,
            conjuncts=(*self.kept, *self._links()),
            outputs=finishing.made(),
            texts=(),
            asked=self.division.query,
        )
        below = {
            alias: Below(tuple(self.filters[alias]), self.columns[alias], self._blanks(alias))
            for alias in self.division.data
        }
        below = {alias: each for alias, each in below.items() if each != Below()}
        around = Around(self.division.session, below, finishing.above(), tuple(self.names))
        return query, around

    def _blanks(self, alias: str) -> dict[str, DataType]:
        """What Spark computes for the same relation under other aliases: its schema is one.

        Queries that share a pass have one input for all aliases.
        """
        names = {r.alias: r.name.lower() for r in self.division.query.relations}
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
            expr, _ = self.division.typed(condition)
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
        relation = next(r for r in self.division.query.relations if r.alias == alias)
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
        types = [arrow_type(side.found.type, self.division.spark.joined) for side in sides]
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
        query = self.division.query
        if len(streams_of(query, self.division.schemas)) < 2:
            return []
        joined = [relations_of(self.division.scope.resolve(expr)) for expr in self.kept]
        links = []
        for condition in self.later:
            first, *others = sorted(condition.relations) or [""]
            for other in others:
                if not _connected(first, other, joined):
                    links.append(self._always(first, other))
                    joined.append(frozenset({first, other}))
        return links

    def _always(self, one: str, other: str) -> Expr:
        left, right = (Column(a, self.division.schemas[a].names[0]) for a in (one, other))
        nulls = Call("is null", (left,)), Call("is not null", (left,)), Call("is null", (right,))
        return Call("or", nulls)

    def _with_columns(self, expr: Expr) -> Expr:
        """An expression of ours with what Spark computes for it as columns of the inputs."""

        def computed(part: Expr) -> Expr | None:
            if not isinstance(part, SparkText):
                return None
            found = self._understood(part)
            relations = found.relations or {self.division.query.relations[0].alias}
            if found.parts:
                raise UnsupportedError(
                    f"{found.shown} is an argument of a Python function and calls another, with "
                    "Spark between the two: do what Spark does there in one of the functions"
                )
            if len(relations) > 1:
                raise UnsupportedError(
                    f"{found.shown} is an argument of a Python function and reads "
                    f"{' and '.join(sorted(relations))}: give the function what it reads of each "
                    "as an argument of its own"
                )
            return self._column(min(relations), found)

        return rewritten(expr, computed)

    def _understood(self, text: SparkText) -> Understood:
        parts = (
            part if isinstance(part, Column) else self._with_columns(part) for part in text.parts
        )
        return self.division.understood(replace(text, parts=tuple(parts)))

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
        dtype = arrow_type(found.found.type, self.division.spark.joined)
        self.division.schemas[alias] = self.division.schemas[alias].append(pa.field(name, dtype))
        return Column(alias, name)

    def _guarded(self, alias: str, found: Understood) -> Guarded:
        return Guarded(found, tuple(self.guards[alias]))


def _connected(one: str, other: str, joined: Sequence[frozenset[str]]) -> bool:
    """Whether conditions lead from one relation to the other, directly or through others."""
    reached = {one}
    while True:
        further = {alias for pair in joined if pair & reached for alias in pair} - reached
        if not further:
            return other in reached
        reached |= further
