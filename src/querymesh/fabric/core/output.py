"""Index 0 of the operator index array: rusters that passed every operator become result batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from querymesh.fabric.core.operators import UserCalls
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster, in_parts
from querymesh.fabric.core.token import RouteToken
from querymesh.query.evaluate import evaluate
from querymesh.query.model import BoundQuery


class Gathering:
    """Collects the finished rusters of one window and puts their rows back in arrival order, unless
    they may come in any."""

    def __init__(
        self, bound: BoundQuery, window: ClassificationWindow, in_order: bool = True
    ) -> None:
        self._in_order = in_order
        self._bound = bound
        self._window = window
        self._done: list[Ruster] = []
        self.rows = 0

    def add(self, ruster: Ruster) -> None:
        """Take in a ruster whose token is empty."""
        self._done.append(ruster)
        self.rows += len(ruster)

    def take(self, calls: UserCalls) -> Iterator[pa.RecordBatch]:
        """The results gathered so far, as one batch of the query's output schema; as several where
        texts are too long for one.

        Fewer than were gathered where a function in SELECT raised and its rows are to be dropped.
        """
        together = self._together()
        self._done, self.rows = [], 0
        return in_parts(lambda part: self._batch(part, calls), together)

    def _batch(self, together: Ruster, calls: UserCalls) -> pa.RecordBatch:
        calls.forget_failed()
        arrays = [
            evaluate(output.expr, together.column, len(together), calls.functions, calls)
            for output in self._bound.outputs
        ]
        schema = self._bound.output_schema
        arrays = [
            array if array.type == kind.type else array.cast(kind.type)
            for array, kind in zip(arrays, schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        failed = calls.take_failed()
        return batch if failed is None else batch.filter(pa.array(~failed))

    def _together(self) -> Ruster:
        if not self._in_order:
            return self._done[0].followed_by(self._done[1:])
        rows = np.concatenate([ruster.rows for ruster in self._done])
        order = np.argsort(rows, kind="stable")
        joined = self._done[0].matches
        matches = {
            name: np.concatenate([ruster.matches[name] for ruster in self._done])[order]
            for name in joined
        }
        return Ruster(self._window, rows[order], RouteToken(()), 0, matches)
