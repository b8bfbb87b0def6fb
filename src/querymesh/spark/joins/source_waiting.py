"""What waits at the sources of a running join, by Spark's own progress (OM § 1.2, input buffering).

OM's input queue has the tuples that have arrived and were not taken yet. A micro-batch takes what
its sources have when it begins, as far as their limits let it::

    in the queue when a batch begins  =  taken by it     +  left behind
                                         numInputRows       latestOffset - endOffset

What was taken is known of every source. What was left behind is known in rows where a batch took
all there was, and of Kafka, whose offsets count rows. Of other sources (files with a limit, in
open-source Spark) Spark does not tell, and neither do we; what they tell in other units is handed
on as it is, such as Kafka's lag or the outstanding files of some sources.

There is no listener that would have to be taken away again: the query is looked up by its id once,
and asked. When it has ended, it is asked once more and let go.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from querymesh.optimize.planning.planner import Waiting
from querymesh.spark.context import streaming_leaves

log = logging.getLogger("querymesh")

KAFKA = "Kafka"
"""How the description of a source begins whose offsets count rows."""


class SparkSourceWatch:
    """Asks a running query what waits at each stream's sources.

    `reads` has the places of each stream's sources among those of the query; a source that two
    streams share is in both.
    """

    def __init__(self, session: SparkSession, reads: Mapping[str, Sequence[int]]) -> None:
        self._session = session
        self._reads = reads
        self._queries: dict[str, Any] = {}
        self._last: dict[str, Waiting] = {}

    def ask(self, query_id: str | None) -> dict[str, Waiting]:
        """What Spark last told, by stream; empty before it has told anything.

        While a batch runs, that is of the batch before.
        """
        try:
            progress = None if query_id is None else self._progress(query_id)
            if progress is not None:
                self._last = waiting_of(progress, self._reads) or self._last
        except Exception:
            log.debug("what waits at the sources is not known", exc_info=True)
        return self._last

    def _progress(self, query_id: str) -> Mapping[str, Any] | None:
        query = self._queries.get(query_id) or self._session.streams.get(query_id)
        if query is None:
            return None
        active = bool(query.isActive)
        progress: Mapping[str, Any] | None = query.lastProgress
        if active:
            self._queries = {query_id: query}
        else:
            self._queries.pop(query_id, None)
        return progress


def watch_sources(streams: Mapping[str, DataFrame]) -> SparkSourceWatch | None:
    """A watch over the sources of streams that one query reads in this order."""
    first = next(iter(streams.values()), None)
    return None if first is None else SparkSourceWatch(first.sparkSession, source_places(streams))


def source_places(frames: Mapping[str, DataFrame]) -> dict[str, tuple[int, ...]]:
    """By stream, the places of its sources among all of a query that reads the streams in turn.

    Spark has one source for all that read the same `readStream`, and lists sources in the order in
    which they are first read.
    """
    seen: list[Any] = []
    places: dict[str, tuple[int, ...]] = {}
    for alias, frame in frames.items():
        mine = []
        for leaf in streaming_leaves(frame):
            if leaf not in seen:
                seen.append(leaf)
            mine.append(seen.index(leaf))
        places[alias] = tuple(mine)
    return places


def waiting_of(
    progress: Mapping[str, Any], reads: Mapping[str, Sequence[int]]
) -> dict[str, Waiting]:
    """A query's progress by stream; nothing if its sources are not those that were expected."""
    sources = list(progress["sources"])
    uses = [place for places in reads.values() for place in places]
    if len(sources) != len(set(uses)):
        return {}
    found = {}
    for alias, places in reads.items():
        mine = [sources[place] for place in places]
        shares = [1 / uses.count(place) for place in places]
        lefts = [left_behind(source) for source in mine]
        known = [rows for rows in lefts if rows is not None]

        def of_mine(name: str, mine: list[Any] = mine, shares: list[float] = shares) -> float:
            pairs = zip(mine, shares, strict=True)
            return sum(float(source.get(name) or 0.0) * share for source, share in pairs)

        found[alias] = Waiting(
            batch=int(progress["batchId"]),
            taken=round(of_mine("numInputRows")),
            left=sum(known) if len(known) == len(lefts) else None,
            arriving=of_mine("inputRowsPerSecond"),
            processed=of_mine("processedRowsPerSecond"),
            told={
                name: str(value)
                for source in mine
                for name, value in dict(source.get("metrics") or {}).items()
            },
        )
    return found


def left_behind(source: Mapping[str, Any]) -> int | None:
    """Rows that a source had and the batch did not take; None if the source does not tell.

    >>> kafka = {"description": "KafkaV2[Subscribe[clicks]]", "endOffset": '{"clicks": {"0": 5}}'}
    >>> left_behind({**kafka, "latestOffset": '{"clicks": {"0": 12}}'})
    7
    """
    end, latest = (_offset(source.get(name)) for name in ("endOffset", "latestOffset"))
    if latest is None or end is None:
        return None
    if latest == end:
        return 0
    if not str(source.get("description", "")).startswith(KAFKA):
        return None  # seconds, files, versions: any unit the source likes
    return max(0, sum(_numbers(latest)) - sum(_numbers(end)))


def _offset(given: Any) -> Any:
    """An offset, which PySpark hands on as text: JSON, or "None" where there is none."""
    if given == "None":
        return None
    try:
        return json.loads(given) if isinstance(given, str) else given
    except json.JSONDecodeError:
        return given


def _numbers(offset: Any) -> list[int]:
    if isinstance(offset, Mapping):
        return [number for each in offset.values() for number in _numbers(each)]
    return [offset] if isinstance(offset, int) else []
