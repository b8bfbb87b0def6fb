"""A join of several windowed streams: what must be equal, what is compared, and one view a stream.

The equalities of WHERE make classes of join attributes: in `a.k = b.k AND b.k = c.k` the three are
one class, and every result has one value of it. A tuple that arrives travels from its own stream
through the states of all others, so each stream has a *view* of the query: a `BoundQuery` with that
stream as its source and a `Probe` for every other relation. A view has its own mesh::

    a ── k ── b ── m ── c         view of a:   probe b,  then probe c   (c hangs on b)
                                  view of b:   probe a and probe c in any order
                                  view of c:   probe b,  then probe a

Conditions on one stream are filters of its view and run before the tuple enters its state: a state
holds only tuples that can be in a result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa

from querymesh.query.expr import Column, Expr, columns_of, user_calls_of
from querymesh.query.model import BoundQuery, Filter, Output, Query, Relation, Window

ORDERED = ("<", "<=", ">", ">=")
Op = Literal["<", "<=", ">", ">="]
MIRRORED: Mapping[Op, Op] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class KeyClass:
    """Join attributes that the query makes equal, by relation; all of one type."""

    number: int
    dtype: pa.DataType
    members: Mapping[str, Expr]

    @property
    def name(self) -> str:
        """The class for people: `a.k = b.k = c.k`."""
        from querymesh.query.render import to_text

        return " = ".join(to_text(expr, qualified=True) for expr in self.members.values())

    @property
    def in_catalyst(self) -> bool:
        """Whether Spark can compute it without Python."""
        return not any(user_calls_of(expr) for expr in self.members.values())


@dataclass(frozen=True, slots=True)
class JoinComparison:
    """`left op right`, each side of one relation, of a type whose order is that of integers."""

    left: str
    left_key: Expr
    op: Op
    right: str
    right_key: Expr
    text: str

    def side(self, alias: str) -> Expr:
        """The key of one of its two relations."""
        return self.left_key if alias == self.left else self.right_key

    def other(self, alias: str) -> str:
        """The relation at the other end."""
        return self.right if alias == self.left else self.left

    def op_for(self, stored: str) -> Op:
        """The operator read from the stored relation's side: `stored op probing`."""
        return self.op if stored == self.left else MIRRORED[self.op]


@dataclass(frozen=True)
class JoinQuery:
    """A bound query over two or more windowed streams and any number of static tables.

    `views` are by the alias of the stream, in the order of FROM.
    """

    query: Query
    streams: tuple[Relation, ...]
    statics: tuple[Relation, ...]
    schemas: Mapping[str, pa.Schema]
    times: Mapping[str, str]
    classes: tuple[KeyClass, ...]
    compared: tuple[JoinComparison, ...]
    static_filters: Mapping[str, tuple[Expr, ...]]
    views: Mapping[str, BoundQuery]

    @property
    def outputs(self) -> tuple[Output, ...]:
        """What comes out; the same of every view."""
        return next(iter(self.views.values())).outputs

    @property
    def output_schema(self) -> pa.Schema:
        """The columns of the result, with their Arrow types."""
        return next(iter(self.views.values())).output_schema

    @property
    def aliases(self) -> tuple[str, ...]:
        """The aliases of the streams, as FROM has them."""
        return tuple(stream.alias for stream in self.streams)

    @property
    def counts_rows(self) -> bool:
        """Whether any window counts arrivals, which takes one shard."""
        return any(s.window is not None and s.window.kind == "rows" for s in self.streams)

    @property
    def spread(self) -> tuple[str, ...]:
        """The streams whose rows may be spread over shards by themselves: one is in any result."""
        return self.aliases

    @property
    def codes_may_be_of_null(self) -> bool:
        """Whether a stored tuple may have NULL in a key."""
        return False

    def of_view(self, label: str) -> tuple[JoinQuery, str]:
        """The join that a view is of, and its stream."""
        return self, label

    def window_of(self, alias: str) -> Window | None:
        """The window of a relation; None of a static table."""
        return self._windows.get(alias)

    @cached_property
    def _windows(self) -> dict[str, Window | None]:
        return {stream.alias: stream.window for stream in self.streams}

    @property
    def longest_us(self) -> int:
        """The longest of the windows that go by time, 0 if there is none."""
        windows = [s.window for s in self.streams if s.window is not None]
        return max((window.size for window in windows if window.kind == "range"), default=0)

    def keys_of(self, alias: str) -> tuple[KeyClass, ...]:
        """The classes that a relation has an attribute of: the positions of its access patterns."""
        return tuple(each for each in self.classes if alias in each.members)

    def comparisons_of(self, alias: str) -> tuple[JoinComparison, ...]:
        """The comparisons a relation takes part in."""
        return tuple(each for each in self.compared if alias in (each.left, each.right))

    def orders_of(self, alias: str) -> tuple[Expr, ...]:
        """The keys of a relation that are compared, each once: the positions of its order codes.

        Both comparisons of a band, `b.x >= a.low AND b.x <= a.high`, are of one position of b, so
        that one index finds what lies between.
        """
        sides = (each.side(alias) for each in self.comparisons_of(alias))
        return tuple({repr(side): side for side in sides}.values())  # 1 == True, but not in SQL

    def order_of(self, alias: str, compared: JoinComparison) -> int:
        """The position of a relation's side of a comparison among its order codes."""
        return list(map(repr, self.orders_of(alias))).index(repr(compared.side(alias)))

    def value_column(self, each: KeyClass, alias: str) -> str:
        """The column of a state with the values of a key, to compare what hashes cannot tell."""
        key = each.members[alias]
        if isinstance(key, Column):
            return key.name
        name = f"__key{each.number}"
        while name in self.schemas[alias].names:
            name = f"_{name}"
        return name

    def columns_kept(self, alias: str) -> list[str]:
        """The columns of a stream that are still read once a tuple is in its state."""
        return self._kept[alias]

    @cached_property
    def _kept(self) -> dict[str, list[str]]:
        later = {column for expr in self._read_later() for column in columns_of(expr)}
        kept = {}
        for alias, schema in self.schemas.items():
            read = set(later)
            for each in self.keys_of(alias):
                if isinstance(each.members[alias], Column):  # else its code or value is stored
                    read |= columns_of(each.members[alias])
            if alias in self.times:
                read.add(Column(alias, self.times[alias]))
            kept[alias] = [name for name in schema.names if Column(alias, name) in read]
        return kept

    def columns_sent(self, alias: str) -> list[str]:
        """The columns of a stream that anything reads: what is sent to the shards."""
        view = self.views[alias]
        exprs = [op.expr for op in view.operators if isinstance(op, Filter)]
        exprs += [each.members[alias] for each in self.keys_of(alias)]
        exprs += self.orders_of(alias)
        read = {column for expr in exprs for column in columns_of(expr)}
        kept = set(self.columns_kept(alias))
        return [n for n in self.schemas[alias].names if n in kept or Column(alias, n) in read]

    def _read_later(self) -> Iterator[Expr]:
        for output in self.outputs:
            yield output.expr
        for view in self.views.values():
            for operator in view.operators:
                expr = getattr(operator, "expr", None)
                if expr is not None and any(
                    c.relation != view.source.alias for c in columns_of(expr)
                ):
                    yield expr
