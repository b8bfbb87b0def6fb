"""A query and the schemas of its inputs, to operators: what can be reordered, and what cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from querymesh.errors import QueryError, QueryMeshError, SchemaError, UnsupportedError, did_you_mean
from querymesh.query.aggregate import check_aliases
from querymesh.query.bind.infer import typed
from querymesh.query.bind.names import Scope
from querymesh.query.bind.precedence import all_predecessors
from querymesh.query.bind.static_joins import BoundCondition, StaticJoin, place_lookups
from querymesh.query.expr import Cast, Column, Expr, UserCall, conjuncts_of, user_calls_of
from querymesh.query.model import (
    BoundQuery,
    Filter,
    Lookup,
    Operator,
    Output,
    Query,
    Relation,
    check_output_names,
)
from querymesh.query.parse.query import condition_of
from querymesh.query.render import to_text
from querymesh.query.types import Kind, kind_of, sql_name


def bind(query: Query, schemas: Mapping[str, pa.Schema]) -> BoundQuery:
    """Resolve every name and type against the inputs, and find the operators.

    `schemas` are by the relation's name in FROM, whatever its case.
    """
    by_alias = {relation.alias: schema_of(relation, schemas) for relation in query.relations}
    if query.aggregate is not None:
        check_aliases(query.aggregate, by_alias)
    source = _source(query, by_alias)
    binding = Binding(query, source, Scope(query.relations, by_alias, query.using))
    operators, static_filters = binding.operators()
    outputs = binding.outputs()
    fields = []
    for i, (output, expr) in enumerate(outputs):
        checked, dtype = binding.typed(expr)
        outputs[i] = (output, checked)
        fields.append(pa.field(output, dtype))
    return BoundQuery(
        query=query,
        source=source,
        schemas=by_alias,
        operators=operators,
        static_filters=static_filters,
        outputs=tuple(Output(name, expr) for name, expr in outputs),
        output_schema=pa.schema(fields),
    )


def schema_of(relation: Relation, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
    """The schema given for a relation, whatever the case of its name."""
    if relation.name in schemas:
        return schemas[relation.name]
    for name, schema in schemas.items():
        if name.lower() == relation.name.lower():
            return schema
    raise SchemaError(
        f"no input is given for {relation.name}: {did_you_mean(relation.name, schemas)}"
    )


def _source(query: Query, schemas: Mapping[str, pa.Schema]) -> Relation:
    """The stream: the one relation with a window, or the first of FROM if none has one.

    A trailing WINDOW gives a window to every relation; those without the time column are static.
    """
    streams = streams_of(query, schemas)
    if len(streams) > 1:
        names = ", ".join(relation.alias for relation in streams)
        raise UnsupportedError(
            f"{names} are windowed streams, and this is for queries over one: leave the window off "
            "all but one, and the others are static look-up tables"
        )
    return streams[0] if streams else query.relations[0]


def streams_of(query: Query, schemas: Mapping[str, pa.Schema]) -> list[Relation]:
    """The relations that are streams: those with a window and, if one is named, a time column."""
    found = [relation for relation in query.relations if relation.window is not None]
    if not found or query.time is None:
        return found
    time = query.time.lower()
    timed = [r for r in found if time in (name.lower() for name in schemas[r.alias].names)]
    if not timed:
        names = ", ".join(relation.alias for relation in found)
        raise SchemaError(f"none of {names} has the time column {query.time}")
    return timed


@dataclass(frozen=True, slots=True)
class _Unordered:
    """An operator of which is not yet known what must come before it.

    `position` is that of its first conjunct in WHERE, `calls` are the user functions it calls, and
    `reads` the look-up tables whose columns it needs.
    """

    position: int
    operator: Operator
    text: str
    calls: frozenset[str]
    reads: frozenset[str]

    @property
    def needs_python(self) -> bool:
        """Whether Catalyst cannot evaluate it on rows of the source alone."""
        return bool(self.calls or self.reads) or not isinstance(self.operator, Filter)


class Binding:
    """One query being bound."""

    def __init__(self, query: Query, source: Relation, scope: Scope) -> None:
        self.query = query
        self.source = source
        self.scope = scope
        self.qualified = len(query.relations) > 1

    def text(self, expr: Expr) -> str:
        """An expression as people read it."""
        return to_text(expr, qualified=self.qualified)

    def typed(self, expr: Expr) -> tuple[Expr, pa.DataType]:
        """The expression with its casts made explicit, and its type."""
        return typed(expr, self.scope.type_of, self.query.functions)

    def conditions(self) -> list[BoundCondition]:
        """The conjuncts, resolved and checked."""
        conditions = []
        for conjunct in self.query.conjuncts:
            named = self.scope.resolve(conjunct)
            checked, dtype = self.typed(named)
            text = to_text(named, qualified=self.qualified)
            if kind_of(dtype) not in (Kind.BOOLEAN, Kind.NULL):
                raise SchemaError(f"{text} is {sql_name(dtype)}, not a condition; compare it")
            if kind_of(dtype) is Kind.NULL:
                checked = Cast(checked, "boolean", implicit=True)
            conditions.append(BoundCondition(checked, text))
        return conditions

    def operators(self) -> tuple[tuple[Operator, ...], dict[str, tuple[Expr, ...]]]:
        """The operators, and the conditions on look-up tables alone by alias."""
        conditions = self.conditions()
        others = [r.alias for r in self.query.relations if r.alias != self.source.alias]
        joins = place_lookups(conditions, self.source.alias, others)
        used = {position for join in joins for position in join.positions}
        placed = [self._lookup(join) for join in joins]
        static: dict[str, list[Expr]] = {}
        static_texts: set[str] = set()
        for position, condition in enumerate(conditions):
            if position in used:
                continue
            table = next(iter(condition.reads)) if len(condition.reads) == 1 else None
            if table in others:
                self.check_static(condition)
                static.setdefault(table, []).append(condition.expr)
                static_texts.add(condition.text)
            else:
                placed.append(self._filter(position, condition))
        placed.sort(key=lambda each: each.position)
        named = numbered([each.operator for each in placed])
        placed = [replace(each, operator=op) for each, op in zip(placed, named, strict=True)]
        operators = self._ordered(placed, static_texts)
        return operators, {alias: tuple(exprs) for alias, exprs in static.items()}

    def _lookup(self, join: StaticJoin) -> _Unordered:
        for probe, build in zip(join.probe_keys, join.build_keys, strict=True):
            kinds = [self.typed(key)[1] for key in (probe, build)]
            if kind_of(kinds[0]) is not kind_of(kinds[1]):
                raise SchemaError(
                    f"{to_text(probe, qualified=True)} = {to_text(build, qualified=True)}: keys of "
                    f"a look-up are of one kind, not {' and '.join(map(sql_name, kinds))}"
                )
        calls = frozenset().union(*(user_calls_of(key) for key in join.probe_keys))
        lookup = Lookup(0, join.alias, join.alias, join.probe_keys, join.build_keys)
        return _Unordered(join.positions[0], lookup, join.alias, calls, join.reads)

    def _filter(self, position: int, condition: BoundCondition) -> _Unordered:
        expr, name = condition.expr, condition.text
        if isinstance(expr, UserCall):
            name = self.query.functions[expr.function].name
        reads = condition.reads - {self.source.alias}
        return _Unordered(
            position, Filter(0, name, expr), condition.text, user_calls_of(expr), reads
        )

    def check_static(self, condition: BoundCondition) -> None:
        """Refuse a condition on a look-up table alone that would have to wait for others."""
        for name in user_calls_of(condition.expr):
            if self.query.functions[name].after:
                raise UnsupportedError(
                    f"{condition.text} reads a look-up table only, which is filtered once and "
                    f"beforehand: {name} cannot come after= anything there"
                )

    def _ordered(self, placed: Sequence[_Unordered], static: set[str]) -> tuple[Operator, ...]:
        """The operators with all that must come before each.

        What may raise comes after all that was written before it; but functions, and look-ups, do
        not come before what a function is declared to come `after`. Spark evaluates that before any
        Python function, too.
        """
        operators = [each.operator for each in placed]
        lookups = {op.relation: op.index for op in operators if isinstance(op, Lookup)}
        direct: dict[int, frozenset[int]] = {}
        named: set[int] = set()
        for each in placed:
            earlier = {lookups[alias] for alias in each.reads if alias in lookups}
            for call in each.calls:
                for name in self.query.functions[call].after:
                    named |= (found := self._named(name, call, placed, static))
                    earlier |= found
            direct[each.operator.index] = frozenset(earlier)
        guarded = [each for each in placed if each.position in self.query.guarded]
        for each in sorted(guarded, key=lambda other: -other.position):
            before = [other for other in placed if other.position < each.position]
            if each.operator.index in named:
                before = [other for other in before if not other.needs_python]
                named |= {other.operator.index for other in before}
            direct[each.operator.index] |= {other.operator.index for other in before}
        complete = all_predecessors(direct, {op.index: op.name for op in operators})
        return tuple(replace(op, after=complete[op.index]) for op in operators)

    def _named(
        self, name: str, by: str, placed: Sequence[_Unordered], static: set[str]
    ) -> set[int]:
        """The operators that an `after` name means: by name, by function, or by SQL text."""
        wanted = name.lower()
        found = {
            each.operator.index
            for each in placed
            if wanted in (each.operator.name.lower(), each.text.lower()) or wanted in each.calls
        }
        if found:
            return found
        texts = self.normalised(name)
        by_text = {each.text: each.operator.index for each in placed}
        if texts and all(text in by_text or text in static for text in texts):
            return {by_text[text] for text in texts if text in by_text}
        known = [each.operator.name for each in placed]
        raise QueryError(
            f"predicate {by} is to come after {name!r}, which is no operator of this query: "
            f"{did_you_mean(name, known)}"
        )

    def normalised(self, sql: str) -> list[str]:
        """The conjuncts of a condition as this query writes them; none if it means nothing here."""
        aliases = [relation.alias for relation in self.query.relations]
        try:
            expr = condition_of(sql, self.query.functions, aliases)
            return [
                to_text(self.scope.resolve(part), qualified=self.qualified)
                for part in conjuncts_of(expr)
            ]
        except QueryMeshError:
            return []

    def outputs(self) -> list[tuple[str, Expr]]:
        """The output columns by name, `*` spelled out."""
        found: list[tuple[str, Expr]] = []
        for output in self.query.outputs or (Output("*", Column(None, "*")),):
            if isinstance(output.expr, Column) and output.expr.name == "*":
                found += self.starred(output.expr.relation)
            elif isinstance(output.expr, Column) and output.name == output.expr.name:
                column = self.scope.column(output.expr)
                found.append((column.name, column))
            else:
                found.append((output.name, self.scope.resolve(output.expr)))
        check_output_names([name for name, _ in found])
        return found

    def starred(self, relation: str | None) -> list[tuple[str, Expr]]:
        """The columns of a relation, or of all of them, each under the name it comes out by."""
        if relation is not None:
            alias = self.scope.alias(relation, f"{relation}.*")
            return [(name, Column(alias, name)) for name in self.scope.schemas[alias].names]
        aliases = [each.alias for each in self.query.relations]
        columns = [(alias, name) for alias in aliases for name in self.scope.visible(alias)]
        owners: dict[str, set[str]] = {}
        for alias, name in columns:
            owners.setdefault(name.lower(), set()).add(alias)
        return [
            (f"{alias}_{name}" if len(owners[name.lower()]) > 1 else name, Column(alias, name))
            for alias, name in columns
        ]


def numbered(operators: Sequence[Operator]) -> list[Operator]:
    """Indices from 1 in the order given, and names that tell operators apart."""
    made: list[Operator] = []
    taken: set[str] = set()
    for index, operator in enumerate(operators, start=1):
        name, copy = operator.name, 1
        while name in taken:
            copy += 1
            name = f"{operator.name} #{copy}"
        taken.add(name)
        made.append(replace(operator, index=index, name=name))
    return made
