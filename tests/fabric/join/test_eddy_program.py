"""Eddies whose tuples go as one program, against the same Eddies ruster by ruster."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import querymesh as qm
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.join.join_fabric import JoinFabric, static_stems
from querymesh.fabric.routers.eddy import PLAIN, PROFILING
from querymesh.fabric.routers.estimates import UNKNOWN, Pair, updated
from querymesh.fabric.routers.make_eddy import CBR, EDDY, make_eddy
from querymesh.fabric.routers.routing import PAPER, Routing
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.model import Probe
from querymesh.runtime.join_step import JoinSteps
from soak import random_cases
from window_cases import as_multiset, window_cases
from window_runs import at_most, bound, inputs_of_step, runs


@st.composite
def routings(draw):
    return Routing(
        probability=0.3,
        sample=draw(st.sampled_from([1, 4])),
        trial_rows=draw(st.sampled_from([1, 5])),
        chunk=draw(st.sampled_from([1, 3, 50])),
        one_route_per_chunk=draw(st.booleans()),
        by_cost=draw(st.booleans()),
        by_context=draw(st.booleans()),
        choice=draw(st.sampled_from(["least", "lottery"])),
        evidence=0.0,
        attribute_sets=draw(st.booleans()),
        at_once=draw(st.integers(1, 2)),
    )


def stepped(case, run, policy, routing, as_program, by_tuple=True):
    """What all steps of a run give, and the fabric with its routers."""
    join = bound(case)
    fabric = JoinFabric(
        join, static_stems(join, {r.alias: case.inputs[r.name] for r in case.statics})
    )
    routers = {}
    for alias, view in fabric.views.items():
        routers[alias] = make_eddy(policy, view.bound, routing, own=view.own)
        view._only_probes &= as_program
        if not by_tuple:
            by_tables(routers[alias])
    fabric.routers = routers
    steps = JoinSteps(fabric, routers)
    found = Counter()
    for number in range(run.steps):
        batches, places = inputs_of_step(case, run, number)
        for batch in steps.step(steps.arrivals(batches, places)):
            found.update(as_multiset(batch))
    return found, fabric


@random_cases(25, 60)
@given(st.data())
def test_as_a_program_an_eddy_gives_what_it_gives_ruster_by_ruster(data):
    case = data.draw(window_cases(most_streams=4))
    run = data.draw(runs(case))
    policy, routing = data.draw(st.sampled_from([EDDY, CBR, CBR])), data.draw(routings())
    with at_most(run.most_rows):
        wanted, plain = stepped(case, run, policy, routing, as_program=False)
        found, fabric = stepped(case, run, policy, routing, as_program=True)
    event("has results" if wanted else "has none")
    assert found == wanted
    for alias, view in fabric.views.items():
        one, other = view.metrics, plain.views[alias].metrics
        assert one.rows_in == other.rows_in == sum(one.leaf_rows.values())
        assert one.rows_out == other.rows_out
        if view._program is not None:
            event("as a program")
            if not routing.one_route_per_chunk:
                assert one.routing_calls == one.evaluations


def by_tables(router):
    """Let a router that decides tuple by tuple make a table for each."""
    router.__class__ = type("ByTables", (type(router),), {"by_tuple": False})


@random_cases(20, 30)
@given(st.data())
def test_tuple_by_tuple_a_program_decides_counts_and_learns_as_the_router_does(data):
    case = data.draw(window_cases(most_streams=4))
    run = data.draw(runs(case))
    policy = data.draw(st.sampled_from([EDDY, CBR, CBR]))
    routing = replace(
        data.draw(routings()), chunk=1, one_route_per_chunk=False, by_cost=False, by_context=False,
        trial_by="calls", all_at_first=data.draw(st.booleans()),
    )  # fmt: skip
    with at_most(run.most_rows):
        wanted, plain = stepped(case, run, policy, routing, as_program=True, by_tuple=False)
        found, fabric = stepped(case, run, policy, routing, as_program=True)
    assert found == wanted
    for alias, view in fabric.views.items():
        if view._program is None or view._program._by_tuple is None:
            continue
        event("tuple by tuple")
        one, other = fabric.routers[alias], plain.routers[alias]
        assert one.estimates.overall == other.estimates.overall
        assert one.estimates.seen == other.estimates.seen
        assert counted(view.metrics) == counted(plain.views[alias].metrics)
        if policy == CBR:
            assert learned(one) == learned(other)
            event("has pairs" if one.estimates.pairs else "has no pairs")


def counted(metrics):
    """What was done, but for the time it took and the number of rusters."""
    visits = {
        key: (each.evaluations, each.passed, each.comparisons)
        for key, each in metrics.visits.items()
    }
    leaves = {key: rows for key, rows in metrics.leaf_rows.items() if rows}
    return metrics.rows_out, visits, leaves, dict(metrics.routing)


def plain(batch):
    """A batch with times as numbers: Python has none before the year 1."""
    columns = [
        each.cast(pa.int64()) if pa.types.is_timestamp(each.type) else each
        for each in batch.columns
    ]
    return pa.record_batch(columns, batch.schema.names)


def learned(router):
    """What a router has learned about content, but for costs."""
    stored = router.to_json()
    del stored["estimates"]["cost_us"], stored["learning"]["debt_us"]
    samples = {
        index: (sample.outcome().tolist(), [plain(batch).to_pylist() for batch in sample.batches])
        for index, sample in router.learning._samples.items()
    }
    # One by one or many at a time, the tuples of a sample are the same, NaN among their values.
    stored["learning"]["samples"] = {
        index: (outcomes, [repr(row) for rows in batches for row in rows])
        for index, (outcomes, batches) in samples.items()
    }
    return stored


# A star by hand: which of b and c has a match depends on a's kind.

STAR = """SELECT a.id AS id FROM A a [RANGE 1 HOUR], B b [RANGE 1 HOUR], C c [RANGE 1 HOUR]
          WHERE a.x = b.x AND a.y = c.y"""


class Star:
    def __init__(self, policy, routing, as_program=True):
        schemas = {"A": self.a(0, 0).schema, "B": self.keys("x").schema, "C": self.keys("y").schema}
        self.fabric = JoinFabric(bind_join(qm.query(STAR, time="ts"), schemas))
        self.view = self.fabric.views["a"]
        self.view._only_probes &= as_program
        self.routers = {
            alias: make_eddy(policy, view.bound, routing, view.own)
            for alias, view in self.fabric.views.items()
        }
        self.router = self.routers["a"]
        self.steps = JoinSteps(self.fabric, self.routers)
        self.step(b=self.keys("x"), c=self.keys("y"))
        self.probe = {
            op.relation: op.index for op in self.view.bound.operators if isinstance(op, Probe)
        }

    @staticmethod
    def a(first, rows):
        """Of kind 0 one in ten matches in b and all in c; of kind 1 the other way round."""
        rng = np.random.default_rng(first)
        k = rng.integers(0, 2, rows)
        rare, often = rng.integers(0, 50, rows), rng.integers(0, 5, rows)
        return pa.record_batch(
            {
                "ts": pa.array(np.arange(first, first + rows) * 1000, pa.timestamp("us", "UTC")),
                "id": pa.array(np.arange(first, first + rows)),
                "k": pa.array(k),
                "x": pa.array(np.where(k == 0, rare, often)),
                "y": pa.array(np.where(k == 0, often, rare)),
            }
        )

    @staticmethod
    def keys(name):
        times = pa.array([0] * 5, pa.timestamp("us", "UTC"))
        return pa.record_batch({"ts": times, name: pa.array(range(5))})

    def step(self, **given):
        """The metrics of one step of a."""
        self.fabric.views["a"].metrics = Metrics()
        for _ in self.steps.step(self.steps.arrivals(given)):
            pass
        return self.fabric.views["a"].metrics


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (EDDY, {}),
        (EDDY, {"choice": "lottery"}),
        (CBR, {}),
        (CBR, {"at_once": 2, "budget": 1.0, "keep_pairs": True}),
    ],
)
def test_tuple_by_tuple_samples_and_trials_end_where_the_router_ends_them(policy, options):
    paper = replace(PAPER, chunk=1, probability=0.2, sample=40, trial_rows=60)
    one, other = (Star(policy, replace(paper, **options)) for _ in range(2))
    by_tables(other.router)
    for number in range(3):
        rows = Star.a(number * 400, 400)
        assert counted(one.step(a=rows)) == counted(other.step(a=rows))
        assert one.router.estimates.overall == other.router.estimates.overall
    assert one.view._program._by_tuple is not None
    if policy == CBR:
        assert learned(one.router) == learned(other.router)
        assert {event.decision for event in one.router.learning.events} >= {"kept"}


@pytest.mark.parametrize("choice", ["least", "lottery"])
@pytest.mark.parametrize("policy", [EDDY, CBR])
def test_w_is_what_the_counts_of_each_chunk_say(policy, choice):
    star = Star(policy, replace(PAPER, choice=choice, chunk=500, probability=0.2, sample=40))
    known, seen = {}, Counter()
    for number in range(12):
        metrics = star.step(a=star.a(number * 300, 300))
        for index, visits in metrics.by_operator().items():
            before = known.get(index, UNKNOWN)
            known[index] = updated(before, visits.evaluations, visits.passed, 0.95)
            seen[index] += visits.evaluations
        assert star.router.estimates.overall == pytest.approx(known, rel=1e-12)
        assert star.router.estimates.seen == seen


def test_w_by_context_is_what_came_to_it_in_each():
    star = Star(EDDY, replace(Routing(), by_cost=False, choice="lottery"))
    star.step(a=star.a(0, 3000))
    b, c = star.probe["b"], star.probe["c"]
    a = star.a(0, 3000)
    in_b, in_c = (np.asarray(a[name]) < 5 for name in ("x", "y"))
    both = 1 << b | 1 << c
    held = {k: each.numbers for k, each in star.router.estimates.by_context.items()}
    assert held[b][both][0] == pytest.approx(in_b.mean(), abs=0.05)
    assert held[b][1 << b][0] == pytest.approx(in_b[in_c].mean(), abs=0.05)
    assert held[c][1 << c][0] == pytest.approx(in_c[in_b].mean(), abs=0.05)


def test_s_follows_the_tuples_of_each_partition():
    stars = [Star(CBR, replace(PAPER, probability=1e-12), as_program) for as_program in (1, 0)]
    rows = Star.a(0, 800)
    for star in stars:
        star.router.estimates.overall[star.probe["c"]] = 0.5
        codes = star.router.partitions.codes(("k",), 24, lambda _: pa.array([0, 1]))
        column = np.full(25, 0.5)
        column[codes] = 0.3, 0.9
        star.router.estimates.pairs[star.probe["b"]] = Pair(("k",), 24, column, 0.5)
        star.step(a=rows)
    program, rusters = (s.router.estimates.pairs[s.probe["b"]].selectivity for s in stars)
    assert program.tolist() == pytest.approx(rusters.tolist(), rel=1e-12)
    kind, x, y = (np.asarray(rows[name]) for name in ("k", "x", "y"))
    assert program[codes[0]] == pytest.approx((x[kind == 0] < 5).mean()), "b comes first"
    let_through = int((y[kind == 1] < 5).sum())
    assert program[codes[1]] == pytest.approx(updated(0.9, let_through, let_through, 0.95)), (
        "of those that c let through, all match"
    )


def test_samples_are_of_tuples_that_profile_and_tell_what_came_of_each():
    star = Star(CBR, replace(PAPER, probability=0.3, sample=10_000, at_once=2, budget=1.0))
    profiled = 0
    for number in range(5):
        metrics = star.step(a=star.a(number * 400, 400))
        profiled += sum(rows for (_, leaf), rows in metrics.leaf_rows.items() if leaf != PLAIN)
    matched = {star.probe["b"]: "x", star.probe["c"]: "y"}
    samples = star.router.learning._samples
    assert samples.keys() == matched.keys()
    assert sum(sample.rows for sample in samples.values()) == profiled > 200, "nobody on their way"
    for index, name in matched.items():
        keys = np.asarray(samples[index].column(name))
        assert samples[index].outcome().tolist() == (keys < 5).astype(float).tolist()
    assert sum(calls for (_, by), calls in metrics.routing.items() if by == PROFILING) == sum(
        rows for (_, leaf), rows in metrics.leaf_rows.items() if leaf != PLAIN
    )
