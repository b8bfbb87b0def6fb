"""What a sample must have of its source: what conditions read, and what may tell kinds apart."""

from __future__ import annotations

from querymesh.query.expr import Opaque, columns_of, opaque_parts_of
from querymesh.query.model import BoundQuery, Filter
from querymesh.spark.filters.staged import exprs_of, tellable

MOST_COLUMNS = 32
"""So many columns that no condition reads are sampled at most."""


def sampled_columns(bound: BoundQuery) -> list[str]:
    """What conditions read, in Python or in Catalyst, and what may tell kinds apart."""
    own = {None, bound.source.alias}
    read = {
        column.name
        for operator in bound.operators
        for expr in exprs_of(operator)
        for column in columns_of(expr)
        if column.relation in own
    }
    telling = tellable(bound, MOST_COLUMNS)
    return [n for n in bound.schemas[bound.source.alias].names if n in read or n in telling]


def opaque_parts(bound: BoundQuery) -> list[Opaque]:
    """The parts of conditions that only Catalyst can evaluate, each once."""
    parts = [
        part
        for operator in bound.operators
        if isinstance(operator, Filter)
        for part in opaque_parts_of(operator.expr)
    ]
    return list(dict.fromkeys(parts))
