"""A query over several windowed streams and the schemas of its inputs, to a `JoinQuery`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pyarrow as pa

from querymesh.errors import QueryError, SchemaError
from querymesh.query.aggregate import check_aliases
from querymesh.query.bind.bind import Binding, schema_of, streams_of
from querymesh.query.bind.join_view import JoinConditions, JoinView
from querymesh.query.bind.names import Scope
from querymesh.query.bind.static_joins import BoundCondition, relations_of
from querymesh.query.expr import Call, Expr, user_calls_of
from querymesh.query.join import ORDERED, JoinComparison, JoinQuery, KeyClass, Op
from querymesh.query.model import BoundQuery, Output, Query, Relation
from querymesh.query.types import Kind, compute_type, kind_of, sql_name

LONGEST_WINDOW = 1 << 61
"""In microseconds, some 70,000 years, or in rows: added to any time it still is a 64-bit number."""

_ORDERED_KINDS = (Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT, Kind.DATE, Kind.TIMESTAMP)

_ORDERED_DIGITS = 18
"""Decimals of no more digits are whole numbers of 64 bits, by which an index finds a range."""


def stream_count(query: Query, schemas: Mapping[str, pa.Schema]) -> int:
    """How many windowed streams the query joins; `schemas` are by the relation's name."""
    return len(streams_of(query, {r.alias: schema_of(r, schemas) for r in query.relations}))


def bind_join(query: Query, schemas: Mapping[str, pa.Schema]) -> JoinQuery:
    """Resolve every name and type against the inputs, and find classes, comparisons and views."""
    by_alias = {relation.alias: schema_of(relation, schemas) for relation in query.relations}
    if query.aggregate is not None:
        check_aliases(query.aggregate, by_alias)
    streams = tuple(map(_bounded, streams_of(query, by_alias)))
    scope = Scope(query.relations, by_alias, query.using)
    return _JoinBinding(Binding(query, streams[0], scope), streams).bound()


def _bounded(stream: Relation) -> Relation:
    """The stream with a window in which one can count; some write a huge one to mean for ever."""
    if stream.window is None or stream.window.size <= LONGEST_WINDOW:
        return stream
    return replace(stream, window=replace(stream.window, size=LONGEST_WINDOW))


class _JoinBinding:
    """One query over several streams being bound."""

    def __init__(self, binding: Binding, streams: tuple[Relation, ...]) -> None:
        self.binding = binding
        self.query = binding.query
        self.streams = streams
        self.found = JoinConditions(binding, [relation.alias for relation in self.query.relations])
        self.times = self._times()
        conditions = binding.conditions()
        equal = self._sort_conditions([part for each in conditions for part in self._halves(each)])
        self.found.classes = self._classes(equal)

    def bound(self) -> JoinQuery:
        outputs = []
        fields = []
        for name, expr in self.binding.outputs():
            checked, dtype = self.binding.typed(expr)
            outputs.append(Output(name, checked))
            fields.append(pa.field(name, dtype))
        aliases = {stream.alias for stream in self.streams}
        statics = tuple(r for r in self.query.relations if r.alias not in aliases)
        static_filters = {r.alias: self._static_filters(r.alias) for r in statics}
        views = {}
        for stream in self.streams:
            views[stream.alias] = BoundQuery(
                query=self.query,
                source=stream,
                schemas=self.binding.scope.schemas,
                operators=JoinView(self.found, stream.alias).operators(),
                static_filters=static_filters,
                outputs=tuple(outputs),
                output_schema=pa.schema(fields),
            )
        return JoinQuery(
            query=self.query,
            streams=self.streams,
            statics=statics,
            schemas=self.binding.scope.schemas,
            times=self.times,
            classes=self.found.classes,
            compared=tuple(self.found.compared),
            static_filters=static_filters,
            views=views,
        )

    def _times(self) -> dict[str, str]:
        times = {}
        for stream in self.streams:
            names = self.binding.scope.schemas[stream.alias].names
            wanted = self.query.time
            if wanted is None:
                if stream.window is not None and stream.window.kind == "range":
                    raise QueryError(
                        f"the window of {stream.alias} goes by time, but the query does not say by "
                        'which column: give time=, as in qm.query(sql, time="ts")'
                    )
                continue
            name = next((n for n in names if n == wanted), None)
            name = name or next(n for n in names if n.lower() == wanted.lower())
            dtype = self.binding.scope.schemas[stream.alias].field(name).type
            if kind_of(dtype) is not Kind.TIMESTAMP:
                raise SchemaError(
                    f"windows go by time, but {stream.alias}.{name} is {sql_name(dtype)}: cast it "
                    "to TIMESTAMP in the DataFrame you give"
                )
            times[stream.alias] = name
        zoned = {self._is_zoned(alias, name) for alias, name in times.items()}
        if len(zoned) > 1:
            raise SchemaError(
                "some streams have their time as TIMESTAMP and some as TIMESTAMP_NTZ, which do not "
                "compare: cast them to one of the two"
            )
        return times

    def _is_zoned(self, alias: str, name: str) -> bool:
        return compute_type(self.binding.scope.schemas[alias].field(name).type).tz is not None

    def _sort_conditions(self, conditions: Sequence[BoundCondition]) -> list[tuple[Expr, Expr]]:
        """Add each condition to `found` by what it reads; the equalities between two relations."""
        equal = []
        for condition in conditions:
            if len(condition.reads) == 1:
                self.found.own[next(iter(condition.reads))].append(condition)
            elif not condition.reads:
                for stream in self.streams:
                    self.found.own[stream.alias].append(condition)
            elif (comparison := self._comparison(condition)) is None:
                self.found.residual.append(condition)
            else:
                left, op, right = comparison
                if op == "=":
                    equal.append((left, right))
                else:
                    self.found.compared.append(
                        JoinComparison(
                            _of(left), left, cast(Op, op), _of(right), right, condition.text
                        )
                    )
        return equal

    def _halves(self, condition: BoundCondition) -> list[BoundCondition]:
        """`x BETWEEN l AND h` as its two comparisons, if an index can find by them."""
        expr = condition.expr
        if not isinstance(expr, Call) or expr.function != "between" or user_calls_of(expr):
            return [condition]
        x, low, high = expr.args
        both = [Call(">=", (x, low)), Call("<=", (x, high))]
        halves = [BoundCondition(half, self.binding.text(half)) for half in both]
        across = [half for half in halves if len(half.reads) > 1]
        found = across and all(self._comparison(half) is not None for half in across)
        return halves if found else [condition]

    def _comparison(self, condition: BoundCondition) -> tuple[Expr, str, Expr] | None:
        """(key, operator, key) if the condition compares one relation's key with another's."""
        expr = condition.expr
        if not isinstance(expr, Call) or expr.function not in ("=", *ORDERED):
            return None
        left, right = expr.args
        reads = [relations_of(side) for side in (left, right)]
        if [len(each) for each in reads] != [1, 1] or reads[0] == reads[1]:
            return None
        types = [compute_type(self.binding.typed(side)[1]) for side in (left, right)]
        kinds = [kind_of(dtype) for dtype in types]
        if kinds[0] is not kinds[1] or kinds[0] in (Kind.OTHER, Kind.NULL):
            return None
        if expr.function != "=" and not all(map(_is_ordered, types)):
            return None
        return left, expr.function, right

    def _classes(self, equal: Sequence[tuple[Expr, Expr]]) -> tuple[KeyClass, ...]:
        """The keys that equalities connect, of one type each.

        Keys are told apart by what they look like: 1 = TRUE in Python.
        """
        groups: list[dict[str, Expr]] = []
        for equality in equal:
            pair = {repr(key): key for key in equality}
            kind = self._kind(equality[0])
            merged: dict[str, Expr] = {}
            apart = []
            for group in groups:
                if group.keys() & pair.keys() and self._kind(next(iter(group.values()))) is kind:
                    merged |= group
                else:
                    apart.append(group)
            groups = [*apart, {**merged, **pair}]
        classes = []
        for number, group in enumerate(groups):
            members: dict[str, Expr] = {}
            for key in sorted(group.values(), key=lambda key: self.found.relations.index(_of(key))):
                first = members.setdefault(_of(key), key)
                if repr(first) != repr(key):
                    both = Call("=", (first, key))
                    self.found.own[_of(key)].append(BoundCondition(both, self.binding.text(both)))
            dtype = compute_type(self.binding.typed(next(iter(group.values())))[1])
            classes.append(KeyClass(number, dtype, members))
        return tuple(classes)

    def _kind(self, key: Expr) -> Kind:
        return kind_of(self.binding.typed(key)[1])

    def _static_filters(self, alias: str) -> tuple[Expr, ...]:
        for own in self.found.own[alias]:
            self.binding.check_static(own)
        self.found.check_keys(alias)
        return tuple(own.expr for own in self.found.own[alias])


def _is_ordered(dtype: pa.DataType) -> bool:
    """Whether values of this type have an order that is one of 64-bit numbers."""
    if kind_of(dtype) is Kind.DECIMAL:
        return bool(dtype.precision <= _ORDERED_DIGITS)
    return kind_of(dtype) in _ORDERED_KINDS


def _of(key: Expr) -> str:
    """The one relation a key reads."""
    (alias,) = relations_of(key)
    return alias
