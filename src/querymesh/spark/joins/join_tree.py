"""A join of windowed streams as a tree of Spark's own binary stream-stream joins.

    (("a", "b"), ("c", "d"))                    ((("a", "b"), "c"), "d")

             ⋈                                           ⋈
          /     \\                                      /   \\
        ⋈         ⋈                                  ⋈      d
       / \\       / \\                               /   \\
      a   b     c   d                             ⋈     c
                                                 / \\
                                                a   b

Any tree gives the result of the query exactly. Of every combination a node makes, three things go
up besides the columns that are still read: `newest`, the time of its newest member; `until`, the
earliest end of a member's window; and one event time. Two combinations fit together iff neither has
a member newer than the other allows, `newest ≤ until` both ways, which is `ts_j - ts_i ≤ w_i` for
every pair.

**What is kept.** Each join keeps both of its inputs as state: all streams, and all intermediate
results but the last. Spark forgets a row by conditions between two event times, and a joined stream
may have one only. The *anchor* of a node is its stream with the shortest window, whose event time
is handed up; two anchors x and y are conditioned by their own windows, so that a row is dropped
once the watermark has passed its anchor's time by the anchor's window. But Spark hands up a
watermark as well: results of a join may be older than its inputs by the longer of its two windows,
so a join's watermark lags behind the streams' by that length for each join on the longest path
below it, and *both* its inputs are kept for so much longer. Of n streams with window w, the topmost
join of a linear tree keeps its inputs, the last stream among them, for (n - 1) · w; the topmost of
a balanced tree for log2(n) · w, but two sides of intermediate results.

Without an equality between two sides, Spark refuses to join streams. They get one that always
holds, so a comparison or a product runs as well, in one partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import TimestampNTZType

from querymesh.cost.plan_tree import JoinShape
from querymesh.query.bind.static_joins import relations_of
from querymesh.query.expr import Call, Column, Expr, columns_of
from querymesh.query.join import JoinQuery, KeyClass
from querymesh.query.model import Filter
from querymesh.query.render import quoted_name, spark_sql
from querymesh.query.types import Kind, kind_of
from querymesh.runtime.durations import microseconds_of
from querymesh.spark.joins.tree_shape import check_tree
from querymesh.spark.schema import WATERMARK, output_struct, zoneless_us

_SPARK_TYPE = {Kind.INTEGER: "bigint", Kind.FLOAT: "double"}
_SPARE_S = 0.001
"""Spark's watermarks are whole milliseconds: state is kept for one more, to be exact beneath."""


def join_tree(
    join: JoinQuery, frames: Mapping[str, DataFrame], shape: JoinShape, watermark: str
) -> DataFrame:
    """The join's result, with the schema `querymesh.run` gives it; streaming if its inputs are.

    `frames` are by alias. Rows more than `watermark` behind the newest are late: Spark drops them.
    A static table is not part of the shape: it is broadcast to the lowest node that it is linked
    to, and keeps no state. Aggregates of the query are left to the caller.
    """
    return _JoinTree(join, frames, shape, watermark).result()


@dataclass(frozen=True)
class _Node:
    """What a subtree gives. `keys` are the columns with the values of classes, by number."""

    frame: DataFrame
    aliases: frozenset[str]
    keys: Mapping[int, str]
    prefix: str = ""
    anchor_us: int | None = None
    """The window of the stream whose event time this is; None of a static table."""

    def named(self, what: str) -> str:
        return f"{self.prefix}_{what}"


class _JoinTree:
    """The tree of joins while it is built, node by node."""

    def __init__(
        self, join: JoinQuery, frames: Mapping[str, DataFrame], shape: JoinShape, watermark: str
    ) -> None:
        self.join, self.frames, self.shape = join, frames, shape
        # A row is late to Spark from the watermark on, to us below it.
        self.watermark_ms = -(-microseconds_of(watermark, "watermark") // 1000) + 1
        self.numbers = {r.alias: n for n, r in enumerate((*join.streams, *join.statics))}
        self.residual = _residual(join)
        self.waiting = [relation.alias for relation in join.statics]
        self.nodes = 0
        check_tree(join, frames, shape)
        self.streaming = frames[join.aliases[0]].isStreaming

    def result(self) -> DataFrame:
        node = self._node(self.shape)
        for alias in self.waiting:
            node = self._with_static(node, alias)
        struct = output_struct(
            self.join.views[self.join.aliases[0]], self.frames, leave_out=[WATERMARK]
        )
        asked = zip(self.join.outputs, struct, strict=True)
        columns = [
            F.expr(f"CAST({self._sql(output.expr)} AS {field.dataType.simpleString()})").alias(
                field.name, metadata=field.metadata
            )
            for output, field in asked
        ]
        return node.frame.select(*columns)

    def _node(self, shape: JoinShape) -> _Node:
        if isinstance(shape, str):
            node = self._leaf(shape)
        else:
            node = self._joined(self._node(shape[0]), self._node(shape[1]))
        while (alias := next((s for s in self.waiting if self._linked(s, node)), None)) is not None:
            self.waiting.remove(alias)
            node = self._with_static(node, alias)
        return node

    def _leaf(self, alias: str) -> _Node:
        """A stream with its watermark and its keys, of rows that can be in a result."""
        window = self.join.window_of(alias)
        assert window is not None
        own = [
            op.expr
            for op in self.join.views[alias].operators
            if isinstance(op, Filter) and relations_of(op.expr) <= {alias}
        ]
        bare = self._bare(alias, own)
        prefix = self._prefix()
        time = self._name(Column(alias, self.join.times[alias]))
        is_plain = isinstance(bare.schema[time].dataType, TimestampNTZType)
        us = zoneless_us(quoted_name(time)) if is_plain else f"unix_micros({quoted_name(time)})"
        event = F.timestamp_micros(F.expr(us)) if is_plain else _col(time)
        frame = bare.withColumns(
            {
                f"{prefix}_newest": F.expr(us),
                f"{prefix}_until": F.expr(f"{us} + {window.size}L"),
                f"{prefix}_event": event,
            }
        )
        if self.streaming:
            frame = frame.withWatermark(f"{prefix}_event", f"{self.watermark_ms} milliseconds")
        keys = {k.number: self._key(k, alias) for k in self.join.keys_of(alias)}
        node = _Node(frame, frozenset({alias}), keys, prefix, window.size)
        return self._trimmed(node)

    def _bare(self, alias: str, own: Iterable[Expr]) -> DataFrame:
        """A relation's columns under names of its own, with its keys, filtered."""
        frame = self.frames[alias]
        kept = self._columns_read(alias)
        # A watermark that the user declared would be a second event time.
        columns = [_col(name).alias(self._name(Column(alias, name)), metadata={}) for name in kept]
        frame = frame.select(*columns)
        conditions = [self._sql(expr) for expr in own]
        computed = {}
        for each in self.join.keys_of(alias):
            text, name = self._key_sql(each, alias), self._key(each, alias)
            if not self._is_carried(each, alias):
                computed[name] = F.expr(text)
            conditions.append(f"{quoted_name(name)} IS NOT NULL")
        if alias in self.join.times:
            time = self._name(Column(alias, self.join.times[alias]))
            conditions.append(f"{quoted_name(time)} IS NOT NULL")
        frame = frame.withColumns(computed) if computed else frame
        for condition in conditions:
            frame = frame.filter(F.expr(condition))
        return frame

    def _joined(self, left: _Node, right: _Node) -> _Node:
        shared = left.keys.keys() & right.keys.keys()
        equal = [_col(left.keys[n]) == _col(right.keys[n]) for n in sorted(shared)]
        if not equal:
            equal.append(_always(left) == _always(right))
        ways = ((left, right), (right, left))
        fits = [F.col(one.named("newest")) <= F.col(other.named("until")) for one, other in ways]
        if self.streaming:
            fits += [_forgets(one, other) for one, other in ways]
        aliases = left.aliases | right.aliases
        conditions = [*equal, *fits, *self._completed(aliases, left, right)]
        frame = left.frame.join(right.frame, reduce(SparkColumn.__and__, conditions), "inner")
        anchor = min(left, right, key=lambda node: node.anchor_us or 0)
        prefix = self._prefix()
        both = {w: (F.col(left.named(w)), F.col(right.named(w))) for w in ("newest", "until")}
        frame = frame.withColumns(
            {
                f"{prefix}_newest": F.greatest(*both["newest"]),
                f"{prefix}_until": F.least(*both["until"]),
            }
        ).withColumnRenamed(anchor.named("event"), f"{prefix}_event")
        node = _Node(frame, aliases, {**right.keys, **left.keys}, prefix, anchor.anchor_us)
        return self._trimmed(node)

    def _with_static(self, node: _Node, alias: str) -> _Node:
        """The node with a table looked up; a table has no time, so the node's stays."""
        table = self._bare(alias, self.join.static_filters.get(alias, ()))
        keys = {k.number: self._key(k, alias) for k in self.join.keys_of(alias)}
        other = _Node(table, frozenset({alias}), keys)
        aliases = node.aliases | {alias}
        conditions = [
            _col(node.keys[n]) == _col(keys[n]) for n in sorted(node.keys.keys() & keys.keys())
        ]
        conditions += self._completed(aliases, node, other)
        condition = reduce(SparkColumn.__and__, conditions) if conditions else F.lit(True)
        frame = node.frame.join(F.broadcast(table), condition, "inner")
        found = _Node(frame, aliases, {**keys, **node.keys}, node.prefix, node.anchor_us)
        return self._trimmed(found)

    def _linked(self, static: str, node: _Node) -> bool:
        """Whether a table and a node have something to meet by."""
        if any(each.number in node.keys for each in self.join.keys_of(static)):
            return True
        both = node.aliases | {static}
        return any(static in relations_of(e) and relations_of(e) <= both for e in self.residual)

    def _completed(self, aliases: frozenset[str], left: _Node, right: _Node) -> list[SparkColumn]:
        """The conditions whose columns are all there for the first time."""
        return [
            F.expr(self._sql(expr))
            for expr in self.residual
            if (reads := relations_of(expr)) <= aliases
            and not reads <= left.aliases
            and not reads <= right.aliases
        ]

    def _trimmed(self, node: _Node) -> _Node:
        """Only the columns that something above reads, since all others would be state too."""
        open_keys = {
            number: column
            for number, column in node.keys.items()
            if not self.join.classes[number].members.keys() <= node.aliases
        }
        wanted = dict.fromkeys(node.named(w) for w in ("newest", "until", "event"))
        wanted |= dict.fromkeys(open_keys.values())
        later = [output.expr for output in self.join.outputs]
        later += [expr for expr in self.residual if not relations_of(expr) <= node.aliases]
        read = {self._name(c) for e in later for c in columns_of(e) if c.relation in node.aliases}
        columns = [c for c in node.frame.columns if c in wanted or c in read]
        frame = node.frame.select(*map(_col, columns))
        return _Node(frame, node.aliases, open_keys, node.prefix, node.anchor_us)

    def _columns_read(self, alias: str) -> Sequence[str]:
        if alias in self.join.views:
            return self.join.columns_sent(alias)
        exprs = [*self.join.static_filters.get(alias, ()), *self.residual]
        exprs += [output.expr for output in self.join.outputs]
        exprs += [each.members[alias] for each in self.join.keys_of(alias)]
        read = {column for expr in exprs for column in columns_of(expr)}
        return [name for name in self.join.schemas[alias].names if Column(alias, name) in read]

    def _key(self, each: KeyClass, alias: str) -> str:
        """The column with the value of a class, in the type the class is compared in."""
        if self._is_carried(each, alias):
            return self._name(_column(each.members[alias]))
        return f"key{each.number}_{self.numbers[alias]}"

    def _is_carried(self, each: KeyClass, alias: str) -> bool:
        """Whether a column is its own key, so that it need not be there twice."""
        member = each.members[alias]
        if not isinstance(member, Column):
            return False
        kind = _SPARK_TYPE.get(kind_of(each.dtype))
        found = self.frames[alias].schema[member.name].dataType.simpleString()
        return kind is None or kind == found

    def _key_sql(self, each: KeyClass, alias: str) -> str:
        text = self._sql(each.members[alias])
        kind = _SPARK_TYPE.get(kind_of(each.dtype))
        return f"CAST({text} AS {kind})" if kind else text

    def _sql(self, expr: Expr) -> str:
        return spark_sql(expr, column=lambda column: quoted_name(self._name(column)))

    def _name(self, column: Column) -> str:
        return f"{self.numbers[column.relation or '']}_{column.name}"

    def _prefix(self) -> str:
        self.nodes += 1
        return f"node{self.nodes}"


def _col(name: str) -> SparkColumn:
    return F.col(quoted_name(name))


def _column(expr: Expr) -> Column:
    assert isinstance(expr, Column)
    return expr


def _always(node: _Node) -> SparkColumn:
    """A number that is always 0, which Catalyst does not know."""
    return F.expr(f"{node.named('newest')} % 1L")


def _forgets(one: _Node, other: _Node) -> SparkColumn:
    """The condition by which Spark drops rows of `other`: they have had their time.

    In seconds, since adding an interval of days goes by the calendar of the session's time zone. It
    is a little weaker than the exact one beside it.
    """
    length_s = (other.anchor_us or 0) / 1e6 + _SPARE_S
    seconds = (F.col(node.named("event")).cast("double") for node in (one, other))
    first, second = seconds
    return first <= second + F.lit(length_s)


def _residual(join: JoinQuery) -> tuple[Expr, ...]:
    """The conditions that read several relations and are no equality of keys, each once."""
    found: dict[str, Expr] = {}
    for view in join.views.values():
        for op in view.operators:
            if isinstance(op, Filter) and not relations_of(op.expr) <= {view.source.alias}:
                found[repr(op.expr)] = op.expr
    for each in join.compared:
        compared = Call(each.op, (each.left_key, each.right_key))
        found[repr(compared)] = compared
    return tuple(found.values())
