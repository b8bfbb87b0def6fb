"""Eddies on streams whose operators' outcomes are written into the data, and what they decided.

Operator k of a stream is the condition `pk`, a boolean column; `id` counts the tuples.
"""

from collections import defaultdict

import numpy as np
import pyarrow as pa

import querymesh as qm
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.routers.content import ContentRouter
from querymesh.fabric.routers.eddy import EddyRouter


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
