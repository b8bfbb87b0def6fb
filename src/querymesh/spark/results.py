"""Several queries over one source in one pass (QM § 5.2): a DataFrame for each of them.

One fabric stage gives the results of all, each row with the number of its query; a query's own
DataFrame is a part of that. Spark would run the stage again for each part, so a batch result is
kept (persisted) once it is computed, and a stream is split batch by batch (`Results.write_each`).
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import overload

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamWriter

from querymesh.errors import QueryMeshError
from querymesh.query.bind.share import QUERY, result_name

Sink = Callable[[int, DataFrame, int], None]
"""Takes the number of a query (from 0), its results in one micro-batch, and the batch's id."""


Finish = Callable[[DataFrame], DataFrame]
"""What Spark does with the rows of one query, above the pass."""


class Results(Sequence[DataFrame]):
    """The DataFrames of queries that share one pass, in the order the queries were given.

    Of a batch source the pass is made when the first of them is asked for, and its result is kept
    for the others until `unpersist()`, or the end of a `with` block::

        with qm.run_all([cheap, risky], trades) as (cheap_ones, risky_ones):
            ...

    It is also let go when the last of these DataFrames is gone; one derived from them does not hold
    it. Their columns may all be NULL as far as Spark knows.

    Of a stream, `write_each` starts one streaming query for all of them. Each can also be written
    by itself, which makes a pass of its own.
    """

    def __init__(self, together: DataFrame, queries: int, finish: Sequence[Finish] = ()) -> None:
        self.together = together if together.isStreaming else together.persist()
        self._finish = finish or [_as_it_is] * queries
        self._each = self._parts(self.together)
        if not together.isStreaming:
            for part in self._each:
                # While a part is there, so is what it is part of.
                part._querymesh_results = self  # type: ignore[attr-defined]
            weakref.finalize(self, _let_go, self.together).atexit = False

    @overload
    def __getitem__(self, index: int) -> DataFrame: ...

    @overload
    def __getitem__(self, index: slice) -> list[DataFrame]: ...

    def __getitem__(self, index: int | slice) -> DataFrame | list[DataFrame]:
        return self._each[index]

    def __len__(self) -> int:
        return len(self._each)

    def __iter__(self) -> Iterator[DataFrame]:
        return iter(self._each)

    def __enter__(self) -> Results:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.unpersist()

    def unpersist(self) -> None:
        """Let go of the kept result; asking again makes the pass again."""
        if not self.together.isStreaming:
            self.together.unpersist()

    def write_each(self, sink: Sink) -> DataStreamWriter:
        """A DataStreamWriter that gives every query's results of every micro-batch to `sink`.

        The pass is made once a batch. Give the writer a checkpoint and start it as usual:
        `results.write_each(sink).option("checkpointLocation", folder).start()`. As with Spark's own
        `foreachBatch`, a batch may come again after a failure, under the same id.
        """
        if not self.together.isStreaming:
            raise QueryMeshError("write_each is for streams: of a batch source, use each DataFrame")

        def write(batch: DataFrame, number: int) -> None:
            batch.persist()
            try:
                for query, part in enumerate(self._parts(batch)):
                    sink(query, part, number)
            finally:
                batch.unpersist()

        return self.together.writeStream.foreachBatch(write)

    def _parts(self, together: DataFrame) -> list[DataFrame]:
        return [finish(_part(together, number)) for number, finish in enumerate(self._finish)]


def _as_it_is(part: DataFrame) -> DataFrame:
    return part


def _let_go(together: DataFrame) -> None:
    """Unpersist what nobody can ask for any more, on a thread of its own.

    Garbage is collected at any moment, also while this thread talks to the JVM: to begin another
    call on the same connection would mix up the two. Spark may be gone by then, too.
    """

    def unpersist() -> None:
        with contextlib.suppress(Exception):
            together.unpersist()

    threading.Thread(target=unpersist, name="querymesh-unpersist", daemon=True).start()


def _part(together: DataFrame, number: int) -> DataFrame:
    return together.filter(F.col(QUERY) == number).select(f"{result_name(number)}.*")
