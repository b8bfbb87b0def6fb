"""A query over several windowed streams and the schemas of its inputs, to a `JoinQuery`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import cast

import pyarrow as pa

from querymesh.errors import QueryError, SchemaError, UnsupportedError, did_you_mean
from querymesh.query.aggregate import check_aliases
from querymesh.query.bind import Binding, numbered, schema_of, windowed
from querymesh.query.expr import Call, Expr, UserCall, user_calls_of
from querymesh.query.join import ORDERED, Compared, JoinQuery, KeyClass, Op
from querymesh.query.joins import Condition, relations_of
from querymesh.query.model import (
    BoundQuery,
    Filter,
    Meeting,
    Operator,
    Output,
    Probe,
    Query,
    Relation,
)
from querymesh.query.names import Scope
from querymesh.query.precedence import closed
from querymesh.query.types import Kind, compute_type, kind_of, sql_name

LONGEST_WINDOW = 1 << 61
"""In microseconds, some 70,000 years, or in rows: added to any time it still is a 64-bit number."""

_ORDERED_KINDS = (Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT, Kind.DATE, Kind.TIMESTAMP)


def streams_in(query: Query, schemas: Mapping[str, pa.Schema]) -> int:
    """How many windowed streams the query joins; `schemas` are by the relation's name."""
    return len(windowed(query, {r.alias: schema_of(r, schemas) for r in query.relations}))


def bind_join(query: Query, schemas: Mapping[str, pa.Schema]) -> JoinQuery:
    """Resolve every name and type against the inputs, and find classes, comparisons and views."""
    by_alias = {relation.alias: schema_of(relation, schemas) for relation in query.relations}
    if query.aggregate is not None:
        check_aliases(query.aggregate, by_alias)
    streams = tuple(map(_bounded, windowed(query, by_alias)))
    scope = Scope(query.relations, by_alias, query.using)
    return _Joining(Binding(query, streams[0], scope), streams).bound()


def _bounded(stream: Relation) -> Relation:
    """The stream with a window in which one can count; some write a huge one to mean for ever."""
    if stream.window is None or stream.window.size <= LONGEST_WINDOW:
        return stream
    return replace(stream, window=replace(stream.window, size=LONGEST_WINDOW))


class _Joining:
    """One query over several streams being bound."""

    def __init__(self, binding: Binding, streams: tuple[Relation, ...]) -> None:
        self.binding = binding
        self.query = binding.query
        self.streams = streams
        self.relations = [relation.alias for relation in self.query.relations]
        self.own: dict[str, list[Condition]] = {alias: [] for alias in self.relations}
        self.compared: list[Compared] = []
        self.residual: list[Condition] = []
        self.times = self._times()
        conditions = binding.conditions()
        equal = self._sorted_out([part for each in conditions for part in self._halves(each)])
        self.classes = self._classes(equal)

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
                operators=_View(self, stream.alias).operators(),
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
            classes=self.classes,
            compared=tuple(self.compared),
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

    def _sorted_out(self, conditions: Sequence[Condition]) -> list[tuple[Expr, Expr]]:
        """Put each condition where it belongs; the equalities between two relations remain."""
        equal = []
        for condition in conditions:
            if len(condition.reads) == 1:
                self.own[next(iter(condition.reads))].append(condition)
            elif not condition.reads:
                for stream in self.streams:
                    self.own[stream.alias].append(condition)
            elif (sides := self._sides(condition)) is None:
                self.residual.append(condition)
            elif condition.expr.function == "=":  # type: ignore[union-attr]
                equal.append(sides)
            else:
                (left, right), op = sides, condition.expr.function  # type: ignore[union-attr]
                self.compared.append(
                    Compared(_of(left), left, cast(Op, op), _of(right), right, condition.text)
                )
        return equal

    def _halves(self, condition: Condition) -> list[Condition]:
        """`x BETWEEN l AND h` as its two comparisons, if an index can find by them."""
        expr = condition.expr
        if not isinstance(expr, Call) or expr.function != "between" or user_calls_of(expr):
            return [condition]
        x, low, high = expr.args
        both = [Call(">=", (x, low)), Call("<=", (x, high))]
        halves = [Condition(half, self.binding.text(half)) for half in both]
        across = [half for half in halves if len(half.reads) > 1]
        found = across and all(self._sides(half) is not None for half in across)
        return halves if found else [condition]

    def _sides(self, condition: Condition) -> tuple[Expr, Expr] | None:
        """The two keys, if the condition compares one relation's with another's."""
        expr = condition.expr
        if not isinstance(expr, Call) or expr.function not in ("=", *ORDERED):
            return None
        left, right = expr.args
        reads = [relations_of(side) for side in (left, right)]
        if [len(each) for each in reads] != [1, 1] or reads[0] == reads[1]:
            return None
        kinds = [kind_of(self.binding.typed(side)[1]) for side in (left, right)]
        if kinds[0] is not kinds[1] or kinds[0] in (Kind.OTHER, Kind.NULL):
            return None
        if expr.function != "=" and kinds[0] not in _ORDERED_KINDS:
            return None
        return left, right

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
            for key in sorted(group.values(), key=lambda key: self.relations.index(_of(key))):
                first = members.setdefault(_of(key), key)
                if repr(first) != repr(key):
                    both = Call("=", (first, key))
                    self.own[_of(key)].append(Condition(both, self.binding.text(both)))
            dtype = compute_type(self.binding.typed(next(iter(group.values())))[1])
            classes.append(KeyClass(number, dtype, members))
        return tuple(classes)

    def _kind(self, key: Expr) -> Kind:
        return kind_of(self.binding.typed(key)[1])

    def name(self, own: Condition) -> str:
        """What a condition is called: by its text, or by the one function it is."""
        if isinstance(own.expr, UserCall):
            return self.query.functions[own.expr.function].name
        return own.text

    def called(self, own: Condition) -> set[str]:
        """All that `after=` may call a condition, in lower case."""
        return {own.text.lower(), self.name(own).lower(), *user_calls_of(own.expr)}

    def awaited(self, call: str) -> list[str]:
        """What `after=` of a function calls for, as conditions are `called`."""
        named = [*self.binding.conditions(), *chain.from_iterable(self.own.values())]
        known = {text for each in named for text in self.called(each)}
        found: list[str] = []
        for name in self.query.functions[call].after:
            texts = [text.lower() for text in self.binding.normalised(name)]
            if name.lower() in known:
                found.append(name.lower())
            elif texts and known.issuperset(texts):
                found += texts
            else:
                others = (self.name(c) for c in named if call not in user_calls_of(c.expr))
                raise QueryError(
                    f"predicate {call} is to come after {name!r}, which is no condition of this "
                    f"query: {did_you_mean(name, dict.fromkeys(others))}"
                )
        return found

    def check_keys(self, alias: str) -> None:
        """Refuse a join key that would have to wait for more than its relation's own conditions."""
        own = self.own[alias]
        met = {text for each in own for text in self.called(each)}
        classes = [each.members[alias] for each in self.classes if alias in each.members]
        compared = [each.side(alias) for each in self.compared if alias in (each.left, each.right)]
        for key in (*classes, *compared):
            for call in sorted(user_calls_of(key)):
                for name in self.awaited(call):
                    if name not in met:
                        raise UnsupportedError(
                            f"{call} is to come after {name!r}, but {self.binding.text(key)} is a "
                            f"join key, computed right after the conditions on {alias} "
                            f"alone: {', '.join(map(self.name, own)) or 'there are none'}"
                        )

    def _static_filters(self, alias: str) -> tuple[Expr, ...]:
        for own in self.own[alias]:
            self.binding.check_static(own)
        self.check_keys(alias)
        return tuple(own.expr for own in self.own[alias])


class _View:
    """The operators of a tuple that arrives on one stream."""

    def __init__(self, joining: _Joining, source: str) -> None:
        self.joining = joining
        self.binding = joining.binding
        self.source = source
        self.parents = self._parents()

    def operators(self) -> tuple[Operator, ...]:
        own = self.joining.own[self.source]
        made: list[tuple[Operator, str, frozenset[str]]] = []
        for each in own:
            made.append((Filter(0, self.joining.name(each), each.expr), each.text, frozenset()))
        for alias, parent in self.parents.items():
            links = frozenset({self.source, parent})
            made.append((Probe(0, alias, alias, links), alias, links - {self.source}))
        for left, right, text, number in self._meetings():
            meeting = Meeting(0, text, left, right, number)
            made.append((meeting, text, frozenset({left, right})))
        for condition in self.joining.residual:
            name = self.joining.name(condition)
            reads = condition.reads - {self.source}
            made.append((Filter(0, name, condition.expr), condition.text, reads))
        named = numbered([operator for operator, _, _ in made])
        self.joining.check_keys(self.source)
        return self._ordered(named, [text for _, text, _ in made], [r for _, _, r in made])

    def _ordered(
        self, made: list[Operator], texts: list[str], reads: list[frozenset[str]]
    ) -> tuple[Operator, ...]:
        probes = {op.relation: op.index for op in made if isinstance(op, Probe)}
        own = frozenset(range(1, len(self.joining.own[self.source]) + 1))
        direct: dict[int, frozenset[int]] = {}
        for operator, read in zip(made, reads, strict=True):
            first = frozenset() if operator.index in own else own
            direct[operator.index] = first | {probes[alias] for alias in read}
            if isinstance(operator, Filter):
                mine = own if operator.index in own else frozenset(op.index for op in made)
                direct[operator.index] |= self._after(operator, made, texts, mine)
        complete = closed(direct, {op.index: op.name for op in made})
        return tuple(replace(op, after=complete[op.index]) for op in made)

    def _after(
        self, operator: Filter, made: list[Operator], texts: list[str], allowed: frozenset[int]
    ) -> frozenset[int]:
        """The operators that `after=` of the functions it calls means.

        Conditions on one stream run before its tuples are stored, so those that read several may
        come after them, but not the other way round.
        """
        found: set[int] = set()
        filters = [op for op in made if isinstance(op, Filter)]
        elsewhere = {
            name
            for alias, owned in self.joining.own.items()
            if alias != self.source
            for own in owned
            for name in self.joining.called(own)
        }
        for call in sorted(user_calls_of(operator.expr)):
            for name in self.joining.awaited(call):
                matching = {
                    op.index
                    for op in filters
                    if name in self.joining.called(Condition(op.expr, texts[op.index - 1]))
                }
                several = len(relations_of(operator.expr)) > 1
                if not matching and several and name in elsewhere:
                    continue
                if not matching or not matching <= allowed:
                    raise UnsupportedError(
                        f"{operator.name} is to come after {name!r}: conditions on one stream of a "
                        "join run before its tuples are stored, in an order among themselves; "
                        f"those of {self.source} are "
                        f"{', '.join(o.text for o in self.joining.own[self.source]) or 'none'}"
                    )
                found |= matching - {operator.index}
        return frozenset(found)

    def _parents(self) -> dict[str, str]:
        """For each other relation, in an order in which each can be probed, what it hangs on."""
        placed = [self.source]
        parents: dict[str, str] = {}
        waiting = [alias for alias in self.joining.relations if alias != self.source]
        while waiting:
            found = next(
                (
                    (alias, parent)
                    for linked in (self._equal, self._compared, self._weakly)
                    for parent in placed
                    for alias in waiting
                    if linked(alias, parent)
                ),
                None,
            )
            if found is None:
                raise QueryError(
                    f"no condition links {', '.join(waiting)} to {', '.join(sorted(placed))}: add "
                    f"one, such as {placed[0]}.key = {waiting[0]}.key, to WHERE or ON"
                )
            alias, parents[alias] = found[0], found[1]
            placed.append(alias)
            waiting.remove(alias)
        return parents

    def _equal(self, one: str, other: str) -> bool:
        return any(one in c.members and other in c.members for c in self.joining.classes)

    def _compared(self, one: str, other: str) -> bool:
        return any({one, other} == {c.left, c.right} for c in self.joining.compared)

    def _weakly(self, one: str, other: str) -> bool:
        return any({one, other} <= condition.reads for condition in self.joining.residual)

    def _meetings(self) -> Iterable[tuple[str, str, str, int]]:
        """The join conditions that no probe has by itself: (left, right, text, number)."""
        for each in self.joining.classes:
            if self.source in each.members:
                continue
            members = [alias for alias in self.parents if alias in each.members]
            apart = [alias for alias in members if self.parents[alias] not in members]
            for left, right in pairwise(apart):
                both = Call("=", (each.members[left], each.members[right]))
                yield left, right, self.binding.text(both), each.number
        for number, compared in enumerate(self.joining.compared, len(self.joining.classes)):
            left, right = compared.left, compared.right
            linked = self.parents.get(left) == right or self.parents.get(right) == left
            if self.source not in (left, right) and not linked:
                yield left, right, compared.text, number


def _of(key: Expr) -> str:
    """The one relation a key reads."""
    (alias,) = relations_of(key)
    return alias
