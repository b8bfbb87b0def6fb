"""Running: DataFrame in, DataFrame out, batch or streaming, on the engine that suits the query."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from querymesh.errors import OptionError, UnsupportedError
from querymesh.index.tune.kinds import Index, index_of
from querymesh.mesh.join_mesh import JoinMesh, SharedJoinMesh
from querymesh.mesh.mesh import Mesh, SharedMesh
from querymesh.policies.policy import Policy
from querymesh.policies.registry import policy_of
from querymesh.query.costly.account.price import Budget, budget_of
from querymesh.query.costly.in_run import in_run
from querymesh.query.join import JoinQuery
from querymesh.query.model import Query
from querymesh.query.render import to_text
from querymesh.query.shared_join import SharedJoin
from querymesh.spark.aggregate import aggregated
from querymesh.spark.conditions.around import Around
from querymesh.spark.filters.filter_run import run_filter
from querymesh.spark.inputs import Data, Inputs, bind_inputs, bind_shared
from querymesh.spark.options import IDLE_TIMEOUT, WATERMARK, RunOptions, absolute
from querymesh.spark.remembered import inspect, remember
from querymesh.spark.results import Results


def run(
    query_or_mesh: Query | Mesh | JoinMesh,
    inputs: DataFrame | Inputs,
    *,
    policy: str | Policy = "mesh",
    engine: str = "auto",
    index: str | Index = "hash",
    shards: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    watermark: str = WATERMARK,
    idle_timeout: str = IDLE_TIMEOUT,
    on_error: str = "raise",
    sample: Data | Inputs | None = None,
    budget: Budget | float | None = None,
) -> DataFrame:
    """Run a query on Spark; the result is a DataFrame, streaming if the source is.

    - `query_or_mesh`: a mesh runs as it is; a query without one is trained first where that can pay
      for itself, on a bounded sample of a batch source (or on `sample`), or on the first batches of
      a stream, which starts with the order as written and switches without a restart
    - `inputs`: a DataFrame or Arrow table for each relation, by name; for one relation the bare
      DataFrame will do
    - `policy`: "mesh", "single", "eddy", "cbr", "rate", "chart", or one of `querymesh.policies`
      with its options
    - `engine`: "native" writes the routes into Spark's plan, "fabric" runs them in Arrow tasks;
      "auto" takes what suits the query
    - `checkpoint`: the directory that you also give to `writeStream`; what a stream learns is kept
      there, and the states of its windows
    - `on_error`: "raise", or "drop" to count and drop rows on which a function raises
    - `sample`: what to learn from, instead of the source itself
    - `budget`: what all calls of functions with a `price=` may cost, in their unit, or a
      `querymesh.Budget` that says what becomes of the rows it cannot pay for

    Of a query over two or more windowed streams, which is a join on states:

    - `index`: how states are searched: "hash", "bitmap", "amri", "auto", or one of
      `querymesh.indices` with its options
    - `shards`: over how many tasks it is spread; unless told, as many as run at once, on an old
      checkpoint those it has
    - `watermark`: tuples that come more than this behind their streams are dropped and counted
    - `idle_timeout`: a stream silent for longer does not hold the others' state

    `querymesh.inspect(out)` tells what was decided and done.
    """
    options = RunOptions(
        policy=policy_of(policy), engine=engine, index=index_of(index), shards=shards,
        checkpoint=absolute(checkpoint), watermark=watermark, idle_timeout=idle_timeout,
        on_error=on_error, sample=sample, budget=budget_of(budget),
    )  # fmt: skip
    query, mesh = _query_and_mesh(query_or_mesh)
    query = _about_to_run(query)
    given = bind_inputs(query, inputs)
    bound = given.bound
    options.policy.check(bound, options.engine)
    if not isinstance(bound, JoinQuery):
        options.refuse_join_options()
        options = replace(options, sample=given.sample(options.sample))
        out = run_filter(bound, given.data, mesh, options, given.columns)
        return aggregate_result(finished(out, given.around), query, options.watermark_us)
    from querymesh.spark.joins.join_run import run_join

    out = run_join(bound, given.data, mesh, options, given.around)
    oldest_us = _oldest_result_us(bound, options)
    return aggregate_result(finished(out, given.around), query, oldest_us)


def run_all(
    queries: Sequence[Query],
    inputs: DataFrame | Inputs,
    *,
    policy: str | Policy = "mesh",
    engine: str = "auto",
    index: str | Index = "hash",
    shards: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    watermark: str = WATERMARK,
    idle_timeout: str = IDLE_TIMEOUT,
    on_error: str = "raise",
    sample: Data | Inputs | None = None,
    budget: Budget | float | None = None,
) -> Results:
    """Run queries over one source, or joins of the same windowed streams, in one pass (QM § 5.2): a
    DataFrame for each, as `Results`.

    What several of them ask is evaluated once a tuple. A windowed stream is stored once, for all
    joins that read it, and joins that are alike are made once. The options are those of `run`.
    """
    options = RunOptions(
        policy=policy_of(policy), engine=engine, index=index_of(index), shards=shards,
        checkpoint=absolute(checkpoint), watermark=watermark, idle_timeout=idle_timeout,
        on_error=on_error, sample=sample, budget=budget_of(budget),
    )  # fmt: skip
    asked = tuple(queries)
    if any(isinstance(query, Query) and query.aggregate is not None for query in asked):
        raise UnsupportedError(
            "queries that share one pass are not aggregated: run the one that aggregates by "
            "itself, or aggregate the DataFrames that come out"
        )
    given = bind_shared(tuple(map(_about_to_run, asked)), inputs)
    options.policy.check(given.bound, options.engine)
    options = replace(options, sample=given.sample(options.sample))
    if isinstance(given.bound, SharedJoin):
        from querymesh.spark.joins.shared_run import run_shared_joins

        together = run_shared_joins(given.bound, given.data, options)
    else:
        options.refuse_join_options()
        together = run_filter(given.bound, given.data, None, options)
    run = inspect(together)
    run.left_to_spark += tuple(name for each in given.around for name in each.names)
    finish = [each.finished for each in given.around]
    results = Results(together, len(given.bound.parts), finish)
    for each in (results, *results):
        remember(each, run)
    return results


def _about_to_run(query: Query) -> Query:
    """The query with functions that tasks know again; what is no query is refused by `bind`."""
    if not isinstance(query, Query):
        return query
    return replace(query, functions=in_run(query.functions))


def _query_and_mesh(
    given: Query | Mesh | JoinMesh,
) -> tuple[Query, Mesh | JoinMesh | None]:
    """The query, and its mesh if that was given."""
    if isinstance(given, str):
        raise OptionError('a query is given as qm.query("SELECT ..."), not as bare text')
    if isinstance(given, SharedMesh | SharedJoinMesh):
        raise UnsupportedError(
            "this mesh is of several queries in one pass: give the queries to run_all, which "
            "learns it"
        )
    if isinstance(given, Mesh | JoinMesh):
        return given.query.asked or given.query, given
    if not isinstance(given, Query):
        raise OptionError(
            f"run takes a query or a mesh, not {type(given).__name__}; several queries over one "
            "source are given to run_all"
        )
    return given, None


def _oldest_result_us(join: JoinQuery, options: RunOptions) -> int | None:
    """How far a time in a join's results may lie behind the newest of them; None if any far.

    A result's member may be as old as its own window, and the horizon as far behind the newest
    result as the longest window of the others.
    """
    return None if join.counts_rows else options.watermark_us + 2 * join.longest_us


def finished(out: DataFrame, around: Around | None) -> DataFrame:
    """What comes out, with what Spark does above if there is something."""
    if around is None:
        return out
    run = inspect(out)
    run.left_to_spark += around.names
    done = around.finished(out)
    remember(done, run)
    return done


def aggregate_result(out: DataFrame, query: Query, watermark_us: int | None) -> DataFrame:
    """What comes out, grouped and aggregated by Spark if the query asks for it."""
    if query.aggregate is None:
        return out
    watermark = None if watermark_us is None else f"{watermark_us} microseconds"
    texts = {output.name: to_text(output.expr) for output in query.outputs or ()}
    grouped = aggregated(out, query.aggregate, watermark, texts)
    remember(grouped, inspect(out))
    return grouped
