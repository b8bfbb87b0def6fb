"""Stream-Star (CBR § 6.1): a stream S with a classifier attribute, joined with N dimension tables.

::

    S   attrC | fkd1 … fkdN | const1 const2  seq1 seq2  key1 key2  random1 random2
          |       |                      not correlated with anything
          |       +-- a primary key of d1 with the chance `selectivity[class][0]`, else of no row
          +---------- the tuple's class, from 0 on; classes in equal shares and random order

Any matrix of selectivities, class × operator, is exact in expectation: whether a tuple has a
partner in a dimension is drawn for each dimension by itself, given the class. Foreign keys are
spread alike over the 10,000 rows of a dimension, or over as many keys that it lacks, so that a hash
of them tells nothing.

With `hashed` the dimensions are kept under keyed hashes, as in `ten_way`: a look-up is then some
microseconds of work for each tuple, as it is in an engine that works tuple by tuple.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from querymesh.arrays import Array, Ints
from querymesh.errors import QueryMeshError
from querymesh.query.model import Query
from querymesh.query.parse.query import query
from querymesh.query.predicate.predicate import Predicate

Matrix = tuple[tuple[float, ...], ...]

SOURCE = "S"
CLASSIFIER = "attrC"
DIMENSION_ROWS = 10_000
UNCORRELATED = ("const1", "const2", "seq1", "seq2", "key1", "key2", "random1", "random2")
ATTRIBUTES = (CLASSIFIER, *UNCORRELATED)
"""What a router may look at."""

TABLE_1: Matrix = ((0.32, 0.10, 0.55), (0.31, 0.20, 0.65), (0.27, 0.90, 0.60))
"""CBR's example 3.1: the classes A = a, b, c and three operators."""


@dataclass(frozen=True)
class Hidden:
    """The keyed hash under which a dimension keeps its primary keys; 63 bits of it."""

    secret: bytes

    def __call__(self, key: int) -> int:
        """The pseudonym of a key."""
        digest = hashlib.blake2b(b"%d" % key, digest_size=8, key=self.secret).digest()
        return int.from_bytes(digest, "little") >> 1


@dataclass(frozen=True)
class StreamStar:
    """One stream and its dimensions; `selectivity[c][j]` is of class c and operator j + 1."""

    selectivity: Matrix
    hashed: bool = False
    dimension_rows: int = DIMENSION_ROWS

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.selectivity}
        if len(widths) != 1 or 0 in widths:
            raise QueryMeshError("every class needs a selectivity for each operator")
        if not all(0 <= s <= 1 for row in self.selectivity for s in row):
            raise QueryMeshError(f"selectivities lie between 0 and 1: {self.selectivity}")

    @property
    def joins(self) -> int:
        """How many dimensions there are."""
        return len(self.selectivity[0])

    def source(self, rows: int, seed: int = 0) -> tuple[pa.RecordBatch, Ints]:
        """Tuples of S, and the class of each."""
        rng = np.random.default_rng((seed, 1))
        known = np.array(self.selectivity)
        kind = rng.integers(0, len(known), rows)
        columns: dict[str, Array] = {CLASSIFIER: kind}
        for number in range(self.joins):
            passes = rng.random(rows) < known[kind, number]
            key = rng.integers(0, self.dimension_rows, rows)
            columns[f"fkd{number + 1}"] = np.where(passes, key, key + self.dimension_rows)
        columns["const1"] = np.full(rows, 7)
        columns["const2"] = np.full(rows, 1.5)
        columns["seq1"] = np.arange(rows)
        columns["seq2"] = 1000.0 + 0.5 * np.arange(rows)
        for name in ("key1", "key2"):
            columns[name] = rng.integers(0, self.dimension_rows, rows)
        columns["random1"] = rng.integers(0, 100, rows)
        columns["random2"] = rng.random(rows)
        return pa.record_batch(columns), kind

    def dimensions(self) -> dict[str, pa.Table]:
        """The tables d1, d2, …, each with a primary key and a payload."""
        keys = range(self.dimension_rows)
        found = {}
        for number in range(1, self.joins + 1):
            kept = map(_secret(number), keys) if self.hashed else keys
            pk = pa.array(list(kept), pa.int64())
            found[f"d{number}"] = pa.table({"pk": pk, "v": np.arange(self.dimension_rows)})
        return found

    def query(self) -> Query:
        """The query that joins S with every dimension."""
        numbers = range(1, self.joins + 1)
        relations = ", ".join(["S s", *(f"d{n}" for n in numbers)])
        keys = " AND ".join(f"{self._probe(n)} = d{n}.pk" for n in numbers)
        given = {f"hidden_{n}": _hiding(n) for n in numbers if self.hashed}
        selected = ", ".join(["s.seq1", *(f"d{n}.v AS v{n}" for n in numbers)])
        return query(f"SELECT {selected} FROM {relations} WHERE {keys}", functions=given)

    def _probe(self, number: int) -> str:
        return f"hidden_{number}(s.fkd{number})" if self.hashed else f"s.fkd{number}"


def _secret(number: int) -> Hidden:
    return Hidden(f"secret of d{number}".encode())


def _hiding(number: int) -> Predicate:
    name = f"hidden_{number}"
    return Predicate(_secret(number), name, returns=pa.int64(), vectorised=False)


def skewed(joins: int, a: float, aggregate: float = 0.05) -> Matrix:
    """CBR's Table 3: class k passes operator k with chance A and every other with chance B.

    B is such that a tuple of any class passes all of them with the chance `aggregate`.

    >>> skewed(2, 0.25)
    ((0.25, 0.2), (0.2, 0.25))
    """
    b = min(1.0, (aggregate / a) ** (1 / (joins - 1)))
    return tuple(tuple(a if op == kind else b for op in range(joins)) for kind in range(joins))


def random_selectivities(
    joins: int, rng: np.random.Generator, aggregate: float | None = None
) -> Matrix:
    """CBR § 6.4: each class and operator with a selectivity of its own, any between 0 and 1.

    With an `aggregate` (§ 6.5) that is the product of each class: one after another is drawn
    between what is still needed and 1, the last is what is left, and all are shuffled.
    """
    if aggregate is None:
        return tuple(tuple(row) for row in rng.uniform(0.0, 1.0, (joins, joins)).tolist())
    return tuple(_with_product(joins, rng, aggregate) for _ in range(joins))


def _with_product(joins: int, rng: np.random.Generator, product: float) -> tuple[float, ...]:
    drawn = []
    for _ in range(joins - 1):
        drawn.append(float(rng.uniform(product, 1.0)))
        product = min(1.0, product / drawn[-1])
    return tuple(rng.permutation([*drawn, product]).tolist())


def best_orders(selectivity: Sequence[Sequence[float]]) -> dict[int, tuple[int, ...]]:
    """For each class its operators, numbered from 1, the most selective first."""
    return {
        kind: tuple(int(op) + 1 for op in np.argsort(row, kind="stable"))
        for kind, row in enumerate(selectivity)
    }
