"""One query on one data set, made ready for its contenders: cached, profiled, trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import querymesh as qm
from querymesh.arrays import Bools, Ints
from querymesh.fabric.core.lookup_table import LookupTable
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.fabric.profile.profiler import profile_sample
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.train import train_mesh
from querymesh.query.model import BoundQuery
from querymesh.query.predicate.predicate import Predicate
from querymesh.spark.filters.filter_train import native_costs_us
from querymesh.stats.profile import Profile, Route, route_text
from querymesh_lab.bench import fingerprint
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.classed import ClassedRows
from querymesh_lab.bench.data.row_predicate import RowPredicate, functions, select
from querymesh_lab.bench.fingerprint import Fingerprint
from querymesh_lab.bench.limits import (
    Effort,
    Limits,
    counted,
    designed_profile,
    effort_of_mesh,
    limits,
)
from querymesh_lab.bench.measure import RivalsDisagreeError

PROFILED_ROWS = 4000
SLICES = 9
RANKED_ROWS = 20_000
PARTITIONS = 4


@dataclass(frozen=True)
class FilterQuestion:
    """What is asked of which rows; classes and verdicts where the generator knows them."""

    relation: str
    sql: str
    table: pa.Table
    functions: Mapping[str, Predicate] = field(default_factory=dict)
    engine: str = "fabric"
    classes: Ints | None = None
    passes: Bools | None = None


def python_question(
    relation: str, predicates: Sequence[RowPredicate], data: ClassedRows
) -> FilterQuestion:
    """Python predicates on generated rows, whose first verdicts are those of these predicates."""
    return FilterQuestion(
        relation,
        select(relation, predicates),
        data.table,
        functions(predicates),
        classes=data.classes,
        passes=data.passes[:, : len(predicates)],
    )


def native_question(relation: str, sql: str, data: ClassedRows) -> FilterQuestion:
    """SQL conditions on generated rows, for the engine that leaves them to Catalyst."""
    return FilterQuestion(
        relation, sql, data.table, engine="native", classes=data.classes, passes=data.passes
    )


@dataclass
class FilterContest:
    """A question ready to run.

    `single` is the strongest single order there is: found on the profile of all rows, not on the
    sample the mesh had to learn from.
    """

    question: FilterQuestion
    df: DataFrame
    query: qm.Query
    profile: Profile
    limits: Limits
    mesh: Mesh
    single: Mesh
    last: dict[str, Metrics] = field(default_factory=dict)

    def run(self, mesh: Mesh, called: str) -> Callable[[], Fingerprint]:
        """The contender that sends the data through a mesh; its counts are kept under its name."""

        def action() -> Fingerprint:
            out = self.result(mesh)
            answer = fingerprint.of_ids(out)
            self.last[called] = qm.inspect(out).counts
            return answer

        return action

    def result(self, mesh: Mesh) -> DataFrame:
        """The rows that come out of a mesh."""
        inputs = {self.question.relation: self.df}
        return qm.run(mesh, inputs, engine=self.question.engine)

    def effort(self, called: str, mesh: Mesh) -> Effort:
        """What a contender did per row: counted where its engine counts, else by the profile."""
        metrics = self.last.get(called)
        if metrics is not None and metrics.evaluations:
            return counted(metrics, self.profile)
        return effort_of_mesh(self.profile, mesh)

    def check_rows(self, rivals: Mapping[str, DataFrame]) -> None:
        """Every rival's whole rows must be those of the mesh."""
        expected = fingerprint.of_rows(self.result(self.mesh))
        for name, rival in rivals.items():
            got = fingerprint.of_rows(rival)
            if got != expected:
                raise RivalsDisagreeError(
                    f"{name} gives {got[0]} rows with hash {got[1]}, the mesh {expected[0]} with "
                    f"{expected[1]}"
                )

    def details(self) -> dict[str, Any]:
        """The details that every finding of this contest carries."""
        names = self.profile.names
        return {
            **self.limits.details(names),
            "mesh": asdict(self.effort("mesh", self.mesh)),
            "mesh_routes": [route_text(route, names) for route in self.mesh.leaf_routes],
            "mesh_why": self.mesh.why,
            "engine": self.question.engine,
            "cost_us": dict(zip(names, self.profile.cost_us.round(3).tolist(), strict=True)),
        }

    def close(self) -> None:
        """Remove the cached data from Spark's memory."""
        self.df.unpersist()


def prepare(bench: Bench, question: FilterQuestion, seed: int = 0) -> FilterContest:
    """Make a question ready: cache its rows, profile them, find the limits and train."""
    df = cached(bench.session, question.table)
    query = qm.query(question.sql, functions=question.functions)
    bound = query.bind({question.relation: question.table.schema})
    if question.passes is None:
        profile = steady_profile(bound, question.table)
    else:
        measured = steady_profile(bound, question.table.slice(0, PROFILED_ROWS))
        profile = designed_profile(measured, question.table, question.passes)
    if question.engine == "native":
        few = profile.take(np.arange(min(profile.rows, PROFILED_ROWS)))
        drop_us, pass_us = native_costs_us(bench.session, few, bound)
        profile = replace(profile, drop_us=drop_us, pass_us=pass_us)
    mesh = qm.train(query, question.table, policy=qm.policies.Mesh(seed=seed))
    assert isinstance(mesh, qm.Mesh)
    return FilterContest(
        question=question,
        df=df,
        query=query,
        profile=profile,
        limits=limits(profile, question.classes),
        mesh=mesh,
        single=train_mesh(query, profile, calibrate(), one_route=True),
    )


def steady_profile(
    bound: BoundQuery, table: pa.Table, tables: Mapping[str, LookupTable] | None = None
) -> Profile:
    """A profile whose costs no passing load on the machine has distorted.

    The operators take turns on slices of the rows, and the median slice gives each its cost: the
    limits hang on the ratios of the costs.
    """
    length = max(1, -(-table.num_rows // SLICES))
    parts = [
        profile_sample(bound, table.slice(start, length), tables)
        for start in range(0, table.num_rows, length)
    ]
    return replace(
        parts[0],
        sample=table,
        outcomes=np.concatenate([part.outcomes for part in parts]),
        drop_us=np.median([part.drop_us for part in parts], axis=0),
        pass_us=np.median([part.pass_us for part in parts], axis=0),
    )


def best_orders(profile: Profile, count: int) -> list[Route]:
    """The cheapest orders for all rows by the profile, for those who try the best few."""
    few = profile.take(np.arange(min(profile.rows, RANKED_ROWS)))
    routes = permutations(range(1, profile.operators + 1))
    return sorted(routes, key=lambda route: float(few.realized_us(route).sum()))[:count]


def cached(session: SparkSession, table: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame in Spark's memory, in partitions of equal size."""
    df = session.createDataFrame(table).repartition(PARTITIONS).cache()
    df.count()
    return df
