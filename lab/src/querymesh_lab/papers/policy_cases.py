"""The papers' generators as cases of `querymesh bench policies`: Stream-Star and S0's look-ups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh_lab.bench.policies.filter_subjects import FilterSubject
from querymesh_lab.bench.policies.race import PolicyCase
from querymesh_lab.papers.cbr import stream_star
from querymesh_lab.papers.cbr.stream_star import Matrix, StreamStar, random_selectivities, skewed
from querymesh_lab.papers.qm import ten_way
from querymesh_lab.papers.qm.ten_way import TenWay

OPERATORS = 6


@dataclass(frozen=True)
class MixedStar(StreamStar):
    """Stream-Star whose foreign keys are renumbered by chance.

    As generated, keys that a dimension lacks are the greater ones, and a mesh that may test for
    thresholds would need no classes: it would know each look-up's outcome beforehand.
    """

    hashed: bool = True

    def source(self, rows: int, seed: int = 0) -> tuple[pa.RecordBatch, Ints]:
        """Tuples of S, and the class of each."""
        batch, kind = super().source(rows, seed)
        for number in range(1, self.joins + 1):
            place = batch.schema.get_field_index(f"fkd{number}")
            keys = self._renumbered(number)[np.asarray(batch.column(place))]
            batch = batch.set_column(place, f"fkd{number}", pa.array(keys))
        return batch, kind

    def dimensions(self) -> dict[str, pa.Table]:
        """The tables d1, d2, …, with keys renumbered in the same way."""
        functions = self.query().functions
        found = {}
        for number in range(1, self.joins + 1):
            keys = self._renumbered(number)[: self.dimension_rows].tolist()
            hidden = map(functions[f"hidden_{number}"].fn, keys)
            pk = pa.array(hidden, pa.int64())
            found[f"d{number}"] = pa.table({"pk": pk, "v": np.arange(self.dimension_rows)})
        return found

    def _renumbered(self, number: int) -> Ints:
        return np.random.default_rng((2, number)).permutation(2 * self.dimension_rows)


def _star(name: str, selectivity: Matrix) -> Callable[[int], FilterSubject]:
    def make(rows: int) -> FilterSubject:
        star = MixedStar(selectivity)
        batch, classes = star.source(rows)
        table = pa.Table.from_batches([batch])
        return FilterSubject(
            name, star.query(), stream_star.SOURCE, table, star.dimensions(), classes,
            kind="look-ups",
        )  # fmt: skip

    return make


def _ten_way(rows: int) -> FilterSubject:
    design = TenWay()
    table, classes = design.source(rows)
    return FilterSubject(
        "ten-way look-ups", design.query(), ten_way.SOURCE, table, design.partner_tables(),
        classes, kind="look-ups",
    )  # fmt: skip


STARS: dict[str, Matrix] = {
    "Stream-Star, A < B": skewed(OPERATORS, 0.15),
    "Stream-Star, A > B": skewed(OPERATORS, 0.95),
    "Stream-Star, random": random_selectivities(OPERATORS, np.random.default_rng(1), 0.05),
    "Stream-Star, no skew": skewed(OPERATORS, 0.05 ** (1 / OPERATORS)),
}

CASES: dict[str, PolicyCase] = {
    **{name: (_star(name, matrix), 60_000, 2_000) for name, matrix in STARS.items()},
    "ten-way look-ups": (_ten_way, 60_000, 1_500),
}
