"""Several queries over one source as one set of operators (QM § 5.2, multi-query execution).

Queries are brought to common names, so that what means the same is the same: the source has one
alias, a look-up of the same table by the same keys under the same conditions is one look-up, and a
condition that two queries ask is one operator::

    q1   s.price > 10  AND  bullish(s.data)          operator    1  price > 10      serves q1, q2
    q2   x.price > 10  AND  x.sector = n.sector                  2  bullish         serves q1
                                                                 3  look-up of n    serves q2

Which queries an operator serves is a bit mask, and so is what a route token carries: the queries
its tuples may still belong to. An operator's predecessors are part of what it means: a condition
that one query guards with `after=` and another does not is two operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from querymesh.errors import QueryError, SchemaError
from querymesh.query.expr import Column, Expr, UserCall, rewritten
from querymesh.query.model import BoundQuery, Filter, Lookup, Operator, Output, Query, Relation
from querymesh.query.predicate.predicate import Predicate

QUERY = "query"
MOST_QUERIES = 62
"""Query numbers are bits of a 64-bit mask."""


@dataclass(frozen=True)
class SharedQuery(BoundQuery):
    """Bound queries that share one pass over their source.

    As a `BoundQuery` it has all their operators, each once; `serves` has a bit mask for each
    operator: bit k for query k. `parts` are the queries by themselves, in the common names; the
    outputs are theirs alone. A row that comes out has the number of its query in the column
    `query`, and a struct for each query.
    """

    parts: tuple[BoundQuery, ...]
    serves: tuple[int, ...]

    @property
    def everyone(self) -> int:
        """The mask of a tuple that may still belong to all queries."""
        return (1 << len(self.parts)) - 1


def queries_in(mask: int) -> Iterator[int]:
    """The query numbers in a mask.

    >>> list(queries_in(0b101))
    [0, 2]
    """
    return (number for number in range(mask.bit_length()) if mask >> number & 1)


def result_name(number: int) -> str:
    """The struct column of the shared output that holds one query's results."""
    return f"q{number + 1}"


def share(queries: Sequence[BoundQuery]) -> SharedQuery:
    """The queries as one; they must read the same source."""
    if not queries:
        raise QueryError("there is no query to run: give at least one")
    if len(queries) > MOST_QUERIES:
        raise QueryError(f"at most {MOST_QUERIES} queries share one pass, not {len(queries)}")
    sources = {bound.source.name.lower() for bound in queries}
    if len(sources) > 1:
        raise SchemaError(
            "queries that share one pass must read the same source, but these read "
            f"{' and '.join(sorted(sources))}: run them apart"
        )
    sharing = _Sharing(queries[0].source, queries[0].schemas[queries[0].source.alias])
    parts = tuple(sharing.add(number, bound) for number, bound in enumerate(queries))
    fields = [pa.field(QUERY, pa.int32())]
    fields += [
        pa.field(result_name(number), pa.struct(list(part.output_schema)))
        for number, part in enumerate(parts)
    ]
    # What the pass reads, with all its columns: conditions and outputs are the operators' and the
    # parts' own.
    query = Query(
        sql=";\n".join(bound.query.sql for bound in queries),
        relations=tuple(sharing.relations),
        conjuncts=(),
        outputs=None,
        time=queries[0].query.time,
        functions=sharing.functions,
    )
    return SharedQuery(
        query=query,
        source=sharing.source,
        schemas=sharing.schemas,
        operators=tuple(
            replace(operator, name=f"{operator.name} [{_queries_text(served)}]")
            for operator, served in zip(sharing.operators, sharing.serves, strict=True)
        ),
        static_filters=sharing.static_filters,
        outputs=(),
        output_schema=pa.schema(fields),
        parts=tuple(
            replace(part, schemas=sharing.schemas, static_filters=sharing.static_filters)
            for part in parts
        ),
        serves=tuple(sharing.serves),
    )


def _queries_text(mask: int) -> str:
    """So that `explain` and the metrics say which queries an operator serves: `q1, q3`."""
    return ", ".join(result_name(number) for number in queries_in(mask))


def common_functions(query: Query, functions: dict[str, Predicate]) -> dict[str, str]:
    """The query's functions by common name, added to those of others: two that differ under one
    name are told apart."""
    renamed = {}
    for name, function in query.functions.items():
        common, copy = name, 1
        while functions.setdefault(common, function) != function:
            copy += 1
            common = f"{name}_{copy}"
        renamed[name] = common
    return renamed


def free_name(wanted: str, taken: Container[str]) -> str:
    """The name, with a number behind it if it is taken."""
    name, copy = wanted, 1
    while name in taken:
        copy += 1
        name = f"{wanted}_{copy}"
    return name


class _Sharing:
    """The common names and operators, as queries are added one by one."""

    def __init__(self, source: Relation, schema: pa.Schema) -> None:
        self.source = source
        self.relations: list[Relation] = [source]
        self.schemas: dict[str, pa.Schema] = {source.alias: schema}
        self.functions: dict[str, Predicate] = {}
        self.operators: list[Operator] = []
        self.serves: list[int] = []
        self.static_filters: dict[str, tuple[Expr, ...]] = {}
        self._index: dict[object, int] = {}
        self._asked: Counter[object] = Counter()

    def add(self, number: int, bound: BoundQuery) -> BoundQuery:
        """Take in a query; what it becomes in the common names."""
        names = CommonNames(
            {bound.source.alias: self.source.alias}, common_functions(bound.query, self.functions)
        )
        self._asked.clear()
        common: dict[int, int] = {}
        waiting = list(bound.operators)
        while waiting:
            operator = next(op for op in waiting if op.after <= common.keys())
            waiting.remove(operator)
            after = frozenset(common[k] for k in operator.after)
            index = self._operator(operator, after, names, bound)
            common[operator.index] = index
            self.serves[index - 1] |= 1 << number
        used = tuple(self.operators[index - 1] for index in sorted(set(common.values())))
        outputs = tuple(Output(output.name, names(output.expr)) for output in bound.outputs)
        return replace(bound, source=self.source, operators=used, outputs=outputs)

    def _operator(
        self, operator: Operator, after: frozenset[int], names: CommonNames, bound: BoundQuery
    ) -> int:
        """The common index of a query's operator, new or known."""
        if isinstance(operator, Filter):
            expr = names(operator.expr)
            key = (repr(expr), after)  # as text, because 1, 1.0 and TRUE are equal in Python
            if key not in self._index:
                self._index[key] = self._new(replace(operator, expr=expr, after=after))
            return self._index[key]
        assert isinstance(operator, Lookup)  # probes are of joins: `share_joins.py`
        return self._lookup(operator, after, names, bound)

    def _lookup(
        self, lookup: Lookup, after: frozenset[int], names: CommonNames, bound: BoundQuery
    ) -> int:
        """The common index of a look-up: of the same table, by the same keys, of the same rows."""
        relation = next(r for r in bound.query.relations if r.alias == lookup.relation)
        filters = bound.static_filters.get(lookup.relation, ())
        # Under no alias, so that it does not matter what either query calls the table.
        unnamed = names.with_alias(lookup.relation, "")
        keys = frozenset(
            (repr(names(probe)), repr(unnamed(build)))
            for probe, build in zip(lookup.probe_keys, lookup.build_keys, strict=True)
        )
        rows = frozenset(repr(unnamed(condition)) for condition in filters)
        same = (relation.name.lower(), keys, rows, after)
        self._asked[same] += 1  # a query that joins a table twice has two look-ups of it
        meaning = (same, self._asked[same])
        if meaning not in self._index:
            alias = free_name(lookup.relation, self.schemas)
            named = names.with_alias(lookup.relation, alias)
            self.relations.append(replace(relation, alias=alias, window=None))
            self.schemas[alias] = bound.schemas[lookup.relation]
            self.static_filters[alias] = tuple(map(named, filters))
            self._index[meaning] = self._new(
                replace(
                    lookup,
                    relation=alias,
                    probe_keys=tuple(map(named, lookup.probe_keys)),
                    build_keys=tuple(map(named, lookup.build_keys)),
                    after=after,
                )
            )
        index = self._index[meaning]
        common = self.operators[index - 1]
        assert isinstance(common, Lookup)
        names.aliases[lookup.relation] = common.relation
        return index

    def _new(self, operator: Operator) -> int:
        taken = {known.name for known in self.operators}
        name, copy = operator.name, 1
        while name in taken:
            copy += 1
            name = f"{operator.name} #{copy}"
        self.operators.append(replace(operator, index=len(self.operators) + 1, name=name))
        self.serves.append(0)
        return len(self.operators)


@dataclass
class CommonNames:
    """Rewrites a query's expressions into the common aliases and function names."""

    aliases: dict[str, str]
    functions: dict[str, str]

    def with_alias(self, alias: str, common: str) -> CommonNames:
        """The names with one relation's alias settled."""
        return CommonNames({**self.aliases, alias: common}, self.functions)

    def __call__(self, expr: Expr) -> Expr:
        """The expression in the common names."""
        return rewritten(expr, self._renamed)

    def _renamed(self, expr: Expr) -> Expr | None:
        match expr:
            case Column(relation, name) if relation is not None:
                return Column(self.aliases.get(relation, relation), name)
            case UserCall(function, args):
                return UserCall(self.functions[function], tuple(map(self, args)))
        return None
