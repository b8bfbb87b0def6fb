"""Which column a name means: resolved as Spark does, without regard to case."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from querymesh.errors import SchemaError, did_you_mean
from querymesh.query.expr import Column, Expr, rewritten
from querymesh.query.model import Relation


class Scope:
    """The relations of a query with their schemas, by alias.

    `hidden` are (alias, column) pairs that unqualified names do not see: the second copies that
    JOIN ... USING merges away.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        schemas: Mapping[str, pa.Schema],
        hidden: Collection[tuple[str, str]] = (),
    ) -> None:
        self.relations = relations
        self.schemas = schemas
        self.hidden = {(alias, name.lower()) for alias, name in hidden}

    def type_of(self, column: Column) -> pa.DataType:
        """The Arrow type of a resolved column."""
        return self.schemas[column.relation or ""].field(column.name).type

    def visible(self, alias: str) -> list[str]:
        """The columns of a relation that `*` shows."""
        return [n for n in self.schemas[alias].names if (alias, n.lower()) not in self.hidden]

    def alias(self, name: str, where: str) -> str:
        """The alias as written in FROM."""
        for relation in self.relations:
            if relation.alias.lower() == name.lower():
                return relation.alias
        known = [relation.alias for relation in self.relations]
        raise SchemaError(f"unknown relation {name} in {where}: {did_you_mean(name, known)}")

    def resolve(self, expr: Expr) -> Expr:
        """The expression with every column in its schema's spelling and with its relation."""
        return rewritten(expr, lambda e: self.column(e) if isinstance(e, Column) else None)

    def column(self, column: Column) -> Column:
        """One column resolved; SchemaError if no relation, or more than one, has it."""
        if column.relation is not None:
            alias = self.alias(column.relation, f"{column.relation}.{column.name}")
            found = self._matches(alias, column.name)
            if not found:
                raise self._unknown(column.name, [alias])
            return self._only(column.name, [(alias, name) for name in found])
        candidates = [
            (relation.alias, name)
            for relation in self.relations
            for name in self._matches(relation.alias, column.name)
            if (relation.alias, name.lower()) not in self.hidden
        ]
        if not candidates:
            raise self._unknown(column.name, [relation.alias for relation in self.relations])
        return self._only(column.name, candidates)

    def _matches(self, alias: str, name: str) -> list[str]:
        names = self.schemas[alias].names
        exact = [known for known in names if known == name]
        return exact or [known for known in names if known.lower() == name.lower()]

    def _only(self, name: str, candidates: Sequence[tuple[str, str]]) -> Column:
        if len(candidates) > 1:
            listed = ", ".join(f"{alias}.{known}" for alias, known in candidates)
            raise SchemaError(f"column {name} is ambiguous: it may be {listed}; name its relation")
        return Column(*candidates[0])

    def _unknown(self, name: str, aliases: Sequence[str]) -> SchemaError:
        known = [column for alias in aliases for column in self.schemas[alias].names]
        named = {relation.alias: relation.name for relation in self.relations}
        streams = " or ".join(
            named[alias] if named[alias] == alias else f"{named[alias]} {alias}"
            for alias in aliases
        )
        return SchemaError(f"{streams} has no column {name}: {did_you_mean(name, known)}")
