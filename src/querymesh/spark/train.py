"""Training without running: `qm.train`."""

from __future__ import annotations

from time import perf_counter

from pyspark.sql import DataFrame

from querymesh.errors import OptionError, TrainingError
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.learned_line import tell_learned
from querymesh.options import check_name
from querymesh.policies.policy import Policy
from querymesh.policies.registry import policy_of
from querymesh.query.join import JoinQuery
from querymesh.query.model import Query
from querymesh.spark.context import active_parallelism
from querymesh.spark.filters.filter_run import engine_for
from querymesh.spark.filters.filter_train import FilterTrainer
from querymesh.spark.inputs import Data, Inputs, bind_inputs
from querymesh.spark.options import ENGINES, ON_ERROR
from querymesh.spark.sample import take_sample


def train(
    query: Query,
    sample: Data | Inputs,
    *,
    policy: str | Policy = "mesh",
    engine: str = "auto",
    on_error: str = "raise",
) -> Mesh | JoinMesh:
    """Learn a mesh for a query from a sample of its source, and its look-up tables whole.

    - `sample`: a DataFrame or Arrow table for each relation of the query; for a query of one
      relation the bare table will do. A larger source is sampled down to the policy's `sample_rows`
      and, if an `accuracy` is asked for, again to twice as many until it is reached (QM § 4.2)
    - `policy`: "mesh" or "single", or one of `querymesh.policies` with its options
    - `engine`: where the query will run: SQL that goes to Catalyst is timed there, if a Spark
      session is active
    - `on_error`: "raise", or "drop" for rows on which a function raises

    For a query over several windowed streams the sample is a stretch of time of all of them, of
    which the earliest arrivals are taken, and the result has a mesh for each stream.
    """
    from querymesh.policies.mesh import Trained

    check_name("engine", engine, ENGINES)
    check_name("on_error", on_error, ON_ERROR)
    chosen = policy_of(policy)
    if not isinstance(chosen, Trained):
        raise TrainingError(
            f"policy {chosen.name!r} learns while it runs, there is nothing to train: "
            f"run(query, inputs, policy={chosen.name!r})"
        )
    if not isinstance(query, Query):
        raise OptionError(
            f"train takes one qm.query(...), not {type(query).__name__}; queries that share one "
            "pass are learned together by run_all([...])"
        )
    training, started = chosen.training, perf_counter()
    given = bind_inputs(query, sample)
    bound, data = given.bound, given.data
    if isinstance(bound, JoinQuery):
        from querymesh.optimize.shards.join_shards import join_cube, shard_count
        from querymesh.spark.joins.join_train import JoinData

        inputs = JoinData(bound, data, None, on_error)
        meshes, rates = inputs.train(training, one_route=chosen.one_route)
        cube = join_cube(bound, shard_count(bound, None, active_parallelism()), rates)
        return JoinMesh(query, meshes, rates, cube)
    source = data[bound.source.alias]
    if isinstance(source, DataFrame):
        source = source.withColumns(given.columns.sampled)
    first = take_sample(source, training.sample_rows, training.seed)
    suited = engine_for(engine, bound, chosen, streaming=False)
    trainer = FilterTrainer(bound, data, on_error, suited, given.columns)
    mesh = trainer.train_on(source, first, training, one_route=chosen.one_route)
    tell_learned(mesh.sample_rows, perf_counter() - started, mesh.why, trainer.calls)
    return mesh
