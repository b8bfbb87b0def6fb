"""Random queries over the same windowed streams, run in one pass in memory.

They are made of one random join: with other conditions, windows, outputs or names, over some of its
relations only, or with another join altogether.
"""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.tables import one_batch
from querymesh.fabric.join.shared_join_fabric import SharedJoinFabric, static_states
from querymesh.mesh.hypercube import join_dimensions
from querymesh.optimize.shards.shares import choose_shares
from querymesh.query.bind.share import QUERY, result_name
from querymesh.query.bind.share_joins import share_joins
from querymesh.query.shared_join import SharedJoin
from querymesh.runtime.join_step import JoinSteps
from window_cases import (
    FILTERS,
    RESIDUALS,
    Reach,
    Related,
    Spelled,
    WindowCase,
    as_multiset,
    conditions_of,
    filled,
    over_several,
    window_cases,
)
from window_runs import (
    Run,
    at_most,
    bound,
    cells,
    changed_indices,
    random_eddy,
    random_indices,
    random_mesh,
    rows_of_step,
    tidied,
)


@st.composite
def shared_windows(draw, most_streams=4) -> list[WindowCase]:
    """Two or three queries over the same inputs."""
    first = draw(window_cases(most_streams))
    rng = random.Random(draw(st.integers(0, 2**64 - 1)))
    return [first, *(other_case(rng, first) for _ in range(rng.choice([1, 1, 2])))]


def other_case(rng: random.Random, case: WindowCase) -> WindowCase:
    """Another query over the inputs of a case, that has more or less in common with it."""
    relations, conditions, outputs = case.relations, case.conditions, case.outputs
    aliases = [r.alias for r in relations]
    kind = rng.choice(["more", "more", "other outputs", "another join", "fewer"])
    if kind == "fewer" and len(case.streams) > 2:
        left = set(rng.sample([r.alias for r in case.streams], 2))
        relations = [r for r in relations if r.alias in left]
        aliases = [r.alias for r in relations]
    if kind in ("another join", "fewer"):
        conditions, outputs = conditions_of(rng, aliases)
    elif kind == "other outputs":
        _, outputs = conditions_of(rng, aliases)
    else:
        conditions = [*conditions, filled(rng.choice(FILTERS), a=rng.choice(aliases))]
        if rng.random() < 0.5:
            conditions.append(over_several(rng, rng.choice(RESIDUALS), aliases))
    if rng.random() < 0.5:
        relations = [_resized(rng, each) for each in relations]
    if rng.random() < 0.3:
        names = {alias: f"other_{alias}" for alias in aliases}
        relations = [each._replace(alias=names[each.alias]) for each in relations]
        conditions = [_renamed(each, names) for each in conditions]
        outputs = [_renamed(each, names) for each in outputs]
    return WindowCase(relations, conditions, outputs, case.inputs, case.time)


def _resized(rng: random.Random, related: Related) -> Related:
    if related.window is None or rng.random() < 0.5:
        return related
    kind, size, _ = related.window
    if kind == "rows":
        size = rng.choice([1, size, size + 2])
        return related._replace(window=Reach(kind, size, f"ROWS {size}"))
    size = max(int(size * rng.choice([0.3, 0.5, 1.5])), 1)
    return related._replace(window=Reach(kind, size, f"RANGE {size} MICROSECONDS"))


def _renamed(spelled: Spelled, names: dict[str, str]) -> Spelled:
    def text(sql: str) -> str:
        for alias, name in names.items():
            sql = sql.replace(f"{alias}.", f"{name}.")
        return sql

    return Spelled(*map(text, spelled))


def shared(cases: list[WindowCase]) -> SharedJoin:
    return share_joins([bound(case) for case in cases])


def cube_of_all(join: SharedJoin, shards: int):
    """The hypercube of all queries, of one cell where nothing is a dimension of all."""
    owners = {str(each.number): [*each.members] for each in join.classes}
    dimensions = join_dimensions(join.spread, owners)
    rates = {alias: 1.0 + i % 3 for i, alias in enumerate(join.aliases)}
    return choose_shares(dimensions, rates, shards if dimensions else 1)


def shared_results(cases: list[WindowCase], run: Run) -> list[Counter]:
    """The results of each query, from one pass over all steps and shards."""
    join, inputs = shared(cases), cases[0].inputs
    rng = random.Random(run.seed)
    cube = cube_of_all(join, 1 if join.counts_rows else run.shards)
    statics = static_states(join, {r.alias: inputs[r.name] for r in join.statics})
    choosing = random.Random(run.seed + 1)
    fabrics = [SharedJoinFabric(join, statics) for _ in range(cube.shards)]
    shards = [JoinSteps(f, {}, random_indices(choosing, f), tunes=True) for f in fabrics]
    placed = {s.alias: cells(join, cube, s.alias, inputs[s.name], run) for s in join.streams}
    times = {s.name: cases[0].times_us(s.name) for s in join.streams}
    newest: dict[str, int] = {}
    found = [Counter() for _ in cases]
    routers = None
    with at_most(run.most_rows):
        for step in range(run.steps):
            if routers is None or rng.random() < 0.5:
                routers = random_routers(rng, join, run.pruned)
            rows = {s.alias: rows_of_step(run, s.name, step) for s in join.streams}
            for shard, steps in enumerate(shards):
                batches, places = {}, {}
                for s in join.streams:
                    here = [i for i in rows[s.alias] if shard in placed[s.alias][i]]
                    table = inputs[s.name].take(np.array(here, np.int64))
                    if run.pruned:
                        table = table.select(join.columns_sent(s.alias))
                    batches[s.alias] = one_batch(table)
                    order = [run.place_of[s.name][i] for i in here]
                    places[s.alias] = np.array(order, np.int64)
                changed_indices(choosing, steps.indices)
                steps.routers = routers
                for batch in steps.step(steps.arrivals(batches, places)):
                    _take(found, batch)
            for s in join.streams:
                seen = [times[s.name][i] for i in rows[s.alias]]
                newest[s.alias] = max([newest.get(s.alias, -(2**62)), *seen])
            for steps in shards:
                tidied(steps, rng, min(newest.values()) - run.delay_us)
    return found


def random_routers(rng: random.Random, join: SharedJoin, pruned: bool):
    """Any mesh for each view, or an Eddy."""
    eddies = rng.random() < 0.2
    routers = {}
    for label, (group, alias) in join.labels.items():
        of = join.groups[group].join
        columns = join.columns_sent(alias) if pruned else None
        if eddies:
            routers[label] = random_eddy(rng, of, alias, pruned)
        else:
            routers[label] = MeshRouter(random_mesh(rng, of, alias, pruned, columns))
    return routers


def _take(found: list[Counter], batch) -> None:
    numbers = set(batch.column(QUERY).to_pylist())
    assert len(numbers) == 1
    (number,) = numbers
    rows = batch.column(result_name(number))
    if rows.type.num_fields == 0:
        found[number].update({"()": len(rows)})
        return
    found[number].update(as_multiset(_unpacked(rows)))


def _unpacked(rows):
    return pa.RecordBatch.from_arrays(rows.flatten(), schema=pa.schema(list(rows.type)))
