"""Generated data of known classes: which class a row is of, and which predicates it will pass.

The design comes first, the data after it: a matrix of pass rates by class and predicate is drawn
into a matrix of verdicts, and each case then writes rows on which its predicates come to exactly
those verdicts. So the limits of a case are known without running it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Ints

PassRates = Sequence[Sequence[float]]

OPPOSITE: PassRates = (
    (0.50, 0.03, 0.95, 0.95),
    (0.50, 0.95, 0.03, 0.95),
    (0.50, 0.95, 0.95, 0.03),
)
"""Pass rates of four predicates in three classes: what drops nearly all of one passes nearly all of
the others. The first predicate is the cheap one: it halves every class, and comes first."""

UNIFORM: PassRates = ((0.70, 0.40, 0.50, 0.60),) * 3
"""The same four predicates where the class says nothing."""


@dataclass(frozen=True)
class ClassedRows:
    """Rows, their true classes, and the verdict of each predicate on each row, by design."""

    table: pa.Table
    classes: Ints
    passes: Bools

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.table.num_rows)

    def head(self, rows: int) -> ClassedRows:
        """The first rows: classes come in random order, so this is a fair sample."""
        return ClassedRows(self.table.slice(0, rows), self.classes[:rows], self.passes[:rows])


def draw(rates: PassRates, rows: int, rng: np.random.Generator) -> tuple[Ints, Bools]:
    """Classes in equal shares and random order, and independent verdicts within each class."""
    classes = rng.integers(0, len(rates), rows)
    passes = rng.random((rows, len(rates[0]))) < np.asarray(rates)[classes]
    return classes, passes


CHANNELS = ("atm", "branch", "call", "desk", "export", "forum", "guest", "hotline", "import")


def describing_columns(classes: Ints, rng: np.random.Generator) -> dict[str, pa.Array]:
    """What a classifier can look at: a channel that tells the class, and three that tell nothing.

    Several channels belong to each class, in no order that sorting would reveal.
    """
    rows, kinds = len(classes), int(classes.max()) + 1 if len(classes) else 1
    pick = rng.integers(0, len(CHANNELS) // kinds, rows) * kinds + classes
    return {
        "id": pa.array(np.arange(rows)),
        "channel": pa.array(CHANNELS).take(pa.array(pick)),
        "region": pa.array([f"r{k:02}" for k in range(12)]).take(
            pa.array(rng.integers(0, 12, rows))
        ),
        "amount": pa.array(rng.gamma(2.0, 40.0, rows).round(2)),
        "hour": pa.array(rng.integers(0, 24, rows)),
    }
