"""A condition as people write it, one row at a time, for QueryMesh and for its rivals alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import querymesh as qm
from querymesh.query.predicate.predicate import Predicate

RowFunction = Callable[..., bool]


@dataclass(frozen=True, slots=True)
class RowPredicate:
    """A Python function of the values of some columns of one row."""

    name: str
    columns: tuple[str, ...]
    fn: RowFunction


def functions(predicates: Sequence[RowPredicate]) -> dict[str, Predicate]:
    """The predicates as QueryMesh takes them, called row by row."""
    return {
        p.name: qm.predicate(p.fn, columns=p.columns, name=p.name, vectorised=False)
        for p in predicates
    }


def select(relation: str, predicates: Sequence[RowPredicate]) -> str:
    """The query: every column of the rows on which all of them hold."""
    calls = " AND ".join(f"{p.name}({', '.join(p.columns)})" for p in predicates)
    return f"SELECT * FROM {relation} WHERE {calls}"
