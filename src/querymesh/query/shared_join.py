"""Several joins of the same windowed streams as one pass (QM § 5.2, multi-query execution).

A stream has one state, whatever the queries ask of it: with the codes of every key that any of them
joins by, for as long as the longest window. Queries whose joins are alike are a *group*, and have
their combinations in common; what one of them asks beyond that is checked at the end::

    q1   a.k = b.k                     ┐ group 1: a.k = b.k        bits q1 | q2
    q2   a.k = b.k AND a.x + b.x > 3   ┘          then a.x + b.x > 3 for q2 alone
    q3   a.m = b.m                       group 2: a.m = b.m        bits q3

    state of a    k  m  x  ts   queries        a bit for each query whose conditions on a alone
                  7  1  4  …      101          hold and whose keys are not NULL

A combination is a result of the queries whose bits all its members have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from querymesh.query.bind.share import QUERY, SharedQuery, queries_in, result_name
from querymesh.query.expr import Column, Expr, columns_of
from querymesh.query.join import JoinQuery, KeyClass
from querymesh.query.model import BoundQuery, Filter, Output


@dataclass(frozen=True)
class StoredKeys:
    """The codes that the state of a stream has: `keys` by which any query joins it, each as a class
    of its own, and `orders` by which any compares it."""

    keys: tuple[KeyClass, ...]
    orders: tuple[Expr, ...]

    def key_of(self, alias: str, each: KeyClass) -> KeyClass:
        """The stored key that is this stream's member of a class."""
        wanted = key_text(each.members[alias], each.dtype)
        return next(k for k in self.keys if key_text(k.members[alias], k.dtype) == wanted)


def key_text(key: Expr, dtype: pa.DataType) -> str:
    """What tells a key apart from others; as text, because 1 and TRUE are equal in Python."""
    return f"{key!r} AS {dtype}"


@dataclass(frozen=True)
class GroupJoin(JoinQuery):
    """The join that the queries of a group have in common, on states that have more codes than it
    asks by: a key of others is a class of one stream, which links nothing."""

    stored: Mapping[str, StoredKeys]

    def keys_of(self, alias: str) -> tuple[KeyClass, ...]:
        """The classes at the positions of the stored keys."""
        if alias not in self.stored:
            return super().keys_of(alias)
        mine = {
            self.stored[alias].key_of(alias, each).number: each
            for each in self.classes
            if alias in each.members
        }
        return tuple(mine.get(key.number, key) for key in self.stored[alias].keys)

    def orders_of(self, alias: str) -> tuple[Expr, ...]:
        """The stored orders of a stream."""
        return self.stored[alias].orders if alias in self.stored else super().orders_of(alias)

    def value_column(self, each: KeyClass, alias: str) -> str:
        """The column is named by the number of the stored key, in every group the same."""
        stored = self.stored.get(alias)
        return super().value_column(stored.key_of(alias, each) if stored else each, alias)


@dataclass(frozen=True)
class Bound:
    """How far back a query sees on a stream, where its group sees further."""

    query: int
    alias: str
    range_us: int


@dataclass(frozen=True)
class JoinGroup:
    """Queries with the same join: `queries` by number, `join` on the states of the pass.

    `alone` is the same join without the codes of others, to learn from. `bounds` are the windows of
    queries that are shorter than the group's. `rest` are the conditions that only some of the
    queries have, each with a mask of those.
    """

    queries: tuple[int, ...]
    join: GroupJoin
    alone: JoinQuery
    bounds: tuple[Bound, ...]
    rest: tuple[tuple[Filter, int], ...]

    @property
    def mask(self) -> int:
        """The bits of its queries."""
        return sum(1 << number for number in self.queries)

    @property
    def conditions(self) -> list[str]:
        """What it joins by, for people."""
        first = next(iter(self.alone.views.values()))
        found = [each.name for each in self.alone.classes]
        found += [each.text for each in self.alone.compared]
        return found + [op.name for op in first.operators if isinstance(op, Filter)]

    @property
    def name(self) -> str:
        """Its queries for people: `q1, q3`."""
        return ", ".join(map(result_name, self.queries))


@dataclass(frozen=True)
class SharedJoin(JoinQuery):
    """Joins of windowed streams that share one pass.

    As a `JoinQuery` it is what is sent and stored: all streams with their longest windows, the keys
    by which all queries can be spread over shards as `classes`, and a view for each group and
    stream, by `label`. `parts` are the outputs of each query; `own` the conditions on one stream
    alone, by its alias; `in_all` the streams that all queries read. `queries_column` has the mask
    of a stored tuple, for `masked` streams.
    """

    groups: tuple[JoinGroup, ...]
    parts: tuple[BoundQuery, ...]
    own: Mapping[str, SharedQuery]
    stored: Mapping[str, StoredKeys]
    masked: frozenset[str]
    in_all: tuple[str, ...]
    queries_column: str

    @property
    def outputs(self) -> tuple[Output, ...]:
        """None of its own: those of the parts."""
        return ()

    @property
    def output_schema(self) -> pa.Schema:
        """The number of the query, and a struct for each."""
        fields = [pa.field(QUERY, pa.int32())]
        fields += [
            pa.field(result_name(number), pa.struct(list(part.output_schema)))
            for number, part in enumerate(self.parts)
        ]
        return pa.schema(fields)

    def label(self, group: int, alias: str) -> str:
        """The name of a group's view of a stream: the stream's own where there is one group."""
        return alias if len(self.groups) == 1 else f"{alias} [{self.groups[group].name}]"

    @cached_property
    def labels(self) -> dict[str, tuple[int, str]]:
        """By label, the group and the stream of a view."""
        return {
            self.label(number, alias): (number, alias)
            for number, group in enumerate(self.groups)
            for alias in group.join.aliases
        }

    @property
    def spread(self) -> tuple[str, ...]:
        """The streams that are in the results of all queries."""
        return self.in_all

    def of_view(self, label: str) -> tuple[JoinQuery, str]:
        """The join of the group that a view is of, and its stream."""
        group, alias = self.labels[label]
        return self.groups[group].join, alias

    def readers(self, alias: str) -> int:
        """The mask of the queries that read a stream."""
        masks = (group.mask for group in self.groups if alias in group.join.aliases)
        return sum(masks)

    def users(self, alias: str, key: KeyClass) -> int:
        """The mask of the queries that join a stream by one of its stored keys."""
        return sum(
            group.mask
            for group in self.groups
            if alias in group.join.aliases
            and any(
                self.stored[alias].key_of(alias, each).number == key.number
                for each in group.alone.keys_of(alias)
            )
        )

    def comparers(self, alias: str, order: Expr) -> int:
        """The mask of the queries that compare a stream by one of its stored orders."""
        return sum(
            group.mask
            for group in self.groups
            if alias in group.join.aliases
            and repr(order) in map(repr, group.alone.orders_of(alias))
        )

    def keys_of(self, alias: str) -> tuple[KeyClass, ...]:
        """The classes of equal columns whose codes the stream's state holds, for any query."""
        return self.stored[alias].keys if alias in self.stored else ()

    def orders_of(self, alias: str) -> tuple[Expr, ...]:
        """The expressions compared by order whose codes the stream's state holds, for any query."""
        return self.stored[alias].orders if alias in self.stored else ()

    @property
    def codes_may_be_of_null(self) -> bool:
        """Whether a stored tuple may have NULL in a key, which only some of the queries join by."""
        return len(self.groups) > 1

    @cached_property
    def _kept(self) -> dict[str, list[str]]:
        kept = {}
        for alias, schema in self.schemas.items():
            joins = [group.join for group in self.groups if alias in group.join.schemas]
            read = {name for join in joins for name in join.columns_kept(alias)}
            kept[alias] = [name for name in schema.names if name in read]
            if alias in self.masked:
                kept[alias].append(self.queries_column)
        return kept

    def columns_sent(self, alias: str) -> list[str]:
        """The columns of a stream that anything reads."""
        exprs = [op.expr for op in self.own[alias].operators if isinstance(op, Filter)]
        exprs += [each.members[alias] for each in self.keys_of(alias)]
        exprs += self.orders_of(alias)
        read = {column for expr in exprs for column in columns_of(expr)}
        kept = set(self.columns_kept(alias))
        return [n for n in self.schemas[alias].names if n in kept or Column(alias, n) in read]

    @property
    def sharing(self) -> list[str]:
        """What is shared, a line each."""
        lines = []
        for alias in self.aliases:
            readers = ", ".join(map(result_name, queries_in(self.readers(alias))))
            lines.append(f"{alias}: one state for {readers}")
        for group in self.groups:
            conditions = " AND ".join(group.conditions)
            how = "by itself" if len(group.queries) == 1 else "in one join"
            lines.append(f"{group.name} {how}: {conditions}")
            for operator, _ in group.rest:
                lines.append(f"  then {operator.name}")
            for bound in group.bounds:
                window = f"[RANGE {bound.range_us / 1e6:g} SECONDS]"
                lines.append(f"  then {bound.alias} {window} [{result_name(bound.query)}]")
        return lines
