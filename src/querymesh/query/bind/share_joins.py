"""Several joins of windowed streams, each bound by itself, to one `SharedJoin` (QM § 5.2).

They are brought to common names first: the second `trades` of one query is the second `trades` of
another. Which have their combinations in common is found in `join_groups.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from querymesh.errors import QueryError, QueryMeshError, SchemaError, UnsupportedError
from querymesh.query.bind.bind import Binding
from querymesh.query.bind.join_groups import AskedJoin, QueryGroup, grouped
from querymesh.query.bind.join_view import JoinConditions, JoinView
from querymesh.query.bind.names import Scope
from querymesh.query.bind.shard_keys import shard_classes
from querymesh.query.bind.share import (
    MOST_QUERIES,
    CommonNames,
    SharedQuery,
    common_functions,
    free_name,
    result_name,
    share,
)
from querymesh.query.bind.static_joins import BoundCondition
from querymesh.query.expr import Expr
from querymesh.query.join import JoinQuery, KeyClass
from querymesh.query.model import BoundQuery, Filter, Output, Probe, Query, Relation, Window
from querymesh.query.predicate.predicate import Predicate
from querymesh.query.shared_join import (
    Bound,
    GroupJoin,
    JoinGroup,
    SharedJoin,
    StoredKeys,
    key_text,
)
from querymesh.query.types import compute_type


def share_joins(queries: Sequence[JoinQuery]) -> SharedJoin:
    """Several joins of windowed streams as one, which stores each stream once."""
    if len(queries) > MOST_QUERIES:
        raise QueryError(f"at most {MOST_QUERIES} queries share one pass, not {len(queries)}")
    sharing = _Sharing()
    for join in queries:
        sharing.add(join)
    return sharing.shared()


class _Sharing:
    """Queries taken in one by one, and what they have in common."""

    def __init__(self) -> None:
        self.queries: list[AskedJoin] = []
        self.sql: list[str] = []
        self.relations: dict[str, Relation] = {}
        self.schemas: dict[str, pa.Schema] = {}
        self.times: dict[str, str] = {}
        self.functions: dict[str, Predicate] = {}
        self._alias_of: dict[tuple[object, ...], str] = {}

    def add(self, join: JoinQuery) -> None:
        """Take in a query."""
        names = CommonNames(self._aliases(join), common_functions(join.query, self.functions))
        self.sql.append(join.query.sql)
        renamed = names.aliases
        windows = {stream.alias: stream.window for stream in join.streams}
        first = next(iter(join.views.values()))
        self.queries.append(
            AskedJoin(
                number=len(self.queries),
                relations={
                    renamed[r.alias]: Relation(r.name, renamed[r.alias], windows.get(r.alias))
                    for r in join.query.relations
                },
                own={
                    renamed[alias]: _renamed(_filters(view, own=True), names)
                    for alias, view in join.views.items()
                },
                classes=[
                    replace(each, members={renamed[a]: names(e) for a, e in each.members.items()})
                    for each in join.classes
                ],
                compared=[
                    replace(
                        each,
                        left=renamed[each.left],
                        left_key=names(each.left_key),
                        right=renamed[each.right],
                        right_key=names(each.right_key),
                    )
                    for each in join.compared
                ],
                residual=list(_renamed(_filters(first, own=False), names)),
                static_filters={
                    renamed[r.alias]: [names(e) for e in join.static_filters.get(r.alias, ())]
                    for r in join.statics
                },
                outputs=tuple(Output(each.name, names(each.expr)) for each in join.outputs),
                output_schema=join.output_schema,
            )
        )

    def _aliases(self, join: JoinQuery) -> dict[str, str]:
        """The common alias of each relation: by its name, the kind of its window and its time."""
        windows = {stream.alias: stream.window for stream in join.streams}
        seen: Counter[tuple[object, ...]] = Counter()
        found = {}
        for relation in join.query.relations:
            window = windows.get(relation.alias)
            kind = None if window is None else window.kind
            what = relation.name.lower(), kind, join.times.get(relation.alias)
            seen[what] += 1
            key = (*what, seen[what])
            if key not in self._alias_of:
                alias = free_name(relation.alias, self.schemas)
                self._alias_of[key] = alias
                self.schemas[alias] = join.schemas[relation.alias]
                if relation.alias in join.times:
                    self.times[alias] = join.times[relation.alias]
            alias = self._alias_of[key]
            known = self.relations.get(alias, Relation(relation.name, alias, window))
            self.relations[alias] = _longer(known, window)
            found[relation.alias] = alias
        return found

    def shared(self) -> SharedJoin:
        """The queries that were added, as one join with a state for each stream."""
        self._check_times()
        self._check_order()
        groups = grouped(self.queries)
        streams = tuple(r for r in self.relations.values() if r.window is not None)
        alone = [self._join(group) for group in groups]
        stored = {stream.alias: _stored(stream.alias, alone) for stream in streams}
        query = self._query(tuple(self.relations.values()), ";\n".join(self.sql))
        made = tuple(
            self._group(group, join, stored) for group, join in zip(groups, alone, strict=True)
        )
        own = {stream.alias: self._own(stream, query) for stream in streams}
        in_all = [s.alias for s in streams if all(s.alias in join.aliases for join in alone)]
        shared = SharedJoin(
            query=query,
            streams=streams,
            statics=tuple(r for r in self.relations.values() if r.window is None),
            schemas=self.schemas,
            times=self.times,
            classes=shard_classes([s.alias for s in streams], alone),
            compared=(),
            static_filters={},
            views={},
            groups=made,
            parts=tuple(self._part(each, query) for each in self.queries),
            own=own,
            stored=stored,
            masked=frozenset(),
            in_all=tuple(in_all),
            queries_column=free_name(
                "__queries", {n for s in self.schemas.values() for n in s.names}
            ),
        )
        views = {label: made[g].join.views[alias] for label, (g, alias) in shared.labels.items()}
        masked = frozenset(alias for alias in own if _is_masked(shared, alias))
        return replace(shared, views=views, masked=masked)

    def _check_times(self) -> None:
        zoned = {
            compute_type(self.schemas[alias].field(time).type).tz is not None
            for alias, time in self.times.items()
        }
        if len(zoned) > 1:
            raise SchemaError(
                "some streams of these queries have their time as TIMESTAMP and some as "
                "TIMESTAMP_NTZ, which do not compare: cast them to one of the two, or run the "
                "queries apart"
            )

    def _check_order(self) -> None:
        """Where rows are counted, what came at one time and place goes by the order of FROM."""
        order = list(self.relations)
        for query in self.queries:
            streams = [r for r in query.relations.values() if r.window is not None]
            counts = any(r.window.kind == "rows" for r in streams if r.window)
            numbers = [order.index(r.alias) for r in streams]
            if counts and numbers != sorted(numbers):
                names = ", ".join(self.relations[order[n]].name for n in sorted(numbers))
                raise UnsupportedError(
                    f"{result_name(query.number)} counts rows, and has its streams in another "
                    "order than the queries before it, by which tuples of the same time count: "
                    f"write FROM {names}, or run it by itself"
                )

    def _query(self, relations: tuple[Relation, ...], sql: str) -> Query:
        time = next(iter(self.times.values()), None)
        return Query(sql, relations, (), None, time, self.functions)

    def _join(self, group: QueryGroup) -> JoinQuery:
        """The join that a group has in common, with what its queries read as its outputs."""
        longest = dict(group.first.relations)
        for member in group.members:
            for alias, relation in member.relations.items():
                longest[alias] = _longer(longest[alias], relation.window)
        relations = tuple(longest.values())
        query = self._query(relations, ";\n".join(self.sql[m.number] for m in group.members))
        # Functions wait for nothing here: a join's keys are computed for who asks for them.
        ready = {name: replace(each, after=()) for name, each in self.functions.items()}
        scope = Scope(relations, {r.alias: self.schemas[r.alias] for r in relations})
        streams = tuple(r for r in relations if r.window is not None)
        found = JoinConditions(
            Binding(replace(query, functions=ready), streams[0], scope), [*longest]
        )
        found.classes = tuple(
            replace(each, number=number) for number, each in enumerate(group.first.classes)
        )
        found.compared = group.compared()
        found.residual = [BoundCondition(each.expr, each.name) for each in group.residual()]
        static_filters = group.static_filters()
        outputs = tuple(Output(f"{c.relation}.{c.name}", c) for c in group.columns_read())
        fields = [pa.field(o.name, scope.type_of(o.expr)) for o in outputs]  # type: ignore[arg-type]
        views = {}
        for stream in streams:
            try:
                operators = JoinView(found, stream.alias).operators()
            except QueryMeshError as problem:
                name = ", ".join(result_name(m.number) for m in group.members)
                raise UnsupportedError(
                    f"{name} cannot share a pass, where functions are called at the end and only "
                    f"on a query's own rows: {problem}; or run {name} by itself"
                ) from problem
            views[stream.alias] = BoundQuery(
                query, stream, scope.schemas, operators, static_filters, outputs, pa.schema(fields)
            )
        return JoinQuery(
            query=query,
            streams=streams,
            statics=tuple(r for r in relations if r.window is None),
            schemas=scope.schemas,
            times={s.alias: self.times[s.alias] for s in streams if s.alias in self.times},
            classes=found.classes,
            compared=tuple(found.compared),
            static_filters=static_filters,
            views=views,
        )

    def _group(
        self, group: QueryGroup, alone: JoinQuery, stored: Mapping[str, StoredKeys]
    ) -> JoinGroup:
        members = sorted(group.members, key=lambda each: each.number)
        rest = {member.number: group.rest(member) for member in members}
        together = self._shared_filters(alone.streams[0], alone.query, rest)
        bounds = [
            Bound(member.number, alias, relation.window.size)
            for member in members
            for alias, relation in member.relations.items()
            if relation.window is not None
            and (longest := alone.window_of(alias)) is not None
            and relation.window.size < longest.size
        ]
        kept = {each.alias: stored[each.alias] for each in alone.streams}
        fields = {name: getattr(alone, name) for name in JoinQuery.__dataclass_fields__}
        return JoinGroup(
            queries=tuple(member.number for member in members),
            join=GroupJoin(**fields, stored=kept),
            alone=alone,
            bounds=tuple(bounds),
            rest=tuple(zip(_filters_of(together), together.serves, strict=True)),
        )

    def _own(self, stream: Relation, query: Query) -> SharedQuery:
        """The conditions on one stream alone, those of all queries."""
        own = {each.number: each.own.get(stream.alias, ()) for each in self.queries}
        return self._shared_filters(stream, query, own)

    def _shared_filters(
        self, source: Relation, query: Query, by_query: Mapping[int, tuple[Filter, ...]]
    ) -> SharedQuery:
        """Conditions of queries, each once, with the queries it is of."""
        return share(
            [
                BoundQuery(
                    replace(query, sql=sql), source, self.schemas, by_query.get(number, ()),
                    {}, (), pa.schema([]),
                )
                for number, sql in enumerate(self.sql)
            ]
        )  # fmt: skip

    def _part(self, asked: AskedJoin, query: Query) -> BoundQuery:
        source = next(r for r in asked.relations.values() if r.window is not None)
        return BoundQuery(
            replace(query, sql=self.sql[asked.number]), source, self.schemas, (), {},
            asked.outputs, asked.output_schema,
        )  # fmt: skip


def _longer(relation: Relation, window: Window | None) -> Relation:
    """The relation with the longer of two windows of one kind."""
    if relation.window is None or window is None:
        return relation
    return replace(relation, window=max(relation.window, window, key=lambda each: each.size))


def _filters(view: BoundQuery, own: bool) -> list[Filter]:
    """The conditions of a view: those on its stream alone, or those that read what is joined."""
    probes = {op.index for op in view.operators if isinstance(op, Probe)}
    filters = [op for op in view.operators if isinstance(op, Filter)]
    chosen = [op for op in filters if bool(op.after & probes) != own]
    indices = {op.index for op in chosen}
    return [replace(op, after=op.after & indices) for op in chosen]


def _renamed(filters: Iterable[Filter], names: CommonNames) -> tuple[Filter, ...]:
    return tuple(replace(each, expr=names(each.expr)) for each in filters)


def _filters_of(shared: SharedQuery) -> list[Filter]:
    return [op for op in shared.operators if isinstance(op, Filter)]


def _stored(alias: str, joins: Sequence[JoinQuery]) -> StoredKeys:
    """The codes that a stream's state has for all groups."""
    keys: dict[str, KeyClass] = {}
    orders: dict[str, Expr] = {}
    for join in joins:
        if alias not in join.aliases:
            continue
        for each in join.keys_of(alias):
            text = key_text(each.members[alias], each.dtype)
            one = KeyClass(len(keys) + 1000, each.dtype, {alias: each.members[alias]})
            keys.setdefault(text, one)
        orders |= {
            repr(order): order for order in join.orders_of(alias) if repr(order) not in orders
        }
    return StoredKeys(tuple(keys.values()), tuple(orders.values()))


def _is_masked(shared: SharedJoin, alias: str) -> bool:
    """Whether a stored tuple may be for some of the queries only that read its stream."""
    readers = shared.readers(alias)
    masks = [served & readers for served in shared.own[alias].serves]
    masks += [shared.users(alias, key) for key in shared.keys_of(alias)]
    masks += [shared.comparers(alias, order) for order in shared.orders_of(alias)]
    return any(mask != readers for mask in masks)
