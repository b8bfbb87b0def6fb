"""What is asked: an immutable Query, and the same query bound to the schemas of its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from querymesh.errors import QueryError
from querymesh.explained import Shown, counted, one_line
from querymesh.query.expr import Expr

if TYPE_CHECKING:
    from querymesh.query.aggregate import Aggregation
    from querymesh.query.predicate.predicate import Predicate


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window: `[RANGE n unit]` in microseconds of event time, `[ROWS n]` in arrivals."""

    kind: Literal["range", "rows"]
    size: int


@dataclass(frozen=True, slots=True)
class Relation:
    """One entry of FROM. A relation without a window is static: a look-up table."""

    name: str
    alias: str
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the result; `text` is how the query has it, where that is known."""

    name: str
    expr: Expr
    text: str = field(default="", compare=False, repr=False)


def check_output_names(names: Sequence[str]) -> None:
    """QueryError where two outputs have one name."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise QueryError(f"two output columns are named {name}: give one an alias with AS")
        seen.add(name.lower())


@dataclass(frozen=True, repr=False)
class Query(Shown):
    """A select-project-join query: relations, the conjuncts of its WHERE, and what comes out.

    `outputs` is None for `SELECT *`; an output `Column(alias, "*")` is a relation's columns.
    `conjuncts` are what the optimizer may reorder. `functions` are by lower-case name. `using` are
    the (alias, column) pairs of JOIN ... USING that `*` and unqualified names do not see again.
    `aggregate` is what Spark makes of the outputs, where the SQL has aggregates or GROUP BY.
    `guarded` are the places of conjuncts that may raise: on every route they come after all that
    was written before them. `texts` are how the conjuncts were written, if they were. `asked` is
    the query as the user gave it, where this is what remains of it once Spark has its part.
    """

    sql: str
    relations: tuple[Relation, ...]
    conjuncts: tuple[Expr, ...]
    outputs: tuple[Output, ...] | None
    time: str | None = None
    functions: Mapping[str, Predicate] = field(default_factory=dict)
    using: frozenset[tuple[str, str]] = frozenset()
    aggregate: Aggregation | None = None
    guarded: frozenset[int] = frozenset()
    texts: tuple[str, ...] = field(default=(), compare=False, repr=False)
    asked: Query | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        conditions = counted(len(self.conjuncts), "condition")
        return f"<Query of {conditions}: {one_line(self.sql)}>"

    def bind(self, schemas: Mapping[str, pa.Schema]) -> BoundQuery:
        """Resolve every name and type against the inputs; see `bind.bind`."""
        from querymesh.query.bind.bind import bind

        return bind(self, schemas)


@dataclass(frozen=True, slots=True)
class Filter:
    """A reorderable condition on the source's columns (and on those of look-ups named in `after`).

    `index` is its place in the operator index array, from 1; `after` are all the indices that must
    come earlier on every route, transitively closed.
    """

    index: int
    name: str
    expr: Expr
    after: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Lookup:
    """An equi-join to a static table: probe_keys[i] = build_keys[i], several matches allowed."""

    index: int
    name: str
    relation: str
    probe_keys: tuple[Expr, ...]
    build_keys: tuple[Expr, ...]
    after: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe of another relation's state (STeM), by all conditions that link it to what is joined.

    What is joined by then depends on the route, and so does the access pattern. `links` are the
    relations by whose conditions alone the probe is profiled: the source, or where nothing links
    the two, the relation through which it is reached.
    """

    index: int
    name: str
    relation: str
    links: frozenset[str]
    after: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Meeting:
    """A join condition between two relations that both hang on the source.

    `condition` is its number among the join's classes and, from there on, its comparisons. The
    probe that comes second uses it, so it takes no visit of its own. It is an operator because it
    drops rows: the optimizer must know what is left once both are joined.
    """

    index: int
    name: str
    left: str
    right: str
    condition: int
    after: frozenset[int] = frozenset()


Operator = Filter | Lookup | Probe | Meeting


@dataclass(frozen=True)
class BoundQuery:
    """A query whose names and types are known: what the optimizer and the fabric work on.

    `schemas` are by alias. `static_filters` touch one look-up table only, and are applied to it
    once.
    """

    query: Query
    source: Relation
    schemas: Mapping[str, pa.Schema]
    operators: tuple[Operator, ...]
    static_filters: Mapping[str, tuple[Expr, ...]]
    outputs: tuple[Output, ...]
    output_schema: pa.Schema

    @property
    def precedence(self) -> tuple[frozenset[int], ...]:
        """For each operator in order, the operator indices that must come before it."""
        return tuple(op.after for op in self.operators)
