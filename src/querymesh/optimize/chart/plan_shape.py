"""A join of windowed streams as OM sees it, and OM's plans as orders of probes.

Every pair of streams that conditions link is a join predicate of its own, one for each condition;
those of one class of equal attributes are one chain (`key`). A stream's own conditions are one
selection (§ 4.2's first heuristic), and what is kept of its tuples in its state is its projection.

A left-deep order (s1 ⋈ s2) ⋈ s3 of plans that store intermediate results becomes, on states that
hold single tuples, an order of probes for each stream: the others as they come in the plan::

    (a ⋈ b) ⋈ c          a tuple of a probes b, then c
                         a tuple of b probes a, then c
                         a tuple of c probes a, then b: it meets a ⋈ b, which nobody stores

A relation that is linked only through another waits for that one, whatever the plan says. Static
tables are in no chart: one that lets through fewer rows than ask is looked up as soon as it can
be, any other last.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import pyarrow as pa

from querymesh.optimize.chart.candidates import (
    Order,
    QueryShape,
    StreamJoin,
    StreamProjection,
    StreamSelection,
)
from querymesh.query.expr import columns_of
from querymesh.query.join import JoinQuery
from querymesh.query.model import Filter, Probe
from querymesh.query.render import to_text

Pair = tuple[str, str]
"""Two streams, in the order of FROM."""

SELECTION_TPR, PROJECTION_TPR, JOIN_TPR = 400e3, 500e3, 3e3
"""Tuples a second of § 5.1, until others are measured."""

_ASSUMED_BITS = 128
"""Of a value whose type has no width, such as a string: its offset and a few characters."""


class Condition(NamedTuple):
    """A condition between two streams; `number` is that of its class of equal attributes, if it is
    an equality."""

    name: str
    pair: Pair
    number: int | None


def conditions_of(join: JoinQuery) -> list[Condition]:
    """What links streams to each other: equalities, comparisons, else conditions that read both,
    else a static table between them."""
    found: list[Condition] = []
    for each in join.classes:
        members = [alias for alias in join.aliases if alias in each.members]
        for one, other in combinations(members, 2):
            texts = (to_text(each.members[alias], qualified=True) for alias in (one, other))
            found.append(Condition(" = ".join(texts), (one, other), each.number))
    for compared in join.compared:
        pair = _in_order(join, compared.left, compared.right)
        if pair is not None:
            found.append(Condition(compared.text, pair, None))
    linked = {condition.pair for condition in found}
    for pair, text in _weak_links(join).items():
        if pair not in linked:
            found.append(Condition(text, pair, None))
    return _named_once(found)


def _in_order(join: JoinQuery, one: str, other: str) -> Pair | None:
    streams = [alias for alias in join.aliases if alias in (one, other)]
    return (streams[0], streams[1]) if len(streams) == 2 else None


def _weak_links(join: JoinQuery) -> dict[Pair, str]:
    """Pairs of streams with a condition that reads both, or with a static table between them."""
    links: dict[Pair, str] = {}
    for view in join.views.values():
        for operator in view.operators:
            if isinstance(operator, Filter):
                read = {column.relation or "" for column in columns_of(operator.expr)}
                for pair in combinations([a for a in join.aliases if a in read], 2):
                    links.setdefault(pair, operator.name)
    neighbours: dict[str, set[str]] = {}
    for each in join.classes:
        for table in join.statics:
            if table.alias in each.members:
                around = set(each.members) & set(join.aliases)
                neighbours.setdefault(table.alias, set()).update(around)
    for table_alias, around in neighbours.items():
        for pair in combinations([a for a in join.aliases if a in around], 2):
            links.setdefault(pair, f"{pair[0]} and {pair[1]} by way of {table_alias}")
    return links


def _named_once(found: list[Condition]) -> list[Condition]:
    names = [condition.name for condition in found]
    return [
        each if names.count(each.name) == 1 else each._replace(name=f"{each.name} ({place})")
        for place, each in enumerate(found, 1)
    ]


def selection_name(alias: str) -> str:
    """What a stream's own conditions are called, all together."""
    return f"conditions on {alias}"


def own_filters(join: JoinQuery, alias: str) -> list[Filter]:
    """The conditions on one stream alone."""
    return [
        operator
        for operator in join.views[alias].operators
        if isinstance(operator, Filter)
        and {column.relation for column in columns_of(operator.expr)} <= {alias}
    ]


def shape_of(
    join: JoinQuery,
    conditions: list[Condition],
    selection_tpr: Mapping[str, float],
    pair_tpr: Mapping[Pair, float],
) -> QueryShape:
    """The query as plans see it, with the processing rates measured, else the paper's."""
    selections, projections = [], []
    for alias in join.aliases:
        if filters := own_filters(join, alias):
            tpr = selection_tpr.get(alias, SELECTION_TPR)
            selections.append(StreamSelection(selection_name(alias), alias, tpr))
        keeps = kept_share(join, alias)
        if keeps < 1:
            kept = set(join.columns_kept(alias))
            asked = {column.name for each in filters for column in columns_of(each.expr)}
            first = asked <= kept
            projections.append(StreamProjection(alias, PROJECTION_TPR, keeps, first))
    joins = tuple(
        StreamJoin(
            each.name,
            each.pair,
            pair_tpr.get(each.pair, JOIN_TPR),
            None if each.number is None else str(each.number),
        )
        for each in conditions
    )
    return QueryShape(join.aliases, tuple(selections), tuple(projections), joins)


def kept_share(join: JoinQuery, alias: str) -> float:
    """The share of a stream's bytes that its state keeps, by the widths of its columns' types.

    A value without a fixed width counts as 16 bytes.
    """
    schema = join.schemas[alias]
    bits = {field.name: _bits(field.type) for field in schema}
    whole = sum(bits.values())
    kept = sum(bits[name] for name in join.columns_kept(alias))
    return kept / whole if whole and kept else 1.0


def _bits(dtype: pa.DataType) -> int:
    try:
        return int(dtype.bit_width)
    except ValueError:
        return _ASSUMED_BITS


def probe_orders(
    join: JoinQuery, order: Order, fan_out: Mapping[tuple[str, str], float]
) -> dict[str, tuple[str, ...]]:
    """A plan as the relations that the tuples of each stream probe, first to last.

    `fan_out` are the rows that a tuple of a stream finds in a static table, where known.
    """
    return {alias: _probes(join, alias, order, fan_out) for alias in join.aliases}


def _probes(
    join: JoinQuery, source: str, order: Order, fan_out: Mapping[tuple[str, str], float]
) -> tuple[str, ...]:
    probes = {op.index: op for op in join.views[source].operators if isinstance(op, Probe)}
    place = {stream: float(at) for at, stream in enumerate(order)}
    for table in join.statics:
        strict = fan_out.get((source, table.alias), 1.0) < 1
        place[table.alias] = -1.0 if strict else float(len(order))
    waiting, done, chosen = dict(probes), set[int](), []
    while waiting:
        ready = [op for op in waiting.values() if op.after & probes.keys() <= done]
        best = min(ready, key=lambda op: (place[op.relation], op.index))
        chosen.append(best.relation)
        done.add(best.index)
        del waiting[best.index]
    return tuple(chosen)
