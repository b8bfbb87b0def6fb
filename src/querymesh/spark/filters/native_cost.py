"""What the SQL operators of a query cost in Catalyst, on rows they drop and on rows they keep."""

from __future__ import annotations

import numpy as np
from pyspark.sql import SparkSession

from querymesh.arrays import Floats
from querymesh.query.expr import columns_of
from querymesh.query.model import BoundQuery, Filter
from querymesh.spark.filters.native import native_sql
from querymesh.spark.sampling.condition_costs import condition_costs_by_outcome_us
from querymesh.stats.profile import Profile


def native_costs_us(
    spark: SparkSession, profile: Profile, bound: BoundQuery
) -> tuple[Floats, Floats]:
    """Microseconds a row of each operator, on rows it drops and on rows it lets through.

    What cannot be timed in Catalyst costs what the profile says it costs in Arrow.
    """
    filters = [operator for operator in bound.operators if isinstance(operator, Filter)]
    conditions = [native_sql(operator.expr) for operator in filters]
    read = {column.name for operator in filters for column in columns_of(operator.expr)}
    sample = profile.sample.select([name for name in profile.sample.column_names if name in read])
    passes = profile.outcomes > 0
    timed = condition_costs_by_outcome_us(spark, sample, conditions, passes)
    if timed is None:
        return profile.drop_us, profile.pass_us
    drop_us, pass_us = timed
    return (
        np.where(np.isnan(drop_us), profile.drop_us, drop_us),
        np.where(np.isnan(pass_us), profile.pass_us, pass_us),
    )
