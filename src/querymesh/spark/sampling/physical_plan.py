"""The physical plan of a DataFrame, before Spark puts in shuffles and generates code.

    Project [url, …]
    +- Filter (k < 40)
       +- FileSourceScan parquet        partitions pruned, filters pushed, columns chosen

It says which files are read and what stands above them, and costs a few milliseconds once the
DataFrame is analysed. Nothing runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from querymesh.spark.context import java, java_session, query_execution


@dataclass(frozen=True)
class PlanNode:
    """A node: `kind` is the name of its class without `Exec` (`FileSourceScan`, `Filter`)."""

    kind: str
    node: Any = field(repr=False, compare=False)
    children: tuple[PlanNode, ...] = ()

    def walk(self) -> Iterator[PlanNode]:
        """The node and everything below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> list[PlanNode]:
        """Where rows come from."""
        return [node for node in self.walk() if not node.children]


def physical_plan(frame: DataFrame) -> PlanNode:
    """The plan of a DataFrame; a cached table is read from the cache once it is filled.

    An action on a cached table that is not filled yet would fill all it touches, so the plan
    without any cache stands in for it.
    """
    execution = query_execution(frame)
    plan = plan_node(execution.sparkPlan())
    if all(is_filled(leaf) for leaf in plan.leaves()):
        return plan
    return plan_node(_without_caches(frame.sparkSession, execution.analyzed()))


def is_filled(leaf: PlanNode) -> bool:
    """False for a cached table of which nothing, or not everything, is in memory yet."""
    if leaf.kind != "InMemoryTableScan":
        return True
    return bool(leaf.node.relation().cacheBuilder().isCachedColumnBuffersLoaded())


def plan_node(node: Any) -> PlanNode:
    """A plan of the JVM's with everything below it."""
    children = node.children()
    kind = str(node.getClass().getSimpleName()).removesuffix("Exec")
    below = tuple(plan_node(children.apply(number)) for number in range(children.size()))
    return PlanNode(kind, node, below)


def _without_caches(session: SparkSession, analysed: Any) -> Any:
    state = java_session(session).sessionState()
    optimised = state.optimizer().execute(analysed)
    execution = java(session).org.apache.spark.sql.execution.QueryExecution
    return execution.createSparkPlan(state.planner(), optimised)
