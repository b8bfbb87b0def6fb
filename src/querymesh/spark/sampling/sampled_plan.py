"""A physical plan made to read a few rows: limits above its sources, whole inputs refused.

    LocalLimit 500                         at most so many rows a partition come out
    +- Project [url, url RLIKE … AS c0]
       +- Filter (k < 40)
          +- LocalLimit 4000               and so many are read, however few the filter keeps
             +- FileSourceScan parquet     as planned: pruned partitions, pushed filters, columns

The limits are put into the physical plan, where what was pushed into the scan stays there: a
logical limit below a filter would keep the filter from being pushed. Sorts, repartitions and
limits of the DataFrame itself change no row and are left out. What needs all of its input before
it gives a row (an aggregate, a window, a join by shuffle) is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from querymesh.spark.context import java, java_session, lineage
from querymesh.spark.sampling.physical_plan import PlanNode
from querymesh.spark.sampling.read_bytes import COLUMNAR
from querymesh.spark.sampling.sources import source_of

READ_FOR_ONE = 32
"""With a filter below, so many rows are read at most for each one that is wanted …"""

READ_FOR_ONE_SLOW = 4
"""… and so many where each goes through Python or a text parser."""

SMALL_SIDE_BYTES = 10 << 20
"""A join's side that is sent to all tasks is computed whole, if it reads no more than this."""


class TooExpensive(Exception):  # noqa: N818
    """A sample would run the whole job, or most of it; the text says why."""


@dataclass(frozen=True)
class SampledPlan:
    """A plan ready to run.

    A task gives at most `share` rows and reads at most `most_read` of each of its `sources`, which
    are the nodes of the JVM that count what was read.
    """

    plan: Any
    sources: tuple[Any, ...]
    share: int
    most_read: int

    def rows_read(self) -> int:
        """How many rows the sources gave so far."""
        counts = [source.metrics().get("numOutputRows") for source in self.sources]
        return sum(int(count.get().value()) for count in counts if count.isDefined())

    def has_searched(self, rows: int) -> bool:
        """Whether so much was read for `rows` rows that filters must keep few of them."""
        return self.most_read > self.share and self.rows_read() >= READ_FOR_ONE_SLOW * rows

    def reads_all(self, read: int) -> bool:
        """Whether no task can have stopped before its source ended, if so many rows were read."""
        return self.most_read <= self.share or read < self.most_read


def sampled_plan(session: SparkSession, plan: PlanNode, rows: int) -> SampledPlan:
    """The plan with limits so that each partition gives at most `rows`; TooExpensive if none."""
    most_read = _most_read(plan, rows)
    rebuilt = _limited(session, _rebuilt(session, plan, most_read), rows)
    ready = java(session).org.apache.spark.sql.execution.QueryExecution.prepareExecutedPlan(
        java_session(session), rebuilt
    )
    return SampledPlan(ready, tuple(_leaves(ready)), rows, most_read)


def limit_of(plan: PlanNode, otherwise: int) -> int:
    """The least limit that the DataFrame itself has."""
    limits = [int(node.node.limit()) for node in plan.walk() if node.kind in _LIMITS]
    return min((limit for limit in limits if limit >= 0), default=otherwise)


def check_cheap(plan: PlanNode) -> None:
    """Raise TooExpensive where a sample of the plan would have to read all of a source."""
    if plan.kind in _BROADCAST_JOINS:
        build, stream = _sides(plan)
        _check_small(build)
        check_cheap(stream)
        return
    if plan.kind in _WHOLE_INPUT:
        raise TooExpensive(f"{_WHOLE_INPUT[plan.kind]} needs all of its rows first")
    if plan.children and plan.kind not in _ROW_BY_ROW and plan.kind not in _LEFT_OUT:
        raise TooExpensive(f"it is not known whether Spark's {plan.kind} needs all of its rows")
    if plan.kind == "RowDataSourceScan":
        raise TooExpensive("its source may read everything whatever is asked of it")
    if plan.kind in ("RDDScan", "ExternalRDDScan") and _shuffles(plan.node):
        raise TooExpensive("the RDD it is made of shuffles its rows first")
    for child in plan.children:
        check_cheap(child)


def with_leaves(plan: PlanNode, change: Callable[[PlanNode], PlanNode]) -> PlanNode:
    """The plan with other leaves where it is sampled, which is not a side sent to all tasks."""
    if not plan.children:
        return change(plan)
    whole = _whole_side(plan)
    below = [child if child is whole else with_leaves(child, change) for child in plan.children]
    return replace(plan, children=tuple(below))


def partition_count(plan: PlanNode) -> int:
    """How many partitions there are to choose from; nothing runs."""
    counts: list[int] = []

    def count(leaf: PlanNode) -> PlanNode:
        counts.append(int(leaf.node.execute().getNumPartitions()))
        return leaf

    with_leaves(plan, count)
    fewer = [int(each.node.numPartitions()) for each in plan.walk() if each.kind == "Coalesce"]
    return min([sum(counts), *fewer])


def _rebuilt(session: SparkSession, plan: PlanNode, most_read: int) -> Any:
    if not plan.children:
        return _limited(session, plan.node, most_read)
    if plan.kind in _LEFT_OUT:
        return _rebuilt(session, plan.children[0], most_read)
    whole = _whole_side(plan)
    below = [
        child.node if child is whole else _rebuilt(session, child, most_read)
        for child in plan.children
    ]
    return plan.node.withNewChildren(_scala(session, below))


def _limited(session: SparkSession, node: Any, rows: int) -> Any:
    return java(session).org.apache.spark.sql.execution.LocalLimitExec(rows, node)


def _scala(session: SparkSession, values: Sequence[Any]) -> Any:
    jvm = java(session)
    listed = jvm.java.util.ArrayList()
    for value in values:
        listed.add(value)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed).toSeq()


def _most_read(plan: PlanNode, rows: int) -> int:
    """How many rows a task reads of a source at most."""
    kinds = {node.kind for node in plan.walk()}
    if kinds.isdisjoint(_KEEP_FEWER):
        return rows
    slow = not kinds.isdisjoint(_PYTHON) or any(_is_text(leaf) for leaf in plan.leaves())
    return rows * (READ_FOR_ONE_SLOW if slow else READ_FOR_ONE)


def _is_text(leaf: PlanNode) -> bool:
    if leaf.kind != "FileSourceScan":
        return False
    return str(leaf.node.relation().fileFormat().toString()).lower() not in COLUMNAR


def _sides(join: PlanNode) -> tuple[PlanNode, PlanNode]:
    """The side of a join that all tasks are sent, and the other."""
    left, right = join.children
    is_left = "Left" in str(join.node.buildSide().toString())
    return (left, right) if is_left else (right, left)


def _whole_side(plan: PlanNode) -> PlanNode | None:
    return _sides(plan)[0] if plan.kind in _BROADCAST_JOINS else None


def _check_small(side: PlanNode) -> None:
    for leaf in side.leaves():
        size = source_of(leaf).bytes
        if size is None or size > SMALL_SIDE_BYTES:
            raise TooExpensive("a join needs all of its other side first")


def _shuffles(scan: Any) -> bool:
    from_where = lineage(scan)
    return any(kind in from_where for kind in ("ShuffledRDD", "ShuffledRowRDD", "CoGroupedRDD"))


def _leaves(plan: Any) -> list[Any]:
    children = plan.children()
    if children.size() == 0:
        return [plan]
    return [leaf for number in range(children.size()) for leaf in _leaves(children.apply(number))]


_LIMITS = frozenset({"GlobalLimit", "CollectLimit"})

_LEFT_OUT = _LIMITS | {"Sort", "ShuffleExchange", "CollectMetrics", "EventTimeWatermark"}
"""Nodes whose rows are those below: in another order or place, or fewer of them. A repartition is
the one shuffle that is in a plan at this stage."""

_PYTHON = frozenset(
    {"BatchEvalPython", "ArrowEvalPython", "BatchEvalPythonUDTF", "ArrowEvalPythonUDTF",
     "MapInPandas", "MapInArrow", "PythonMapInArrow"}
)  # fmt: skip

_KEEP_FEWER = frozenset({"Filter", "Sample", "Generate", "BroadcastHashJoin"}) | _PYTHON
"""Nodes that may give fewer rows than they take."""

_ROW_BY_ROW = (
    frozenset(
        {"Project", "Filter", "Sample", "Generate", "Expand", "Union", "Coalesce", "LocalLimit",
         "ColumnarToRow", "RowToColumnar", "DeserializeToObject", "SerializeFromObject",
         "MapElements", "MapPartitions", "AppendColumns"}
    )
    | _PYTHON
)  # fmt: skip
"""Nodes that give rows as they come in."""

_BROADCAST_JOINS = frozenset({"BroadcastHashJoin", "BroadcastNestedLoopJoin"})

_WHOLE_INPUT = {
    **dict.fromkeys(("HashAggregate", "ObjectHashAggregate", "SortAggregate"), "an aggregate"),
    **dict.fromkeys(("SortMergeJoin", "ShuffledHashJoin", "CartesianProduct"), "a join"),
    **dict.fromkeys(("Window", "WindowGroupLimit", "ArrowWindowPython"), "a window function"),
    "TakeOrderedAndProject": "a sort with a limit",
}
