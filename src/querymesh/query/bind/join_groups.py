"""Which of several joins have their combinations in common: queries by groups.

A query joins a group where it asks for all equalities that the group joins by: the group's
combinations then have all of its own, and finding them costs the group no probe more. If it asks
for further equalities, its windows must not be longer than the group's, which would find more than
anyone asks for. Comparisons
and other conditions are the group's where all its queries have them; the rest is checked at the
end, for who asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from querymesh.query.expr import Call, Column, Expr, columns_of, user_calls_of
from querymesh.query.join import JoinComparison, KeyClass
from querymesh.query.model import Filter, Output, Relation
from querymesh.query.render import to_text


@dataclass
class AskedJoin:
    """One query in the common names, its conditions by what they read."""

    number: int
    relations: dict[str, Relation]
    own: dict[str, tuple[Filter, ...]]
    classes: list[KeyClass]
    compared: list[JoinComparison]
    residual: list[Filter]
    static_filters: dict[str, list[Expr]]
    outputs: tuple[Output, ...]
    output_schema: pa.Schema

    def has(self, each: KeyClass) -> bool:
        """Whether it asks for all equalities of a class."""
        return any(_within(each, mine) for mine in self.classes)


@dataclass
class QueryGroup:
    """Queries whose combinations are made once; the first asks for the fewest equalities."""

    members: list[AskedJoin] = field(default_factory=list)

    @property
    def first(self) -> AskedJoin:
        """The query with the fewest equalities."""
        return self.members[0]

    def takes(self, query: AskedJoin) -> bool:
        """Whether a query can have its results of the group's combinations, at little more than
        the group has to do anyway."""
        if not _same_relations(self.first, query) or not all(map(query.has, self.first.classes)):
            return False
        if not all(map(self.first.has, query.classes)) and not self._reaches_as_far_as(query):
            return False
        if not self._is_linked(by_comparisons=True):
            return _texts(self.first.residual) <= _texts(query.residual)
        if not self._is_linked(by_comparisons=False):
            return _compared_texts(self.first) <= _compared_texts(query)
        return True

    def _reaches_as_far_as(self, query: AskedJoin) -> bool:
        """Whether the group's windows are as long: who asks for more equalities must not make those
        who ask for fewer find what lies further back."""
        return all(
            relation.window is None
            or relation.window.size <= max(_size(each, alias) for each in self.members)
            for alias, relation in query.relations.items()
        )

    def _is_linked(self, by_comparisons: bool) -> bool:
        links = [set(each.members) for each in self.first.classes]
        if by_comparisons:
            links += [{each.left, each.right} for each in self.first.compared]
        reached = {next(iter(self.first.relations))}
        while more := [link for link in links if link & reached and not link <= reached]:
            reached.update(*more)
        return reached == set(self.first.relations)

    def compared(self) -> list[JoinComparison]:
        """The comparisons that all members ask for."""
        common = set.intersection(*map(_compared_texts, self.members))
        return [each for each in self.first.compared if _compared_text(each) in common]

    def residual(self) -> list[Filter]:
        """Other conditions that all ask for; a function is called for those that ask, and only on
        their rows."""
        common = set.intersection(*(_texts(each.residual) for each in self.members))
        return [
            each
            for each in self.first.residual
            if repr(each.expr) in common and not user_calls_of(each.expr)
        ]

    def static_filters(self) -> dict[str, tuple[Expr, ...]]:
        """The conditions on static tables that all ask for."""
        found = {}
        for alias, filters in self.first.static_filters.items():
            common = set.intersection(
                *({repr(each) for each in query.static_filters[alias]} for query in self.members)
            )
            found[alias] = tuple(each for each in filters if repr(each) in common)
        return found

    def rest(self, query: AskedJoin) -> tuple[Filter, ...]:
        """What a member asks beyond what the group joins by."""
        exprs = [each for c in query.classes for each in _left_of(c, self.first.classes)]
        compared = {_compared_text(each) for each in self.compared()}
        exprs += [
            Call(each.op, (each.left_key, each.right_key))
            for each in query.compared
            if _compared_text(each) not in compared
        ]
        for alias, filters in self.static_filters().items():
            done = set(map(repr, filters))
            exprs += [each for each in query.static_filters[alias] if repr(each) not in done]
        made = [Filter(-k, to_text(expr, qualified=True), expr) for k, expr in enumerate(exprs)]
        done = _texts(self.residual())
        left = [each for each in query.residual if repr(each.expr) not in done]
        kept = {each.index for each in left}
        return (*made, *(replace(each, after=each.after & kept) for each in left))

    def columns_read(self) -> list[Column]:
        """What the outputs and the further conditions of its queries read."""
        read: dict[Column, None] = {}
        for member in self.members:
            exprs = [output.expr for output in member.outputs]
            exprs += [condition.expr for condition in self.rest(member)]
            for expr in exprs:
                read |= dict.fromkeys(sorted(columns_of(expr), key=repr))
        return [*read]


def grouped(queries: Iterable[AskedJoin]) -> list[QueryGroup]:
    """The queries by group, in the order in which they were given."""
    groups: list[QueryGroup] = []
    for query in sorted(queries, key=lambda each: len(each.classes)):
        group = next((each for each in groups if each.takes(query)), None)
        if group is None:
            groups.append(group := QueryGroup())
        group.members.append(query)
    return sorted(groups, key=lambda group: min(each.number for each in group.members))


def _size(query: AskedJoin, alias: str) -> int:
    window = query.relations[alias].window
    return 0 if window is None else window.size


def _texts(filters: Iterable[Filter]) -> set[str]:
    return {repr(each.expr) for each in filters}


def _compared_text(each: JoinComparison) -> str:
    """A comparison, written from either side the same."""
    sides = sorted([(each.left, repr(each.left_key)), (each.right, repr(each.right_key))])
    return f"{sides} {each.op_for(sides[0][0])}"


def _compared_texts(query: AskedJoin) -> set[str]:
    return set(map(_compared_text, query.compared))


def _same_relations(one: AskedJoin, other: AskedJoin) -> bool:
    """Whether two queries join the same, and count rows over the same."""

    def read(query: AskedJoin) -> dict[str, int | None]:
        return {
            alias: each.window.size if each.window and each.window.kind == "rows" else None
            for alias, each in query.relations.items()
        }

    return read(one) == read(other)


def _within(small: KeyClass, large: KeyClass) -> bool:
    """Whether all equalities of a class are among another's."""
    return all(
        alias in large.members and repr(large.members[alias]) == repr(key)
        for alias, key in small.members.items()
    )


def _left_of(each: KeyClass, joined: Sequence[KeyClass]) -> list[Expr]:
    """The equalities of a class that those which are joined by do not have."""
    parts: dict[object, Expr] = {}
    for alias, key in each.members.items():
        inside = (c.number for c in joined if repr(c.members.get(alias)) == repr(key))
        parts.setdefault(next(inside, alias), key)
    first, *others = parts.values()
    return [Call("=", (first, other)) for other in others]
