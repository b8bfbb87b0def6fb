"""The operators of a join for tuples of one stream: filters, probes of the others, and the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise

from querymesh.errors import QueryError, UnsupportedError, did_you_mean
from querymesh.query.bind.bind import Binding, numbered
from querymesh.query.bind.precedence import all_predecessors
from querymesh.query.bind.static_joins import BoundCondition, relations_of
from querymesh.query.expr import Call, UserCall, user_calls_of
from querymesh.query.join import JoinComparison, KeyClass
from querymesh.query.model import Filter, Meeting, Operator, Probe


@dataclass
class JoinConditions:
    """The conditions of a join by what they read, and what `after=` may call them.

    `own` are those on one relation, by its alias; `classes` the equalities between relations, and
    `compared` their comparisons; `residual` is everything else that reads several relations.
    """

    binding: Binding
    relations: list[str]
    own: dict[str, list[BoundCondition]] = field(init=False)
    classes: tuple[KeyClass, ...] = ()
    compared: list[JoinComparison] = field(default_factory=list)
    residual: list[BoundCondition] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.own = {alias: [] for alias in self.relations}

    def name(self, own: BoundCondition) -> str:
        """What a condition is called: by its text, or by the one function it is."""
        if isinstance(own.expr, UserCall):
            return self.binding.query.functions[own.expr.function].name
        return own.text

    def called(self, own: BoundCondition) -> set[str]:
        """All that `after=` may call a condition, in lower case."""
        return {own.text.lower(), self.name(own).lower(), *user_calls_of(own.expr)}

    def awaited(self, call: str) -> list[str]:
        """The conditions that `after=` of a function names, each by a name of `called`."""
        named = [*self.binding.conditions(), *chain.from_iterable(self.own.values())]
        known = {text for each in named for text in self.called(each)}
        found: list[str] = []
        for name in self.binding.query.functions[call].after:
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


class JoinView:
    """The operators of a tuple that arrives on one stream."""

    def __init__(self, found: JoinConditions, source: str) -> None:
        self.found = found
        self.binding = found.binding
        self.source = source
        self.parents = self._parents()

    def operators(self) -> tuple[Operator, ...]:
        """Filters of the stream's own, probes, meetings and the rest, each with what precedes."""
        own = self.found.own[self.source]
        made: list[tuple[Operator, str, frozenset[str]]] = []
        for each in own:
            made.append((Filter(0, self.found.name(each), each.expr), each.text, frozenset()))
        for alias, parent in self.parents.items():
            links = frozenset({self.source, parent})
            made.append((Probe(0, alias, alias, links), alias, links - {self.source}))
        for left, right, text, number in self._meetings():
            meeting = Meeting(0, text, left, right, number)
            made.append((meeting, text, frozenset({left, right})))
        for condition in self.found.residual:
            name = self.found.name(condition)
            reads = condition.reads - {self.source}
            made.append((Filter(0, name, condition.expr), condition.text, reads))
        named = numbered([operator for operator, _, _ in made])
        self.found.check_keys(self.source)
        return self._ordered(named, [text for _, text, _ in made], [r for _, _, r in made])

    def _ordered(
        self, made: list[Operator], texts: list[str], reads: list[frozenset[str]]
    ) -> tuple[Operator, ...]:
        probes = {op.relation: op.index for op in made if isinstance(op, Probe)}
        own = frozenset(range(1, len(self.found.own[self.source]) + 1))
        direct: dict[int, frozenset[int]] = {}
        for operator, read in zip(made, reads, strict=True):
            first = frozenset() if operator.index in own else own
            direct[operator.index] = first | {probes[alias] for alias in read}
            if isinstance(operator, Filter):
                mine = own if operator.index in own else frozenset(op.index for op in made)
                direct[operator.index] |= self._after(operator, made, texts, mine)
        complete = all_predecessors(direct, {op.index: op.name for op in made})
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
            for alias, owned in self.found.own.items()
            if alias != self.source
            for own in owned
            for name in self.found.called(own)
        }
        for call in sorted(user_calls_of(operator.expr)):
            for name in self.found.awaited(call):
                matching = {
                    op.index
                    for op in filters
                    if name in self.found.called(BoundCondition(op.expr, texts[op.index - 1]))
                }
                several = len(relations_of(operator.expr)) > 1
                if not matching and several and name in elsewhere:
                    continue
                if not matching or not matching <= allowed:
                    raise UnsupportedError(
                        f"{operator.name} is to come after {name!r}: conditions on one stream of a "
                        "join run before its tuples are stored, in an order among themselves; "
                        f"those of {self.source} are "
                        f"{', '.join(o.text for o in self.found.own[self.source]) or 'none'}"
                    )
                found |= matching - {operator.index}
        return frozenset(found)

    def _parents(self) -> dict[str, str]:
        """For each other relation, in an order in which each can be probed, what it hangs on."""
        placed = [self.source]
        parents: dict[str, str] = {}
        waiting = [alias for alias in self.found.relations if alias != self.source]
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
        return any(one in c.members and other in c.members for c in self.found.classes)

    def _compared(self, one: str, other: str) -> bool:
        return any({one, other} == {c.left, c.right} for c in self.found.compared)

    def _weakly(self, one: str, other: str) -> bool:
        return any({one, other} <= condition.reads for condition in self.found.residual)

    def _meetings(self) -> Iterable[tuple[str, str, str, int]]:
        """The join conditions that no probe has by itself: (left, right, text, number)."""
        for each in self.found.classes:
            if self.source in each.members:
                continue
            members = [alias for alias in self.parents if alias in each.members]
            apart = [alias for alias in members if self.parents[alias] not in members]
            for left, right in pairwise(apart):
                both = Call("=", (each.members[left], each.members[right]))
                yield left, right, self.binding.text(both), each.number
        for number, compared in enumerate(self.found.compared, len(self.found.classes)):
            left, right = compared.left, compared.right
            linked = self.parents.get(left) == right or self.parents.get(right) == left
            if self.source not in (left, right) and not linked:
                yield left, right, compared.text, number
