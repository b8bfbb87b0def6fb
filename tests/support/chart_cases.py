"""Queries and random problems for charts, for tests."""

from itertools import pairwise

import numpy as np

from querymesh.optimize.chart.candidates import (
    QueryShape,
    StreamJoin,
    StreamProjection,
    StreamSelection,
)
from querymesh.optimize.chart.chart import ChartDimension
from querymesh.optimize.chart.query_charts import ChartedQuery


def q1(keeps=0.35, **kwargs) -> ChartedQuery:
    """Table 2's query of one stream, with § 5.1's processing rates."""
    shape = QueryShape(
        ("TCP",),
        selections=(StreamSelection("dest_host = 2", "TCP", 400e3),),
        projections=(StreamProjection("TCP", 500e3, keeps),),
    )
    return ChartedQuery(shape, 1.0, {"TCP": (50, 2000)}, {}, **kwargs)


def q2(seed=0, streams=3, **kwargs) -> ChartedQuery:
    """Table 2's query of three streams, or more of them, with random selectivities."""
    rng = np.random.default_rng(seed)
    names = ("TCP", "UDP", "SF", "FTP", "DNS", "NTP", "SSH", "WWW")[:streams]
    joins = tuple(
        StreamJoin(f"{one} = {other}", (one, other), 3e3, "host") for one, other in pairwise(names)
    )
    selectivities = {join.name: float(10 ** rng.uniform(-3, -1)) for join in joins}
    rates = dict.fromkeys(names, (10, 1500))
    return ChartedQuery(QueryShape(names, joins=joins), 1.0, rates, selectivities, **kwargs)


def box(dimensions) -> list[ChartDimension]:
    return [ChartDimension(f"x{each}", 0.0, 1.0 + each) for each in range(dimensions)]


def smooth_costing(seed, plans=4, dimensions=2):
    """Plans that cost a random plane each, bent a little: borders are smooth curves."""
    rng = np.random.default_rng(seed)
    slopes = rng.uniform(-1, 1, (dimensions, plans))
    bend = rng.uniform(-0.3, 0.3, (dimensions, plans))
    level = -(slopes * (1 + np.arange(dimensions))[:, None] / 2).sum(axis=0)

    def costing(points):
        return level + points @ slopes + np.sin(2 * points) @ bend

    return costing


def random_points(dimensions, count=4000, seed=0):
    low = np.array([each.low for each in dimensions])
    high = np.array([each.high for each in dimensions])
    return low + np.random.default_rng(seed).random((count, len(low))) * (high - low)
