"""How long a search takes, by training tuples and operators (QM Fig. 12), on generated problems."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from time import process_time

import numpy as np
import pyarrow as pa

from querymesh.classify.attributes import choose_attributes, one_piece
from querymesh.classify.condense import TrainingSet
from querymesh.cost.route_time import Overheads
from querymesh.optimize.routes.route_searches import ROUTE_SEARCHES
from querymesh.optimize.routes.subset import RouteSearch
from querymesh.optimize.search.problem import Problem
from querymesh.optimize.search.searches import SEARCHES, Search
from querymesh.optimize.search.start import STARTS, Start
from querymesh.optimize.search.stop import DEFAULT_STOP, Stop
from querymesh.optimize.strategy import chosen, name_of
from querymesh.stats.profile import Profile

OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)
"""About what `fabric/profile/calibrate.py` measures, in microseconds."""


@dataclass(frozen=True, slots=True)
class SearchTime:
    """One search, timed. `start_us` and `found_us` are costs by eq. 2 of the problem's tuples."""

    search: str
    start: str
    tuples: int
    operators: int
    seconds: float
    partitions: int
    meshes: int
    subsets: int
    start_us: float
    found_us: float
    stopped: str


def time_search(
    tuples: int,
    operators: int,
    *,
    search: str | Search = "iterative-improvement",
    start: str | Start = "route-driven",
    route_search: str | RouteSearch = "auto",
    stop: Stop = DEFAULT_STOP,
    rows: int = 2000,
    seed: int = 0,
) -> SearchTime:
    """Search a generated problem of so many training tuples and operators.

    The time is that of the whole search: the survivor tables, the start and every candidate.
    """
    training = generated_training_set(tuples, operators, rows=rows, seed=seed)
    find, begin = chosen("search", search, SEARCHES), chosen("start", start, STARTS)
    rng = np.random.default_rng(seed)
    started = process_time()
    problem = Problem(training, OVERHEADS, chosen("route search", route_search, ROUTE_SEARCHES))
    found = find(problem, begin, rng, stop)
    seconds = process_time() - started
    evaluated = problem.evaluated, problem.meshes_costed, problem.subsets_routed
    first = problem.solve(begin(problem, np.random.default_rng(seed)))
    return SearchTime(
        name_of(search), name_of(start), tuples, operators, seconds, *evaluated,
        first.cost_us, found.cost_us, found.stopped,
    )  # fmt: skip


def generated_training_set(
    tuples: int, operators: int, *, rows: int = 2000, seed: int = 0
) -> TrainingSet:
    """Exactly so many training tuples, each a place of its own on a grid of two attributes, whose
    sampled tuples pass each operator with a probability of their own."""
    rng = np.random.default_rng(seed)
    member = np.concatenate([np.arange(tuples), rng.integers(0, tuples, max(rows - tuples, 0))])
    pass_rates = rng.uniform(0.05, 0.95, (tuples, operators))
    outcomes = (rng.random((len(member), operators)) < pass_rates[member]).astype(np.float64)
    side = ceil(sqrt(tuples))
    place = rng.permutation(side * side)[:tuples][member]
    sample = pa.table({"x": (place // side).astype(float), "y": (place % side).astype(float)})
    cost_us = rng.uniform(2.0, 20.0, operators)
    names = tuple(f"p{j + 1}" for j in range(operators))
    free = (frozenset[int](),) * operators
    profile = Profile(sample, names, free, outcomes, cost_us, cost_us)
    attributes, left_out = choose_attributes(sample)
    columns = {a.name: one_piece(sample.column(a.name)) for a in attributes}
    codes = [a.codes(columns[a.name]) for a in attributes]
    return TrainingSet(profile, attributes, left_out, codes, columns, member, tuples)
