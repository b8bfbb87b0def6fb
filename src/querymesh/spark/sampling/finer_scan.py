"""A scan of files in more and smaller partitions, so that a few of them are spread over more files.

Spark packs small files together and cuts large ones every 128 MB. For a sample each file is a
partition of its own, and a Parquet file of several row groups one for each of them. How files are
packed is a setting of the session, so a copy of the session has another one, and the scan's
relation belongs to that copy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from querymesh.spark.context import java, java_session
from querymesh.spark.sampling.physical_plan import PlanNode
from querymesh.spark.sampling.read_bytes import FileReading

LEAST_SPLIT = 1 << 20
LONGER = 1.5
"""A partition is so many times as long as a row group: row groups differ, and one that is cut is
read by the partition that has its middle, so that short partitions would read nothing."""

TEXT_PARTITIONS = 64
"""A source of lines is cut into so many partitions or more, unless they would be small."""


def finer_scan(session: SparkSession, leaf: PlanNode, reading: FileReading) -> PlanNode:
    """The same scan, file by file; as it is where buckets decide its partitions."""
    if bool(leaf.node.bucketedScan()):
        return leaf
    relation = leaf.node.relation()
    copied = java_session(session).cloneSession()
    conf = copied.sessionState().conf()
    split = str(min(int(conf.filesMaxPartitionBytes()), _split_bytes(reading)))
    conf.setConfString("spark.sql.files.maxPartitionBytes", split)
    # A file counts as its bytes and this: none fits into a partition beside another one.
    conf.setConfString("spark.sql.files.openCostInBytes", split)
    own = relation.copy(
        relation.location(), relation.partitionSchema(), relation.dataSchema(),
        relation.bucketSpec(), relation.fileFormat(), relation.options(), copied,
    )  # fmt: skip
    return replace(leaf, node=_with_first(session, leaf.node, own))


def _split_bytes(reading: FileReading) -> int:
    if reading.row_group_bytes is not None:
        return max(LEAST_SPLIT, int(LONGER * reading.row_group_bytes))
    if reading.is_text:
        return max(LEAST_SPLIT, reading.bytes // TEXT_PARTITIONS)
    return reading.bytes


def _with_first(session: SparkSession, node: Any, value: Any) -> Any:
    """A node of the JVM's with another first argument; the others are not the same in all Sparks"""
    arguments = java(session).java.util.ArrayList()
    arguments.add(value)
    for number in range(1, node.productArity()):
        arguments.add(node.productElement(number))
    return node.makeCopy(arguments.toArray())
