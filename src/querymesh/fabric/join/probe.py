"""Probing a join state (QM § 4.1, AMRI § 3): the second half of a join, from whatever is joined.

A ruster comes with some relations joined. Of the attributes of the probed state it specifies those
whose class any joined relation has a value of: that is the access pattern, and it depends on the
route. In a - b - c - d, each pair with an attribute of its own::

    from a, route b > d > c      probe c by  a-c, b-c, d-c        pattern (0, 1, 2)
    from a, route c > b > d      probe c by  a-c                  pattern (0,)

All conditions between the probed relation and those joined hold of what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from time import thread_time
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Ints
from querymesh.fabric.core.operators import MOST_ROWS
from querymesh.fabric.core.ruster import Ruster, in_parts
from querymesh.fabric.join.arrivals import microseconds
from querymesh.fabric.join.join_ruster import FOREVER, JoinRuster, kept, moved
from querymesh.index.store.codes import equality_codes
from querymesh.index.store.request import OPS
from querymesh.index.store.stem import OrderComparison, Request, Stem
from querymesh.query.join import JoinComparison, JoinQuery, KeyClass
from querymesh.query.model import Meeting, Probe

Stems = Mapping[str, Stem]


def is_exact(dtype: pa.DataType) -> bool:
    """Whether equal codes of this type mean equal values."""
    return equality_codes(pa.array([], dtype)).exact


class JoinedKeys:
    """The codes and values of what a ruster has joined, by class and comparison."""

    def __init__(self, join: JoinQuery, source: str, stems: Stems) -> None:
        self.join = join
        self.source = source
        self.stems = stems
        self._key = {
            (alias, each.number): position
            for alias in join.schemas
            for position, each in enumerate(join.keys_of(alias))
        }
        self._order = {
            (alias, each): join.order_of(alias, each)
            for alias in join.schemas
            for each in join.comparisons_of(alias)
        }
        self.exact = {each.number: is_exact(each.dtype) for each in join.classes}

    def joined(self, ruster: Ruster) -> frozenset[str]:
        """The relations a ruster has joined, its source included."""
        return frozenset({self.source, *ruster.matches})

    def holder(self, each: KeyClass, joined: Set[str]) -> str | None:
        """A joined relation that has a value of the class; the source, if it has."""
        if self.source in each.members and self.source in joined:
            return self.source
        return next((alias for alias in each.members if alias in joined), None)

    def codes(self, ruster: JoinRuster, alias: str, each: KeyClass) -> Ints:
        """The equality codes of a joined relation's key."""
        position = self._key[alias, each.number]
        if alias == self.source:
            return ruster.of.keys[position][ruster.rows]
        return self.stems[alias].key(position, ruster.matches[alias])

    def values(self, ruster: JoinRuster, alias: str, each: KeyClass) -> pa.Array:
        """The values of a joined relation's key."""
        if alias == self.source:
            found = ruster.of.values[each.number].take(pa.array(ruster.rows))
        else:
            found = self.stems[alias].take(
                self.join.value_column(each, alias), ruster.matches[alias]
            )
        return found if found.type == each.dtype else found.cast(each.dtype)

    def equal(self, ruster: JoinRuster, each: KeyClass, one: str, other: str) -> Bools:
        """Whether two joined relations have the same value of a key."""

        def same(part: Ruster) -> Bools:
            assert isinstance(part, JoinRuster)
            verdict = pc.equal(self.values(part, one, each), self.values(part, other, each))
            return np.asarray(verdict, dtype=bool)

        return np.concatenate(list(in_parts(same, ruster)))

    def orders(self, ruster: JoinRuster, alias: str, position: int) -> Ints:
        """The order codes of a joined relation's side of a comparison."""
        if alias == self.source:
            return ruster.of.orders[position][ruster.rows]
        return self.stems[alias].order(position, ruster.matches[alias])

    def position_of_order(self, alias: str, each: JoinComparison) -> int:
        """Where a relation's side of a comparison stands among its order codes."""
        return self._order[alias, each]


@dataclass
class ProbeModule:
    """Joins each row to its matches in another relation's state.

    `alone` restricts it to the conditions of `Probe.links`, for profiling: what it does is then the
    same whatever else is joined.
    """

    operator: Probe
    keys: JoinedKeys
    alone: bool = False
    errors: int = 0
    comparisons: int = 0
    clock: ClassVar[Callable[[], float]] = staticmethod(thread_time)
    """What profiling times it by: it waits for nothing, and a busy machine makes it no dearer."""

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """One ruster in; more than one out where there are many matches."""
        assert isinstance(ruster, JoinRuster)
        relation = self.operator.relation
        stem = self.keys.stems[relation]
        joined = self.keys.joined(ruster)
        if self.alone:
            joined &= self.operator.links
        by = [
            (position, each, holder)
            for position, each in enumerate(self.keys.join.keys_of(relation))
            if (holder := self.keys.holder(each, joined)) is not None
        ]
        request = Request(
            pattern=tuple(position for position, _, _ in by),
            codes=tuple(self.keys.codes(ruster, holder, each) for _, each, holder in by),
            comparisons=self._comparisons(ruster, joined),
            **self._bounds(ruster),
        )
        unsure = [(each, holder) for _, each, holder in by if not self.keys.exact[each.number]]
        looked = stem.comparisons
        for found in stem.probe(request, MOST_ROWS):
            self.comparisons += stem.comparisons - looked
            yield self._checked(ruster.pick(found.positions), found.rows, unsure)
            looked = stem.comparisons
        self.comparisons += stem.comparisons - looked

    def _comparisons(self, ruster: JoinRuster, joined: Set[str]) -> tuple[OrderComparison, ...]:
        relation = self.operator.relation
        made = []
        for each in self.keys.join.comparisons_of(relation):
            other = each.other(relation)
            if other in joined:
                theirs = self.keys.position_of_order(other, each)
                values = self.keys.orders(ruster, other, theirs)
                own = self.keys.position_of_order(relation, each)
                made.append(OrderComparison(each.op_for(relation), own, values))
        return tuple(made)

    def _bounds(self, ruster: JoinRuster) -> dict[str, Ints]:
        """What the probed stream's window allows, for each row."""
        relation = self.operator.relation
        window = self.keys.join.window_of(relation)
        if window is None:
            everything = np.full(len(ruster), FOREVER)
            return {"low": -everything, "high": everything, "before": everything}
        before = ruster.of.serials[ruster.rows]
        if window.kind == "rows":
            low = ruster.of.before[relation][ruster.rows] - window.size
            return {"low": low, "high": np.full(len(ruster), FOREVER), "before": before}
        return {"low": moved(ruster.newest, -window.size), "high": ruster.until, "before": before}

    def _checked(
        self, picked: JoinRuster, rows: Ints, unsure: list[tuple[KeyClass, str]]
    ) -> JoinRuster:
        """The matches joined, those that only shared a hash left out, and their times."""
        keys, relation = self.keys, self.operator.relation
        stem = keys.stems[relation]
        out = replace(picked, matches={**picked.matches, relation: rows})
        for each, holder in unsure:
            out = kept(out, keys.equal(out, each, holder, relation))
        window = keys.join.window_of(relation)
        if window is None or relation not in keys.join.times:
            return out
        rows = out.matches[relation]
        if window.kind == "range":
            times = stem.times(rows)
            until = np.minimum(out.until, moved(times, window.size))
            return replace(out, newest=np.maximum(out.newest, times), until=until)
        times = microseconds(stem.take(keys.join.times[relation], rows))
        out = replace(out, newest=np.maximum(out.newest, times))
        return kept(out, out.newest <= out.until)


@dataclass
class MeetingModule:
    """A join condition between two joined relations; the probe that came second has seen to it.

    `alone`, for profiling, it is put to the test: there, probes know of their links only.
    """

    operator: Meeting
    keys: JoinedKeys
    alone: bool = False
    errors: int = 0
    comparisons: int = 0

    def process(self, ruster: Ruster) -> Iterator[Ruster]:
        """The tuples of a ruster whose keys agree with those that it met before."""
        assert isinstance(ruster, JoinRuster)
        if not self.alone:
            yield replace(ruster, token=ruster.token.pop())
            return
        yield ruster.keep(self._verdict(ruster))

    def _verdict(self, ruster: JoinRuster) -> Bools:
        keys, join, operator = self.keys, self.keys.join, self.operator
        if operator.condition < len(join.classes):
            each = join.classes[operator.condition]
            left = keys.codes(ruster, operator.left, each)
            return np.asarray(left == keys.codes(ruster, operator.right, each))
        compared = join.compared[operator.condition - len(join.classes)]
        sides = [
            keys.orders(ruster, alias, keys.position_of_order(alias, compared))
            for alias in (compared.left, compared.right)
        ]
        return np.asarray(OPS[compared.op](*sides))
