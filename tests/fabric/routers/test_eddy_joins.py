import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import querymesh as qm
from querymesh.fabric.core.tables import one_batch
from querymesh.fabric.join.join_fabric import JoinFabric, static_stems
from querymesh.fabric.routers.make_eddy import CBR, EDDY, make_eddy
from querymesh.fabric.routers.routing import BATCHED, PAPER, Routing
from querymesh.query.bind.windowed_join import bind_join
from querymesh.runtime.join_step import JoinSteps
from soak import random_cases
from window_cases import as_multiset, window_cases
from window_runs import bound, expected, runs


@st.composite
def routings(draw):
    return Routing(
        probability=0.3,
        sample=draw(st.sampled_from([1, 4])),
        trial_rows=draw(st.sampled_from([1, 5])),
        threshold=0.0,
        chunk=draw(st.sampled_from([1, 7, 50])),
        one_route_per_chunk=draw(st.booleans()),
        by_cost=draw(st.booleans()),
        choice=draw(st.sampled_from(["least", "lottery"])),
        prune=draw(st.booleans()),
        attribute_sets=draw(st.booleans()),
        at_once=draw(st.integers(1, 2)),
        keep_pairs=draw(st.booleans()),
    )


def eddies_of(fabric, policy, routing):
    """A router for each stream, which lasts."""
    return {
        alias: make_eddy(policy, view.bound, routing, own=view.own)
        for alias, view in fabric.views.items()
    }


def step_of(case, run, number):
    """What arrives in a step, and the place of each row in its stream."""
    batches, places = {}, {}
    for stream in case.streams:
        step, place = (np.array(of[stream.name], int) for of in (run.step_of, run.place_of))
        rows = sorted(np.flatnonzero(step == number), key=place.__getitem__)
        batches[stream.alias] = one_batch(case.inputs[stream.name].take(pa.array(rows, pa.int64())))
        places[stream.alias] = place[rows]
    return batches, places


@random_cases(30, 30)
@given(st.data())
def test_an_eddy_for_each_stream_gives_what_duckdb_gives_on_the_whole_data(data):
    case = data.draw(window_cases(most_streams=4))
    run = data.draw(runs(case))
    policy, routing = data.draw(st.sampled_from([EDDY, CBR, CBR])), data.draw(routings())
    wanted = expected(case, run, most=2_000)
    event("has results" if wanted else "has none")
    join = bound(case)
    fabric = JoinFabric(
        join, static_stems(join, {r.alias: case.inputs[r.name] for r in case.statics})
    )
    steps = JoinSteps(fabric, eddies_of(fabric, policy, routing))
    found = Counter()
    for number in range(run.steps):
        for batch in steps.step(steps.arrivals(*step_of(case, run, number))):
            found.update(as_multiset(batch))
    assert found == wanted
    for view in fabric.views.values():
        if not routing.one_route_per_chunk:
            assert view.metrics.routing_calls == view.metrics.evaluations


# A star by hand: which of b and c has a match depends on a's class.

STAR = """SELECT a.id AS id FROM A a [RANGE 1 HOUR], B b [RANGE 1 HOUR], C c [RANGE 1 HOUR]
          WHERE a.x = b.x AND a.y = c.y AND a.v < 90"""


class Star:
    def __init__(self, policy, routing):
        self.query = qm.query(STAR, time="ts")
        self.join = bind_join(
            self.query, {"A": self.a(0, 0).schema, "B": self.keys("x").schema,
                         "C": self.keys("y").schema},
        )  # fmt: skip
        self.fabric = JoinFabric(self.join)
        self.routers = eddies_of(self.fabric, policy, routing)
        self.steps = JoinSteps(self.fabric, self.routers)
        self.step(b=self.keys("x"), c=self.keys("y"))

    @staticmethod
    def a(first, rows, seed=0):
        """Of class 0 hardly any matches in b and all in c; of class 1 the other way round."""
        rng = np.random.default_rng((seed, first))
        k = rng.integers(0, 2, rows)
        rare, often = rng.integers(0, 100, rows), rng.integers(0, 5, rows)
        return pa.record_batch(
            {
                "ts": pa.array(np.arange(first, first + rows) * 1000, pa.timestamp("us", "UTC")),
                "id": pa.array(np.arange(first, first + rows)),
                "k": pa.array(k),
                "x": pa.array(np.where(k == 0, rare, often)),
                "y": pa.array(np.where(k == 0, often, rare)),
                "v": pa.array(rng.integers(0, 100, rows)),
            }
        )

    @staticmethod
    def keys(name):
        times = pa.array([0] * 5, pa.timestamp("us", "UTC"))
        return pa.record_batch({"ts": times, name: pa.array(range(5))})

    def step(self, **given):
        out = self.steps.step(self.steps.arrivals(given))
        return sorted(i for batch in out for i in batch["id"].to_pylist())

    def run(self, steps=8, rows=300, first=0):
        found = []
        for number in range(first, steps):
            found += self.step(a=self.a(number * rows, rows))
        return found

    @property
    def metrics(self):
        return self.fabric.views["a"].metrics


def wanted_of(steps=8, rows=300):
    found = []
    for number in range(steps):
        a = Star.a(number * rows, rows)
        columns = (np.asarray(a[name]) for name in ("id", "x", "y", "v"))
        found += [i for i, x, y, v in zip(*columns, strict=True) if x < 5 and y < 5 and v < 90]
    return found


LEARNING = replace(PAPER, probability=0.3, sample=50, trial_rows=100, keep_pairs=True)


def test_probes_are_ordered_by_the_content_of_the_arrival():
    by_source, by_content = Star(EDDY, PAPER), Star(CBR, LEARNING)
    assert by_source.run() == by_content.run() == wanted_of()
    known = {
        by_content.join.views["a"].operators[index - 1].name: pair.attributes
        for index, pair in by_content.routers["a"].estimates.pairs.items()
    }
    assert known.get("b") == ("k",) or known.get("c") == ("k",)
    for star in (by_source, by_content):
        learning = star.metrics.routing_calls
        star.run(first=8, steps=16)
        star.calls_a_tuple = (star.metrics.routing_calls - learning) / (8 * 300)
    # One call for a.v < 90, and of nine in ten that pass it one or, if need be, two.
    assert by_source.calls_a_tuple == pytest.approx(1 + 0.9 * 1.525, abs=0.1)
    assert by_content.calls_a_tuple == pytest.approx(1 + 0.9 * 1.05, abs=0.15)


def test_conditions_on_the_stream_come_before_its_probes():
    star = Star(CBR, LEARNING)
    star.run(steps=2)
    view = star.fabric.views["a"]
    [own] = view.own
    visits = view.metrics.by_operator()
    assert visits[own].evaluations == 600
    probes = [visits[op.index].evaluations for op in view.bound.operators if op.index != own]
    assert max(probes) <= visits[own].passed


@pytest.mark.parametrize("policy", [EDDY, CBR])
def test_a_chunk_that_travels_together_is_one_call_a_step_of_its_way(policy):
    star = Star(policy, BATCHED)
    assert star.run() == wanted_of()
    chunks = 8 * 3
    assert star.metrics.routing_calls <= chunks * 3 < star.metrics.evaluations


def test_what_was_learned_of_a_join_goes_on_elsewhere():
    star, fresh = Star(CBR, LEARNING), Star(CBR, LEARNING)
    star.run()
    for alias, router in star.routers.items():
        fresh.routers[alias].resume(json.loads(json.dumps(router.to_json())))
        assert fresh.routers[alias].to_json() == router.to_json()
    before = star.metrics.routing_calls
    again = [router.step(a=Star.a(9000, 300)) for router in (star, fresh)]
    assert again[0] == again[1]
    # Which tuples profile is drawn anew; the rest is decided alike.
    assert fresh.metrics.routing_calls == pytest.approx(
        star.metrics.routing_calls - before, rel=0.1
    )
