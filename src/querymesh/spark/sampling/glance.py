"""How large a DataFrame can be at most, by a glance: no plan is optimised, no partition pruned.

It tells a small job from others in a few calls to the JVM, where `plan_statistics` has Spark plan
the job. Only of plans that cannot make rows of their own, over one source::

    Project, Filter, SubqueryAlias, ...     pass the question on
    Relation                                local Parquet files: all their footers, if they are few
    Range, LocalRelation, Limit             Spark knows
    anything else                           not known
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from querymesh.spark.context import query_execution

MOST_FILES = 8
"""So many footers are read at most: each takes some tenths of a millisecond."""

MOST_NODES = 8
"""A plan with more nodes than this is looked at by other means."""

_FILE = re.compile(r"\bpath=file:(/.*?); isDirectory=false; length=(\d+);")
"""A file on this machine and its size, as Hadoop describes it."""

_PASSING = frozenset(
    {"Project", "Filter", "SubqueryAlias", "View", "Sort", "Distinct", "Repartition",
     "RepartitionByExpression", "ResolvedHint"}
)  # fmt: skip
"""Nodes that give no more rows than they get."""


@dataclass(frozen=True)
class Glance:
    """So many rows at most, in files of so many bytes; None where they are in none."""

    rows: float
    bytes: float | None = None


def glance_at(frame: DataFrame) -> Glance | None:
    """How large a DataFrame is at most; None where a glance does not tell."""
    node = query_execution(frame).analyzed()
    for _ in range(MOST_NODES):
        kind = str(node.nodeName())
        if kind in _PASSING:
            node = node.children().apply(0)
        elif kind == "LogicalRelation":
            return _in_files(node.relation())
        else:
            known = re.search(r"\d+", str(node.maxRows().toString()))
            return None if known is None else Glance(float(known[0]))
    return None


def _in_files(relation: Any) -> Glance | None:
    """The rows of Parquet files on this machine, of all of them, whatever is read in the end."""
    if str(relation.toString()) != "parquet":
        return None
    location = relation.location()
    if "InMemoryFileIndex(" not in str(location.toString()):
        return None  # a catalog's index would list the whole table
    listed = location.allFiles()
    if (count := int(listed.size())) > MOST_FILES:
        return None
    files = _FILE.findall(str(listed.toString()))  # one call for all
    if len(files) < count:
        return None
    try:
        rows = sum(pq.read_metadata(path).num_rows for path, _ in files)
    except (OSError, pa.ArrowException):  # gone, damaged, encrypted
        return None
    return Glance(float(rows), float(sum(int(size) for _, size in files)))
