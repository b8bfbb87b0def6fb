"""Counts and times of meshes on tuples that no training saw."""

from __future__ import annotations

from collections.abc import Collection
from time import thread_time

import numpy as np
import pyarrow as pa

from querymesh.classify.tree import Member, Tree, leaves, tests_of
from querymesh.cost.route_time import WINDOW
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.ruster import ClassificationWindow
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.describe import reach
from querymesh.stats.least_time import least_seconds
from querymesh.stats.profile import Profile, Route

REPEATS = 15


def evaluations_a_row(
    profile: Profile, tree: Tree, routes: tuple[Route, ...], operators: Collection[int]
) -> float:
    """How often these operators are evaluated for a tuple of the profile."""
    total = 0.0
    for (leaf, _), rows in zip(leaves(tree), reach(profile, tree), strict=True):
        total += evaluations(profile.take(rows), routes[leaf.label], operators)
    return total / profile.rows


def evaluations(profile: Profile, route: Route, operators: Collection[int]) -> float:
    """How often these operators are evaluated for all tuples of a profile on one route."""
    arriving = profile.arriving(route).sum(axis=0)
    return float(sum(arriving[at] for at, index in enumerate(route) if index in operators))


def listed_values(tree: Tree) -> int:
    """How many values the tests of a tree list."""
    return sum(len(test.values) for test in tests_of(tree) if isinstance(test, Member))


def classify_us(mesh: Mesh, sample: pa.Table) -> float:
    """The processor time that the router takes to tell the leaf of a row, in windows of usual
    size."""
    rows = np.resize(np.arange(sample.num_rows), WINDOW)
    window = ClassificationWindow("t", sample.take(pa.array(rows)).combine_chunks().to_batches()[0])
    router = MeshRouter(mesh)
    router.leaves(window)
    return 1e6 * least_seconds(lambda: router.leaves(window), REPEATS, thread_time) / WINDOW
