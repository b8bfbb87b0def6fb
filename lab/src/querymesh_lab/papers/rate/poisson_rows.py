"""Rows for a plan of RBO § 5: arrivals by a Poisson process, a key for every predicate.

Two streams that a predicate joins share a column, named after both, with 1/selectivity values: a
pair of rows matches with the predicate's selectivity. A selection has a column of its own. The rows
of a stream go by the query and the seed, not by the plan: all plans get the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats
from querymesh.cost.plan_tree import PlanTree, Select, Source, inputs_of, sources_of
from querymesh.optimize.rate.stream_query import RateQuery, Selection

TIME, SIDE = "ts", "side"
EPOCH_US = 1_700_000_000_000_000
_TIME_TYPE = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class PoissonRows:
    """Rows in the order of their arrival, with when that is, in seconds from the start."""

    arrivals_s: Floats
    table: pa.Table

    @staticmethod
    def concat(first: PoissonRows, second: PoissonRows) -> PoissonRows:
        """These rows followed by later ones."""
        arrivals_s = np.concatenate([first.arrivals_s, second.arrivals_s])
        return PoissonRows(arrivals_s, pa.concat_tables([first.table, second.table]))

    def cut(self, count: int) -> tuple[PoissonRows, PoissonRows]:
        """These rows in two parts: the first so many, and the rest."""
        return (
            PoissonRows(self.arrivals_s[:count], self.table.slice(0, count)),
            PoissonRows(self.arrivals_s[count:], self.table.slice(count)),
        )


class DrawnPlan:
    """A plan with the columns that are at each place of it, and the rows of its streams."""

    def __init__(self, query: RateQuery, tree: PlanTree, until_s: float, seed: int = 0) -> None:
        self.query, self.tree, self.until_s, self.seed = query, tree, until_s, seed

    def columns(self, tree: PlanTree) -> list[str]:
        """What rows of a subtree still have: the keys and selections that come above it."""
        names = {source.name for source in sources_of(tree)}
        keys = [
            f"{each.left}{each.right}".lower()
            for each in self.query.predicates
            if len(names & {each.left, each.right}) == 1
        ]
        done = set(_selected(tree))
        waiting = [s.name for s in self._selections() if s.stream in names and s.name not in done]
        return keys + waiting

    def schema(self, tree: PlanTree) -> pa.Schema:
        """The columns of the rows that a subtree gives out."""
        return pa.schema([(TIME, _TIME_TYPE), *map(self._field, self.columns(tree))])

    def input_schema(self, tree: PlanTree) -> pa.Schema:
        """Of what an operator takes in: the columns of all sides, and which side a row is of."""
        names = dict.fromkeys(name for side in inputs_of(tree) for name in self.columns(side))
        return pa.schema([(SIDE, pa.int32()), (TIME, _TIME_TYPE), *map(self._field, names)])

    def as_input(self, table: pa.Table, side: int, tree: PlanTree) -> pa.Table:
        """Rows of one side as an operator takes them in."""
        schema, rows = self.input_schema(tree), table.num_rows
        found = {name: table[name] for name in table.column_names}
        found[SIDE] = pa.array(np.full(rows, side, np.int32))
        columns = [
            found[field.name].cast(field.type)
            if field.name in found
            else pa.nulls(rows, field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)

    def no_rows(self, tree: PlanTree) -> PoissonRows:
        """An empty batch with the columns that a subtree gives out."""
        return PoissonRows(np.zeros(0), self.schema(tree).empty_table())

    def rows_of(self, source: Source) -> PoissonRows:
        """The rows of a stream, as many as there are or can have come."""
        count = self._count(source)
        place = next(n for n, s in enumerate(self.query.streams) if s.name == source.name)
        columns = self.columns(source)
        # A generator for each column: a longer run has the rows of a shorter one, and more.
        drawn = [np.random.default_rng((self.seed, place, n)) for n in range(len(columns) + 1)]
        arrivals_s = np.cumsum(drawn[0].exponential(1 / source.rows_a_second, count))
        table = {TIME: pa.array(EPOCH_US + (arrivals_s * 1e6).astype(np.int64), _TIME_TYPE)}
        values = {f"{p.left}{p.right}".lower(): 1 / p.selectivity for p in self.query.predicates}
        for name, own in zip(columns, drawn[1:], strict=True):
            wanted = values.get(name)
            some = own.random(count) if wanted is None else own.integers(0, round(wanted), count)
            table[name] = pa.array(some)
        return PoissonRows(arrivals_s, pa.table(table))

    def _count(self, source: Source) -> int:
        if self.until_s == math.inf:
            return round(source.size)
        expected = source.rows_a_second * self.until_s
        most = math.ceil(expected + 6 * math.sqrt(expected) + 10)
        return most if source.size > most else round(source.size)

    def _selections(self) -> list[Selection]:
        return [step for step in self.query.steps if isinstance(step, Selection)]

    def _field(self, name: str) -> tuple[str, pa.DataType]:
        selections = {selection.name for selection in self._selections()}
        return name, pa.float64() if name in selections else pa.int64()


def _selected(tree: PlanTree) -> list[str]:
    """The names of the selections in a subtree."""
    found = [tree.name] if isinstance(tree, Select) else []
    return found + [name for child in inputs_of(tree) for name in _selected(child)]
