"""Random ways to run a windowed join in memory; the results must not depend on any of them.

Rows are cut into steps, come late by up to `delay_us`, go to shards by the hypercube, and take any
routes, which change between steps, are decided on the way or planned round by round; states are
evicted and compacted in between, and have any indices, which change as well.
"""

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

import querymesh as qm
from classifiers import AnyClass
from equivalence import ROUTING
from querymesh.classify.tree import Classes, Leaf, Member, Missing, Split, Threshold
from querymesh.fabric.core import fabric as fabric_module
from querymesh.fabric.core.operators import UserCalls
from querymesh.fabric.core.router import MeshRouter, Router
from querymesh.fabric.core.tables import on_batch, one_batch
from querymesh.fabric.join import probe, shared_join_fabric, together, view
from querymesh.fabric.join.index_order import in_index_order
from querymesh.fabric.join.indices import Indices, attributes_of
from querymesh.fabric.join.join_fabric import JoinFabric, oldest_needed, static_stems
from querymesh.fabric.join.view import own_conditions
from querymesh.fabric.routers.make_eddy import EDDIES, EDDY, make_eddy
from querymesh.index.store.codes import equality_codes
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.index_plan import BitPlan, HashPlan
from querymesh.index.tune.assessment import ASSESSMENTS
from querymesh.index.tune.indexing import INDEXES, Indexing
from querymesh.index.tune.migration import MIGRATIONS
from querymesh.index.tune.schedule import SCHEDULES
from querymesh.index.tune.tuner import Tuner
from querymesh.mesh.hypercube import Hypercube, join_dimensions
from querymesh.mesh.mesh import LeafStats, Mesh, OperatorStats, TrainedOn
from querymesh.optimize.planning.orders import planned_mesh
from querymesh.optimize.shards.shares import choose_shares
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.query.model import Probe
from querymesh.runtime.join_step import JoinSteps
from window_cases import Arrival, WindowCase, as_multiset, results_of

TESTS = [
    Threshold("x", 0.5, True),
    Threshold("y", 1.0, False),
    Threshold("id", 5.0, False),
    Member("k", ("k1", "Ä")),
    Member("f", (True,)),
    Missing("u"),
]


@dataclass
class Run:
    """How a case is run: by input, the step and the place of each of its rows."""

    step_of: dict[str, list[int]]
    place_of: dict[str, list[int]]
    steps: int
    delay_us: int
    shards: int
    most_rows: int | None
    pruned: bool
    seed: int

    def arrivals(self, case: WindowCase) -> dict[str, list[Arrival]]:
        """When each tuple arrives, by alias and id."""
        found = {}
        for number, stream in enumerate(case.streams):
            name = stream.name
            found[stream.alias] = [
                Arrival(step, time_us, place, number)
                for step, time_us, place in zip(
                    self.step_of[name], case.times_us(name), self.place_of[name], strict=True
                )
            ]
        return found


def expected(case: WindowCase, run: Run, most: int) -> Counter:
    """DuckDB's rows; a case of so many combinations or more is none."""
    found = case.combinations(most)
    assume(found.num_rows < most)
    return results_of(case, found, lambda: run.arrivals(case))


@st.composite
def runs(draw, case: WindowCase) -> Run:
    """Any run of a case, in few steps if that is enough to fail."""
    steps = draw(st.integers(1, 6))
    return run_of(random.Random(draw(st.integers(0, 2**64 - 1))), case, steps)


def run_of(rng: random.Random, case: WindowCase, steps: int) -> Run:
    """Any cut into so many steps; with ROWS, one shard."""
    ends = [r.window.size for r in case.streams if r.window.kind == "range"]
    delay_us = rng.choice([0, 1, *ends, 3 * max(ends, default=0)])
    step_of, place_of = {}, {}
    for name in dict.fromkeys(r.name for r in case.streams):
        times = case.times_us(name)
        # Who is at most so much late never comes after one that is newer by more than that.
        due = [time + rng.randint(0, delay_us) for time in times]
        order = sorted(range(len(times)), key=due.__getitem__)
        place_of[name] = np.argsort(order).tolist()
        ends_of_steps = sorted(rng.randint(0, len(times)) for _ in range(steps - 1))
        step_of[name] = [bisect_right(ends_of_steps, place) for place in place_of[name]]
    return Run(
        step_of,
        place_of,
        steps,
        delay_us,
        shards=1 if case.counts_rows else rng.choice([1, 1, 2, 4, 6]),
        most_rows=rng.choice([None] * 5 + [64, 64, 7, 7, 1]),
        pruned=rng.random() < 0.5,
        seed=rng.getrandbits(32),
    )


def bound(case: WindowCase) -> JoinQuery:
    return bind_join(case.query, {name: table.schema for name, table in case.inputs.items()})


def results(case: WindowCase, run: Run) -> Counter:
    """The results of all steps and shards."""
    join = bound(case)
    rng = random.Random(run.seed)
    statics = static_stems(join, {r.alias: case.inputs[r.name] for r in case.statics})
    choosing = random.Random(run.seed + 1)
    shards = [_steps(choosing, JoinFabric(join, statics)) for _ in range(run.shards)]
    placed = shards_of(join, case, run)
    newest: dict[str, int] = {}
    found: Counter = Counter()
    routers = None
    policies = random.Random(~run.seed)
    with at_most(run.most_rows):
        for step in range(run.steps):
            if routers is None or rng.random() < 0.5:
                routers = {a: MeshRouter(random_mesh(rng, join, a, run.pruned)) for a in join.views}
                if (drawn := policies.random()) < 0.4:
                    routers = {a: random_eddy(policies, join, a, run.pruned) for a in join.views}
                elif drawn < 0.6:
                    routers = {a: MeshRouter(random_plan(policies, join, a)) for a in join.views}
            rows = {r.alias: rows_of_step(run, r.name, step) for r in case.streams}
            for shard, steps in enumerate(shards):
                here = {a: [i for i in ids if shard in placed[a][i]] for a, ids in rows.items()}
                batches = {a: _batch(join, case, a, ids, run.pruned) for a, ids in here.items()}
                places = {
                    r.alias: np.array([run.place_of[r.name][i] for i in here[r.alias]], np.int64)
                    for r in case.streams
                }
                changed_indices(choosing, steps.indices)
                steps.routers = routers
                arrivals = steps.arrivals(batches, places)
                if choosing.random() < 0.5:
                    plans = steps.indices.plans
                    arrivals = in_index_order(join, arrivals, plans, routers, least_rows=1)
                for batch in steps.step(arrivals):
                    assert batch.schema.equals(join.output_schema)
                    found.update(as_multiset(batch))
            for r in case.streams:
                times = case.times_us(r.name)
                seen = [times[i] for i in rows[r.alias]]
                newest[r.alias] = max([newest.get(r.alias, -(2**62)), *seen])
            for steps in shards:
                tidied(steps, rng, min(newest.values()) - run.delay_us)
    return found


def _steps(rng: random.Random, fabric: JoinFabric) -> JoinSteps:
    """A shard whose indices are tuned after every step; its routers are set before each."""
    return JoinSteps(fabric, {}, random_indices(rng, fabric), tunes=True)


def random_indices(rng: random.Random, fabric: JoinFabric) -> Indices:
    """Any kind of index with any settings, tuned after every step."""
    settings = Indexing(
        bits=rng.choice([None, 0, 1, 5]),
        budget=rng.choice([None, None, 3]),
        hashes=rng.choice([None, 0, 1, 2]),
        first=rng.choice([1, 20]),
        window=rng.choice([1, 20]),
        every=rng.choice([1, 30]),
        steps=rng.choice([1, 2]),
        assessment=rng.choice([*ASSESSMENTS]),
        schedule=rng.choice([*SCHEDULES]),
        migration=rng.choice(MIGRATIONS),
    )
    return Indices(fabric, Tuner(rng.choice([*INDEXES]), attributes_of(fabric.join), settings))


def changed_indices(rng: random.Random, indices: Indices) -> None:
    """Now and then any other plan, also such as no tuner would choose; rows that are hashed lie in
    any order."""
    for alias, (keys, orders) in attributes_of(indices.fabric.join).items():
        if rng.random() < 0.2:
            bits = tuple(rng.choice([0, 0, 1, 3]) for _ in range(keys + orders))
            sequence = tuple(rng.sample(range(keys + orders), keys + orders))
            indices.plans[alias] = BitPlan(Configuration(bits, keys, sequence))
        elif keys and rng.random() < 0.3:
            layout = tuple(sorted(rng.sample(range(keys), rng.randint(1, keys))))
            indices.plans[alias] = HashPlan(None, layout)


def tidied(steps: JoinSteps, rng: random.Random, horizon_us: int) -> None:
    """Forget and merge what may be, as a task does; or some of it; or nothing."""
    fabric, counted = steps.fabric, steps.counted
    if rng.random() < 0.3:
        steps.forget(horizon_us)
        return
    if rng.random() < 0.5:
        fabric.evict(horizon_us, counted)
    for alias in fabric.join.aliases:
        if rng.random() < 0.4:
            oldest = oldest_needed(fabric.join, alias, horizon_us, counted)
            steps.compact(alias, rng.choice([None, oldest]))


def rows_of_step(run: Run, name: str, step: int) -> list[int]:
    """The ids that arrive in a step, as they arrive."""
    ids = [i for i, s in enumerate(run.step_of[name]) if s == step]
    return sorted(ids, key=run.place_of[name].__getitem__)


def _batch(join: JoinQuery, case: WindowCase, alias: str, ids, pruned: bool) -> pa.RecordBatch:
    name = next(r.name for r in case.streams if r.alias == alias)
    table = case.inputs[name].take(pa.array(ids, pa.int64()))
    if pruned:
        table = table.select(join.columns_sent(alias))
    return one_batch(table)


@contextmanager
def at_most(rows: int | None) -> Iterator[None]:
    """Probes and outputs hand on at most so many rows at a time."""
    if rows is None:
        yield
        return
    with ExitStack() as patched:
        for module in (probe, together, view, fabric_module, shared_join_fabric):
            patched.enter_context(mock.patch.object(module, "MOST_ROWS", rows))
        yield


def inputs_of_step(case: WindowCase, run: Run, step: int) -> tuple[dict, dict]:
    """What arrives in a step by alias, as it arrives: the rows, and the place of each."""
    batches, places = {}, {}
    for stream in case.streams:
        steps, place = (np.array(of[stream.name], int) for of in (run.step_of, run.place_of))
        rows = sorted(np.flatnonzero(steps == step), key=place.__getitem__)
        taken = case.inputs[stream.name].take(pa.array(rows, pa.int64()))
        batches[stream.alias], places[stream.alias] = one_batch(taken), place[rows]
    return batches, places


def shards_of(join: JoinQuery, case: WindowCase, run: Run) -> dict[str, list[set[int]]]:
    """To which shards each tuple goes, by alias and id."""
    cube = cube_of(join, run.shards)
    return {r.alias: cells(join, cube, r.alias, case.inputs[r.name], run) for r in case.streams}


def cube_of(join: JoinQuery, shards: int) -> Hypercube:
    """The hypercube over the classes that a stream has an attribute of."""
    classes = {
        str(each.number): owners
        for each in join.classes
        if (owners := [alias for alias in each.members if alias in join.aliases])
    }
    rates = {alias: 1.0 + i % 3 for i, alias in enumerate(join.aliases)}
    return choose_shares(join_dimensions(join.aliases, classes), rates, shards)


def cells(join: JoinQuery, cube: Hypercube, alias: str, table: pa.Table, run: Run):
    own = np.zeros(table.num_rows, np.int64)
    for d in cube.owned(alias):
        own += cube.strides[d] * (_hashes(join, cube, d, alias, table, run) % cube.shares[d])
    return [{cell + offset for offset in cube.offsets(alias)} for cell in own.tolist()]


def _hashes(join: JoinQuery, cube: Hypercube, d: int, alias: str, table: pa.Table, run: Run):
    name = cube.dimensions[d].name
    if not name.isdigit():
        return np.arange(table.num_rows) * 7
    if not table.num_rows:
        return np.zeros(0, np.int64)
    each = join.classes[int(name)]
    batch = table.combine_chunks().to_batches()[0]
    values = on_batch(each.members[alias], batch, UserCalls(join.query.functions))
    values = values.cast(each.dtype)
    codes = np.zeros(len(values), np.int64)
    there = np.asarray(values.is_valid())
    codes[there] = [hash((c, run.seed)) >> 3 for c in equality_codes(values.drop_null()).codes]
    return codes


def random_mesh(
    rng: random.Random, join: JoinQuery, alias: str, pruned: bool, sent: list[str] | None = None
) -> Mesh:
    """Any tree with any allowed route at each leaf, also such as training would never find; `sent`
    are the columns there are, if not those of the join alone."""
    bound = join.views[alias]
    sent = sent or (join.columns_sent(alias) if pruned else None)
    columns = join.schemas[alias].names if sent is None else sent
    tests = [test for test in TESTS if test.attribute in columns]
    count = 0

    def grown(depth: int):
        nonlocal count
        if depth == 0 or not tests or rng.random() < 0.4:
            count += 1
            return Leaf(count - 1)
        return Split(rng.choice(tests), grown(depth - 1), grown(depth - 1))

    tree = grown(rng.choice([0, 1, 2, 3]))
    if tests and rng.random() < 0.25:
        count = rng.randint(2, 4)
        asked = AnyClass((rng.choice(tests).attribute,), count, rng.randint(0, 99))
        tree = Classes(asked, tuple(map(Leaf, range(count))), 0.1)
    routes = tuple(random_route(rng, bound.precedence) for _ in range(count))
    uncertain = tuple(random_choices(rng, route) for route in routes)
    return Mesh(
        bound.query,
        tuple(OperatorStats(op.name, op.after, 1.0, 0.5) for op in bound.operators),
        tree,
        routes,
        tuple(LeafStats(1 / count, 1.0, 1.0) for _ in range(count)),
        routes[0], 1.0, 1.0, 1.0, TrainedOn(1), (), "random",
        uncertain=uncertain if rng.random() < 0.5 else (),
        window=rng.choice([10_000, 5, 10_000, 1]),
        least_ruster=rng.choice([0, 3, 10_000]),
        classify_every=rng.choice([1, 1, 3, 10_000]),
    )  # fmt: skip


def random_plan(rng: random.Random, join: JoinQuery, alias: str) -> Mesh:
    """The one route that a planner (policies "rate" and "chart") makes of an order: any order, of
    all relations or of some, also such as precedence does not allow."""
    view = join.views[alias]
    relations = [op.relation for op in view.operators if isinstance(op, Probe)]
    order = rng.sample(relations, rng.randint(0, len(relations)))
    return planned_mesh(view, order, "random", profiled_rows=1)


def random_eddy(rng: random.Random, join: JoinQuery, alias: str, pruned: bool) -> Router:
    """A router that decides while tuples run, with any settings.

    Any column may be a classifier attribute of cbr, so it needs all of them.
    """
    policy = EDDY if pruned else rng.choice(EDDIES)
    routing = qm.policies.Routing(**{name: rng.choice(values) for name, values in ROUTING.items()})
    view = join.views[alias]
    return make_eddy(policy, view, routing, own_conditions(view), rng.getrandbits(32))


def random_choices(rng: random.Random, route: tuple[int, ...]):
    """The route with any of its adjacent operators put together in one choice."""
    steps: list[tuple[int, ...]] = []
    for index in route:
        if steps and rng.random() < 0.5:
            steps[-1] += (index,)
        else:
            steps.append((index,))
    return tuple(steps)


def random_route(rng: random.Random, after: tuple[frozenset[int], ...]) -> tuple[int, ...]:
    waiting, route = set(range(1, len(after) + 1)), []
    while waiting:
        ready = sorted(k for k in waiting if not after[k - 1] & waiting)
        route.append(rng.choice(ready))
        waiting.remove(route[-1])
    return tuple(route)
