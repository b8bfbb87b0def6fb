"""Running a join as a tree of Spark's own joins, in the shape that policy "rate" chooses (RBO § 4).

The tree is written into Spark's plan and stays as it is: that of a batch is chosen by the rows it
has and a stretch of them, that of a stream by the sample it is given. Spark's joins store what they
hand on, so a row that a join makes costs the next one its storing as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from querymesh.cost.plan_tree import join_shape
from querymesh.errors import QueryError, QueryMeshError, UnsupportedError
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.planning.planners import Aim
from querymesh.optimize.rate.rate_planner import RatePlanner
from querymesh.query.join import JoinQuery
from querymesh.query.model import Query
from querymesh.runtime.durations import microseconds_of
from querymesh.runtime.run import remember
from querymesh.spark.inputs import Data
from querymesh.spark.joins.join_run import JoinSettings, given_mesh, stream_frames
from querymesh.spark.joins.join_tree import join_tree
from querymesh.spark.joins.planned_join import sampled_join, sampled_round, sizes_of
from querymesh.spark.joins.tree_shape import Shape, check_tree


@dataclass(frozen=True)
class TreeRun:
    """A join that runs as a tree of Spark's own joins; see `querymesh.metrics`.

    `shape` is the tree by its aliases, static tables left out, and `planner` what chose it. Counts
    are Spark's: the `stateOperators` of a streaming query's progress, from the topmost join down.
    """

    join: JoinQuery
    planner: RatePlanner
    shape: Shape
    policy: str = "rate"
    engine: str = "native"

    def explain(self) -> str:
        """The tree, what it was chosen by, and what it is expected to do."""
        return self.planner.explain()


def run_tree(
    mesh_or_query: JoinMesh | Mesh | Query,
    join: JoinQuery,
    data: Mapping[str, Data],
    how: JoinSettings,
) -> DataFrame:
    """The join as a DataFrame, streaming if its streams are; aggregates are left to the caller."""
    _check_settings(how)
    given_mesh(mesh_or_query, join)
    streams = stream_frames(join, data)
    session = next(iter(streams.values())).sparkSession
    frames = {
        alias: given if isinstance(given, DataFrame) else session.createDataFrame(given)
        for alias, given in data.items()
    }
    check_tree(join, frames, _written(join))
    if next(iter(streams.values())).isStreaming:
        _check_stream(join, how)
    planner = tree_planner(join, data, how)
    assert planner.chosen is not None
    shape = without(join_shape(planner.chosen.tree), {relation.alias for relation in join.statics})
    assert shape is not None
    out = join_tree(join, frames, shape, how.delay)
    remember(out, TreeRun(join, planner, shape))
    return out


def tree_planner(join: JoinQuery, data: Mapping[str, Data], how: JoinSettings) -> RatePlanner:
    """The planner with a tree chosen: by the sample if there is one, else by the batch itself."""
    sizes = None
    if not any(isinstance(data[a], DataFrame) and data[a].isStreaming for a in join.aliases):
        sizes = sizes_of(join, data)
    goal = (how.aim or Aim()).goal
    planner = RatePlanner(join, goal, sizes, stores_trees=True, patience=1)
    sampled = sampled_join(join, {**data, **(how.sample or {})}, how)
    shown = sampled_round(sampled, how.training)
    storing_s = max(0.0, sampled.storing_s() - sum(shown.own_seconds.values()))
    planner.observe(replace(shown, storing_seconds=storing_s))
    if planner.problem:
        raise QueryError(planner.problem)
    return planner


def _written(join: JoinQuery) -> Shape:
    """The streams one after the other, as FROM has them."""
    shape: Shape = join.aliases[0]
    for alias in join.aliases[1:]:
        shape = shape, alias
    return shape


def without(shape: Shape, tables: Collection[str]) -> Shape | None:
    """The shape without static tables, which a tree looks up by itself.

    >>> without((("a", "t"), ("b", "c")), {"t"})
    ('a', ('b', 'c'))
    """
    if isinstance(shape, str):
        return None if shape in tables else shape
    left, right = (without(part, tables) for part in shape)
    if left is None or right is None:
        return left or right
    return left, right


def _check_settings(how: JoinSettings) -> None:
    """Refuse what only states have."""
    for name in ("delay", "idle"):
        microseconds_of(getattr(how, name), name)
    given = {
        "index=": how.index != "hash",
        "indexing=": how.indexing is not None,
        "shards=": how.shards is not None,
        "adapt=": how.adaptation not in (None, Adaptation()),
    }
    if named := [name for name, is_given in given.items() if is_given]:
        raise QueryMeshError(
            f"{', '.join(named)} is of a join on states, and engine 'native' runs a fixed tree of "
            f"Spark's own joins: leave out {' and '.join(named)}, or engine="
        )


def _check_stream(join: JoinQuery, how: JoinSettings) -> None:
    """A stream's tree is fixed before its first row."""
    if how.sample is None:
        raise UnsupportedError(
            "engine 'native' writes the join tree into Spark's plan, before anything is known of "
            f"{', '.join(stream.name for stream in join.streams)}: give sample=, with a table for "
            "each, or leave engine= out, so that the join runs on states and changes while it runs"
        )
    if join.query.aggregate is not None:
        raise UnsupportedError(
            "engine 'native' does not aggregate a stream: Spark takes no second event time above "
            "its own joins. Leave engine= out, or run the query without its aggregates and "
            "aggregate each micro-batch in writeStream.foreachBatch"
        )
