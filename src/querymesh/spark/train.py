"""Training on Spark: take a sample, profile it, time it on the engine it will run on, search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from querymesh.errors import QueryMeshError, TrainingError, UnsupportedError
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.fabric.profile.profiler import profile_sample
from querymesh.fabric.routers.make_eddy import EDDIES
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh, written_order
from querymesh.optimize.train.judge import train_until_accurate
from querymesh.optimize.train.train import POLICIES
from querymesh.optimize.train.training import Training
from querymesh.options import check_name
from querymesh.query.join import JoinQuery
from querymesh.query.model import BoundQuery, Query
from querymesh.spark.filters.native import why_not_native
from querymesh.spark.filters.native_cost import native_costs_us
from querymesh.spark.inputs import Data, Inputs, bind_inputs, static_tables
from querymesh.spark.joins.join_train import train_join
from querymesh.spark.sample import take_sample
from querymesh.spark.schema import conform
from querymesh.stats.profile import Profile

ENGINES = ("auto", "native", "fabric")


def train(
    query: Query,
    sample: Data | Inputs,
    *,
    seed: int | None = None,
    policy: str = "mesh",
    engine: str = "auto",
    on_error: str = "raise",
    training: Training | None = None,
) -> Mesh | JoinMesh:
    """Learn a mesh for a query from a sample of its source, and its look-up tables whole.

    `sample` has a DataFrame or Arrow table for each relation of the query; for a query of one
    relation the bare table will do. A larger source is sampled down to `training.sample_rows`, and
    again to twice as many until `training.accuracy` is reached, if that is asked for (QM § 4.2).
    `seed` stands for the training's. Operators are timed on the engine they will run on: SQL that
    goes to Catalyst is timed there, if a Spark session is active.

    For a query over several windowed streams the sample is a stretch of time of all of them, of
    which the earliest arrivals are taken, and the result has a mesh for each stream.
    """
    check_name("engine", engine, ENGINES)
    if policy in EDDIES:
        raise TrainingError(
            f"policy {policy!r} learns while it runs, there is nothing to train: "
            f"run(query, inputs, policy={policy!r})"
        )
    if not isinstance(query, Query):
        raise QueryMeshError(
            f"train takes one qm.query(...), not {type(query).__name__}; queries that share one "
            "pass are learned together by run([...])"
        )
    training = training or Training()
    if seed is not None:
        training = replace(training, seed=seed)
    bound, data = bind_inputs(query, sample)
    if isinstance(bound, JoinQuery):
        check_name("policy", policy, POLICIES)
        return train_join(bound, data, policy, on_error, training)
    source = data[bound.source.alias]
    first = take_sample(source, training.sample_rows, training.seed)
    suited = engine_for(engine, bound)
    return _train(bound, data, source, first, policy, on_error, training, suited)


def train_or_written(
    bound: BoundQuery,
    data: Mapping[str, Data],
    sample: Data | None,
    policy: str,
    on_error: str,
    training: Training,
    engine: str,
) -> Mesh:
    """Train on the sample, or on one of the source; else the written order, where it will do.

    It will for fewer than two operators, which have one order, and for an empty DataFrame.
    """
    names = tuple(operator.name for operator in bound.operators)
    written = written_order(bound.query, names, bound.precedence)
    if len(names) < 2:
        return written
    given = data[bound.source.alias] if sample is None else sample
    first = take_sample(given, training.sample_rows, training.seed)
    if first.num_rows == 0:
        return written
    return _train(bound, data, given, first, policy, on_error, training, engine)


def _train(
    bound: BoundQuery,
    data: Mapping[str, Data],
    given: Data,
    first: pa.Table,
    policy: str,
    on_error: str,
    training: Training,
    engine: str,
) -> Mesh:
    """Train on a first sample, and on larger ones of what was given if that is not accurate."""
    source = data[bound.source.alias]
    tables = make_tables(bound, static_tables(bound, data), on_error)
    overheads = calibrate(training.window)
    session = (
        source.sparkSession if isinstance(source, DataFrame) else SparkSession.getActiveSession()
    )
    natively = engine == "native" and session is not None and len(bound.operators) > 1
    if natively:
        overheads = replace(overheads, ruster_us=0.0)  # generated code has no rusters

    def take(rows: int, seed: int) -> Profile:
        again = (rows, seed) != (training.sample_rows, training.seed)
        sample = take_sample(given, rows, seed) if again else first
        sample = conform(sample, bound.schemas[bound.source.alias])
        profile = profile_sample(bound, sample, tables, on_error)
        if not natively or profile.rows == 0:
            return profile
        drop_us, pass_us = native_costs_us(session, profile, bound)
        return replace(profile, drop_us=drop_us, pass_us=pass_us)

    return train_until_accurate(bound.query, take, overheads, training, policy)


def engine_for(asked: str, bound: BoundQuery) -> str:
    """The engine asked for; for "auto" native where nothing needs Python."""
    problem = why_not_native(bound)
    if asked == "native" and problem is not None:
        raise UnsupportedError(
            f"engine 'native' runs SQL filters only, and {problem}: use engine='fabric' or 'auto'"
        )
    if asked != "auto":
        return asked
    return "native" if problem is None else "fabric"
