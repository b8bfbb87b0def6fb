"""Running a join as a tree of Spark's own joins, in the shape that policy "rate" chooses (RBO § 4).

The tree is written into Spark's plan and stays as it is: that of a batch is chosen by the rows it
has and a stretch of them, that of a stream by the sample it is given. Spark's joins store what they
hand on, so a row that a join makes costs the next one its storing as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame

from querymesh.cost.plan_tree import JoinShape, join_shape
from querymesh.errors import OptionError, UnsupportedError
from querymesh.index.tune.kinds import Hash
from querymesh.optimize.planning.own_order import OwnOrder
from querymesh.optimize.shards.join_shards import join_cube
from querymesh.policies.planned import BUDGET
from querymesh.policies.policy import Job
from querymesh.policies.rate import Rate
from querymesh.query.join import JoinQuery
from querymesh.runtime.loops.plan_loop import PlanLoop, PlanSettings
from querymesh.runtime.loops.rounds import Rounds
from querymesh.runtime.run import Run
from querymesh.runtime.view import View
from querymesh.spark.inputs import Data
from querymesh.spark.joins.join_tree import join_tree
from querymesh.spark.joins.tree_shape import check_tree
from querymesh.spark.options import RunOptions
from querymesh.spark.remembered import remember


def run_tree(job: Job, data: Mapping[str, Data], options: RunOptions) -> DataFrame:
    """The join as a DataFrame, streaming if its streams are; aggregates are left to the caller."""
    join, policy = job.join, options.policy
    assert join is not None
    assert isinstance(policy, Rate)
    _check_options(policy, options)
    streams = [data[alias] for alias in join.aliases]
    session = next(each.sparkSession for each in streams if isinstance(each, DataFrame))
    frames = {
        alias: given if isinstance(given, DataFrame) else session.createDataFrame(given)
        for alias, given in data.items()
    }
    check_tree(join, frames, _written(join))
    if job.streaming:
        _check_stream(join, job)
    planner = policy.tree_planner(job)
    assert planner.chosen is not None
    shape = without(join_shape(planner.chosen.tree), {relation.alias for relation in join.statics})
    assert shape is not None
    out = join_tree(join, frames, shape, f"{options.watermark_us} microseconds")
    written = job.written()
    views = {alias: View(alias, view, written[alias]) for alias, view in join.views.items()}
    run = Run(join.query, policy.name, "native", views)
    run.tree = shape
    rounds = Rounds(join, join_cube(join, 1, {}))
    settled = PlanSettings(policy.sample_rows, 0.0)
    run.loops.append(PlanLoop(join, planner, rounds, views, {}, settled, OwnOrder(join)))
    remember(out, run)
    return out


def _written(join: JoinQuery) -> JoinShape:
    """The streams one after the other, as FROM has them."""
    shape: JoinShape = join.aliases[0]
    for alias in join.aliases[1:]:
        shape = shape, alias
    return shape


def without(shape: JoinShape, tables: Collection[str]) -> JoinShape | None:
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


def _check_options(policy: Rate, options: RunOptions) -> None:
    """Refuse what only states have."""
    given = {
        "index=": options.index != Hash(),
        "shards=": options.shards is not None,
        "budget=": policy.budget not in (0, BUDGET),
    }
    if named := [name for name, is_given in given.items() if is_given]:
        raise OptionError(
            f"{', '.join(named)} is of a join on states, and engine 'native' runs a fixed tree of "
            f"Spark's own joins: leave out {' and '.join(named)}, or engine="
        )


def _check_stream(join: JoinQuery, job: Job) -> None:
    """A stream's tree is fixed before its first row."""
    if not job.sampled:
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
