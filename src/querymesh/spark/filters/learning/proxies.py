"""Proxies of a batch are learned before it runs: from sampled rows, on the routes it will take.

What a proxy guarantees holds of rows as those it learned from, and behind other conditions come
other rows. So the driver runs the sample through the filter, as a task would, until a proxy has
seen as many rows as it learns from. None of the answers is lost: they travel with the job.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.shared_fabric import make_fabric
from querymesh.fabric.core.tables import make_tables
from querymesh.mesh.mesh import Mesh
from querymesh.query.costly.account.price import PARTS
from querymesh.query.costly.in_run import asking_of
from querymesh.query.costly.proxy.in_use import ProxyInUse
from querymesh.query.predicate.predicate import Predicate
from querymesh.spark.filters.filter_train import FilterTrainer
from querymesh.spark.filters.learning.learning import Learning
from querymesh.spark.filters.learning.priced_sample import price_a_row
from querymesh.spark.sample import take_sample
from querymesh.spark.sampling.bounded_sample import NoSample
from querymesh.spark.workers.worker_python import told_of_worker_python

WORTH = 3
"""A job must have so many times the rows that a proxy learns from."""

REACHED = 8
"""So many times the rows it learns from are sampled, since others drop some before it."""

STEP_ROWS = 256


def learn_proxies(learning: Learning, mesh: Mesh) -> None:
    """Learn the proxies of a filter that will run on this mesh, or say why not."""
    functions = learning.asked.query.functions.values()
    wanted = {each: asking_of(each).proxy for each in functions if each.proxy is not None}
    proxies = {each: proxy for each, proxy in wanted.items() if proxy is not None}
    for function, proxy in proxies.items():
        proxy.why_not = _why_not(learning, function)
    learners = [proxy for proxy in proxies.values() if proxy.why_not is None]
    if not learners:
        return
    rows = REACHED * max(proxy.options.sample_rows for proxy in learners)
    taken = _random_rows(learning, rows)
    if isinstance(taken, NoSample):
        for proxy in learners:
            proxy.why_not = f"proxy: off, all rows are asked: {taken.reason}"
        return
    _learn_from(learning, mesh, taken, learners)


def _why_not(learning: Learning, function: Predicate) -> str | None:
    """Why a proxy cannot be learned, if that is clear beforehand."""
    assert function.proxy is not None
    wanted, rows = function.proxy.sample_rows, learning.rows
    if rows is not None and rows < WORTH * wanted:
        return (
            f"proxy: off, all rows are asked: the job has about {rows:,.0f} rows, and the proxy "
            f"learns from {wanted:,}"
        )
    budget = learning.job.budget
    if budget is not None and function.price is not None:
        few = learning.take(STEP_ROWS)
        if not isinstance(few, NoSample) and few.num_rows:
            money = wanted * price_a_row(function, few)
            if money > budget.for_learning:
                return (
                    f"proxy: off, all rows are asked: its {wanted:,} answers would cost {money:g}, "
                    f"and learning may spend {budget.for_learning:g} (sample_budget)"
                )
    return None


def _may_spend(learning: Learning) -> bool:
    """Whether learning has not spent its part of the budget yet, on orders and on proxies."""
    budget = learning.job.budget
    if budget is None:
        return True
    spent = sum(asking_of(each).tally.money for each in learning.job.functions)
    return spent < budget.for_learning * PARTS


def _random_rows(learning: Learning, rows: int) -> pa.Table | NoSample:
    """Rows of which each had the same chance: the first of a few partitions may be of another kind
    than the rest, and no guarantee would hold of it. Reading all costs less than asking about all.
    """
    job = learning.job
    data = {**job.data, job.bound.source.alias: job.source}
    trainer = FilterTrainer(job.bound, data, job.on_error, job.engine, job.columns)
    try:
        with told_of_worker_python():
            given = trainer.with_opaque(job.source if job.sample is None else job.sample)
            return take_sample(given, rows, learning.training.seed)
    except (PySparkException, Py4JJavaError) as problem:
        if job.sample is not None:  # who gave it wants to know
            raise
        said = str(problem).strip().partition("\n")[0]
        return NoSample(f"a sample could not be taken ({said[:200]})")


def _learn_from(
    learning: Learning, mesh: Mesh, taken: pa.Table, learners: list[ProxyInUse]
) -> None:
    bound = learning.asked
    fabric = make_fabric(bound, make_tables(bound, learning.job.tables, "drop"), "drop")
    router = MeshRouter(mesh)
    order = np.random.default_rng(learning.training.seed).permutation(taken.num_rows)
    for proxy in learners:
        proxy.learns = True
    for start in range(0, taken.num_rows, STEP_ROWS):
        if all(proxy.is_settled for proxy in learners) or not _may_spend(learning):
            break
        some = taken.take(pa.array(order[start : start + STEP_ROWS])).combine_chunks()
        (batch,) = some.to_batches()
        for _ in fabric.run(batch, router):  # functions in SELECT and in keys learn, too
            pass
    for proxy in learners:
        proxy.end_learning()
