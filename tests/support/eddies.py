"""Eddies on streams whose operators' outcomes are written into the data, and what they decided.

Operator k of a stream is the condition `pk`, a boolean column; `id` counts the tuples.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa

import querymesh as qm
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.routers.content import ContentRouter
from querymesh.fabric.routers.eddy import EddyRouter
from querymesh.fabric.routers.routing import PAPER

ONE_BY_ONE = replace(PAPER, chunk=1)
NEVER = replace(ONE_BY_ONE, probability=1e-12)
"""Nothing is profiled: only the pairs that are given are used."""

QUICK = replace(PAPER, probability=0.3, sample=60, trial_rows=100, chunk=50)
"""Learning that shows something within some hundred tuples."""

SKEWED = [[0.1, 0.9, 0.8], [0.9, 0.1, 0.8], [0.8, 0.9, 0.1]]
"""By the value of c, each operator's selectivity: each value has its own best first operator."""


def stream(outcomes, **attributes) -> pa.RecordBatch:
    """A row of outcomes for each tuple, and columns of attributes."""
    outcomes = np.asarray(outcomes, bool)
    columns = {"id": pa.array(range(len(outcomes)), pa.int64()), **attributes}
    return pa.record_batch(columns | {f"p{k + 1}": o for k, o in enumerate(outcomes.T)})


def bound_of(batch: pa.RecordBatch):
    conditions = [name for name in batch.schema.names if name.startswith("p")]
    query = qm.query(f"SELECT id FROM s WHERE {' AND '.join(conditions)}")
    return query.bind({"s": batch.schema})


def eddy(batch, routing, seed=0) -> EddyRouter:
    return EddyRouter(bound_of(batch).operators, routing, seed=seed)


def content(batch, routing, *attributes, seed=0) -> ContentRouter:
    """Only the attributes that are named may become classifiers."""
    return ContentRouter(bound_of(batch).operators, routing, attributes, seed=seed)


def run(batch, router) -> Fabric:
    fabric = Fabric(bound_of(batch))
    kept = [i for out in fabric.run(batch, router) for i in out["id"].to_pylist()]
    conditions = [np.asarray(c) for n, c in zip(batch.schema.names, batch.columns, strict=True)
                  if n.startswith("p")]  # fmt: skip
    wanted = np.asarray(batch["id"])[np.all(conditions, axis=0)].tolist()
    assert kept == wanted, "whatever the routes, the same results in the same order"
    return fabric


def watched(router) -> dict[int, list[int]]:
    """By tuple, the operators it will be sent to."""
    ways = defaultdict(list)
    hear = router.hear

    def listen(before, chosen):
        for number in np.asarray(chosen.window.batch["id"])[chosen.rows].tolist():
            ways[number].append(chosen.token.top)
        return hear(before, chosen)

    router.hear = listen
    return ways


def dependent(rng, rows, by_value, attribute="c"):
    """A stream of tuples whose attribute tells each operator's selectivity: by_value[value][op]."""
    values = rng.integers(0, len(by_value), rows)
    outcomes = rng.random((rows, len(by_value[0]))) < np.asarray(by_value)[values]
    return stream(outcomes, **{attribute: values})


def learned(batch, routing, *attributes, seed=0):
    router = content(batch, routing, *attributes, seed=seed)
    run(batch, router)
    return router.learning


def with_column(batch, name, values):
    return batch.append_column(name, values if isinstance(values, pa.Array) else pa.array(values))


def noise(batch, name, seed=9):
    values = np.random.default_rng(seed).integers(0, 5, batch.num_rows)
    return with_column(batch, name, values)


def fed(learning, index, values, outcomes, calls):
    """A turn of an operator: its sample, and the calls of other tuples meanwhile."""
    learning.set_out(1000)
    learning.visited(1, round(1000 * calls))
    learning.sampled(index, pa.record_batch({"c": values}), np.array(outcomes, float))
    learning.advance(1)


def tried(learning, calls):
    learning.set_out(QUICK.trial_rows)
    learning.visited(2, round(QUICK.trial_rows * calls))
    learning.advance(1)


def two_operators(**settings):
    batch = stream(np.ones((1, 2), bool), c=[0])
    return content(batch, replace(QUICK, sample=4, **settings), "c").learning


def column_of(router, index, value) -> float:
    """S of the partition of a value."""
    pair = router.estimates.pairs[index]
    [name] = pair.attributes
    code = router.partitions.codes(pair.attributes, pair.count, lambda _: pa.array([value]))
    assert name in ("a", "b", "c")
    return float(pair.selectivity[code[0]])
