"""Iterator UDFs, batch by batch: such a function is started once and fed as batches come.

    @pandas_udf("boolean")
    def flagged(parts: Iterator[pd.Series]) -> Iterator[pd.Series]:
        model = load()                  # once, not for every batch
        for part in parts:
            yield model.predict(part)

The fabric wants the answers to one batch before it has the next. So a function is left waiting
at its `yield`. One that asks for more before it answers is told that there is no more; it then
answers what it has, and is started again for the next batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa

Results = Callable[[int, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Spark's own loop around a UDF: batches in, batches out; the number is that of the partition."""


class _Feed(Iterator[pa.RecordBatch]):
    """The batches that a running function asks for."""

    def __init__(self) -> None:
        self._next: pa.RecordBatch | None = None
        self.ended = False

    def give(self, batch: pa.RecordBatch) -> None:
        self._next = batch

    def __next__(self) -> pa.RecordBatch:
        if self.ended or self._next is None:
            self.ended = True
            raise StopIteration
        batch, self._next = self._next, None
        return batch


class FedFunction:
    """A running iterator UDF of one task."""

    def __init__(self, start: Results) -> None:
        self._start = start
        self._running: tuple[_Feed, Iterator[pa.RecordBatch]] | None = None
        self._alone = threading.Lock()

    def __call__(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The results for a batch, in one or several parts; Spark's own error if they do not fit.

        After an error the function is started anew.
        """
        with self._alone:
            feed, results = self._running or self._begin()
            self._running = None
            feed.give(batch)
            found: list[pa.RecordBatch] = []
            while feed.ended or sum(map(len, found)) < len(batch):
                part = next(results, None)
                if part is None:
                    return found
                found.append(part)
            self._running = feed, results
            return found

    def end(self) -> None:
        """Tell the function that there is no more, so that what stands after its loop runs."""
        with self._alone:
            running, self._running = self._running, None
            if running is not None:
                feed, results = running
                feed.ended = True
                for _ in results:
                    pass

    def _begin(self) -> tuple[_Feed, Iterator[pa.RecordBatch]]:
        feed = _Feed()
        return feed, self._start(0, feed)
