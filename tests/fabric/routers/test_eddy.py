import json
from dataclasses import replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import querymesh as qm
from eddies import eddy, run, stream, watched
from equivalence import as_multiset, cases, in_batches
from querymesh.errors import QueryMeshError
from querymesh.fabric.core import fabric as fabric_module
from querymesh.fabric.core import operators
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.pool import Pool
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.tables import make_tables
from querymesh.fabric.routers.content_oracle import OracleRouter
from querymesh.fabric.routers.eddy import NO_PAIR, EddyRouter
from querymesh.fabric.routers.make_eddy import make_eddy
from querymesh.fabric.routers.routing import BATCHED, PAPER, Routing
from querymesh.mesh.mesh import written_order

ONE_BY_ONE = replace(PAPER, chunk=1)


class PlainEddy:
    """Source-based routing as CBR § 4.1 and 4.2 have it: to the operator of least selectivity."""

    def __init__(self, operators):
        self.w = dict.fromkeys(operators, 0.5)

    def way(self, outcome):
        """Where a tuple goes; outcome[k] says whether it passes operator k."""
        ahead, way = set(self.w), []
        while ahead:
            chosen = min(sorted(ahead), key=self.w.__getitem__)
            ahead.remove(chosen)
            way.append(chosen)
            self.w[chosen] = self.w[chosen] * 0.95 + outcome[chosen] * (1 - 0.95)
            if not outcome[chosen]:
                break
        return way


matrices = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=60)
)


@given(matrices)
@settings(max_examples=60, deadline=None)
def test_tuple_by_tuple_it_is_the_papers_eddy(outcomes):
    batch = stream(outcomes)
    router = eddy(batch, ONE_BY_ONE)
    ways = watched(router)
    run(batch, router)
    plain = PlainEddy(range(1, len(outcomes[0]) + 1))
    assert [ways[i] for i in range(len(outcomes))] == [
        plain.way(dict(enumerate(row, 1))) for row in outcomes
    ]
    for index, selectivity in router.estimates.overall.items():
        assert selectivity == pytest.approx(plain.w[index])


@given(matrices, st.integers(1, 50), st.integers(1, 50))
@settings(max_examples=40, deadline=None)
def test_cut_anywhere_and_resumed_elsewhere_it_decides_the_same(outcomes, cut, chunk):
    batch = stream(outcomes)
    routing = replace(PAPER, chunk=chunk)
    whole, one, other = (eddy(batch, routing) for _ in range(3))
    cut = cut // chunk * chunk
    ways, first, second = watched(whole), watched(one), watched(other)
    run(batch, whole)
    run(batch.slice(0, cut), one)
    other.resume(json.loads(json.dumps(one.to_json())))
    run(batch.slice(cut), other)
    assert {**first, **second} == ways
    assert other.estimates.overall == whole.estimates.overall
    assert other.estimates.seen == whole.estimates.seen


def test_it_follows_selectivities_that_change():
    rng = np.random.default_rng(0)
    late = np.arange(4000) >= 2000
    first = rng.random(4000) < np.where(late, 0.9, 0.1)
    second = rng.random(4000) < np.where(late, 0.1, 0.9)
    batch = stream(np.stack([first, second], axis=1))
    router = eddy(batch, replace(PAPER, chunk=100))
    ways = watched(router)
    run(batch, router)
    assert np.mean([ways[i][0] == 1 for i in range(500, 2000)]) > 0.9
    assert np.mean([ways[i][0] == 2 for i in range(2500, 4000)]) > 0.9


def test_a_declared_cost_counts():
    def passes(share):
        return lambda x: pa.array(np.asarray(x) < share * 100)

    def routes(cost):
        functions = {
            "dear": qm.predicate(passes(0.2), name="dear", cost_us=cost),
            "cheap": qm.predicate(passes(0.6), name="cheap", cost_us=10.0),
        }
        query = qm.query("SELECT x FROM s WHERE dear(x) AND cheap(x)", functions=functions)
        batch = pa.record_batch({"x": np.random.default_rng(0).permutation(2000) % 100})
        bound = query.bind({"s": batch.schema})
        router = make_eddy("eddy", bound, Routing(chunk=100))
        list(Fabric(bound).run(batch, router))
        return [bound.operators[k - 1].name for k in router.routes()[0]]

    assert routes(cost=10.0) == ["dear", "cheap"]
    assert routes(cost=1000.0) == ["cheap", "dear"]


def test_what_an_operator_drops_counts_by_what_it_costs():
    router = eddy(stream([[True] * 3]), Routing())
    router.estimates.overall.update({1: 0.2, 2: 0.6, 3: 2.0})
    router.estimates.cost_us.update({1: 10.0, 2: 1.0, 3: 5.0})
    assert router.routes() == [(2, 1, 3)]
    paper = eddy(stream([[True] * 3]), PAPER)
    paper.estimates.take_over(router.estimates)
    assert paper.routes() == [(1, 2, 3)]
    router.estimates.overall.update({1: 2.0, 2: 2.0})
    assert router.routes() == [(1, 3, 2)], "of those that multiply, the dear ones first"


def test_the_lottery_draws_inversely_to_selectivity():
    batch = stream(np.ones((3000, 3), bool))
    router = eddy(batch, replace(PAPER, choice="lottery", chunk=3000))
    router.estimates.overall.update({1: 0.2, 2: 0.4, 3: 0.4})
    ways = watched(router)
    run(batch, router)
    firsts = np.bincount([way[0] for way in ways.values()], minlength=4)[1:] / 3000
    assert firsts == pytest.approx([0.5, 0.25, 0.25], abs=0.04)
    assert all(sorted(way) == [1, 2, 3] for way in ways.values())


def test_in_the_lottery_what_drops_everything_leaves_the_others_a_chance():
    batch = stream(np.zeros((2000, 2), bool))
    router = eddy(batch, replace(PAPER, choice="lottery", chunk=100))
    router.estimates.overall.update({1: 0.0, 2: 0.3})
    ways = watched(router)
    run(batch.slice(0, 100), router)
    assert {way[0] for way in ways.values()} == {1, 2}


@pytest.mark.parametrize("choice", ["least", "lottery"])
def test_a_chunk_that_travels_together_takes_one_way_and_one_call_a_step(choice):
    rng = np.random.default_rng(0)
    batch = stream(rng.random((1000, 3)) < 0.6)
    router = eddy(batch, replace(BATCHED, choice=choice))
    ways = watched(router)
    metrics = run(batch, router).metrics
    for first in range(0, 1000, 100):
        longest = max((ways[i] for i in range(first, first + 100)), key=len)
        assert all(ways[i] == longest[: len(ways[i])] for i in range(first, first + 100))
    assert metrics.routing_calls == 30
    assert metrics.evaluations == sum(map(len, ways.values()))


def test_calls_are_counted_by_operator_and_by_what_they_went_by():
    batch = stream([[True, False], [True, True], [False, False]])
    metrics = run(batch, eddy(batch, ONE_BY_ONE)).metrics
    assert metrics.routing == {(1, NO_PAIR): 2, (2, NO_PAIR): 3}
    assert metrics.routing_calls == metrics.evaluations == 5


def test_no_tuples_and_no_operators_are_no_problem():
    batch = stream(np.ones((3, 2), bool))
    assert run(batch.slice(0, 0), eddy(batch, PAPER)).metrics.routing_calls == 0
    query = qm.query("SELECT id FROM s")
    bound = query.bind({"s": batch.schema})
    for policy in ("eddy", "cbr"):
        fabric = Fabric(bound)
        out = list(fabric.run(batch, make_eddy(policy, bound, PAPER)))
        assert sum(b.num_rows for b in out) == 3
        assert fabric.metrics.routing_calls == 0


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"choice": "best"}, "least, lottery"),
        ({"trial_by": "time"}, "cost, calls"),
        ({"chunk": 0}, "chunk"),
        ({"sample": 0}, "sample"),
        ({"partitions": 1}, "partitions"),
        ({"probability": 0.0}, "probability"),
        ({"memory": 1.0}, "memory"),
        ({"threshold": -0.1}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
    ],
)
def test_settings_that_make_no_sense_are_named(wrong, says):
    with pytest.raises(QueryMeshError, match=says):
        Routing(**wrong)


# Any router gives the same results.

EAGER = Routing(probability=0.3, sample=20, trial_rows=5, threshold=0.0)


@st.composite
def eddies(draw):
    """A policy, and settings under which much happens to few tuples."""
    policy = draw(st.sampled_from(["eddy", "cbr", "cbr"]))
    routing = replace(
        EAGER,
        by_cost=draw(st.booleans()),
        choice=draw(st.sampled_from(["least", "lottery"])),
        chunk=draw(st.integers(1, 50)),
        one_route_per_chunk=draw(st.booleans()),
        sample=draw(st.sampled_from([1, 5, 20])),
        trial_by=draw(st.sampled_from(["cost", "calls"])),
        prune=draw(st.booleans()),
        attribute_sets=draw(st.booleans()),
        at_once=draw(st.integers(1, 3)),
        tune=draw(st.booleans()),
        keep_pairs=draw(st.booleans()),
    )
    return policy, routing, draw(st.integers(0, 99))


def made(case, policy, routing, seed):
    bound = case.bound
    by_alias = {r.alias: case.inputs[r.name] for r in bound.query.relations}
    fabric = Fabric(bound, make_tables(bound, by_alias))
    return fabric, make_eddy(policy, bound, routing, seed=seed)


@given(cases(), eddies(), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_any_eddy_gives_the_multiset_of_duckdb(case, drawn, batch_rows):
    fabric, router = made(case, *drawn)
    source = case.inputs["Src"]
    out = [b for batch in in_batches(source, batch_rows) for b in fabric.run(batch, router)]
    assert as_multiset(pa.Table.from_batches(out, case.bound.output_schema)) == case.expected()
    if not drawn[1].one_route_per_chunk:
        assert fabric.metrics.routing_calls == fabric.metrics.evaluations
    assert fabric.metrics.rows_in == source.num_rows
    json.dumps(router.to_json())


@given(cases(), eddies(), st.integers(1, 7))
@settings(max_examples=25, deadline=None)
def test_a_large_fan_out_is_followed_piece_by_piece(case, drawn, most):
    fabric, router = made(case, *drawn)
    with (
        mock.patch.object(operators, "MOST_ROWS", most),
        mock.patch.object(fabric_module, "MOST_ROWS", most),
    ):
        source = case.inputs["Src"]
        out = [b for batch in in_batches(source, 30) for b in fabric.run(batch, router)]
    assert as_multiset(pa.Table.from_batches(out, case.bound.output_schema)) == case.expected()


@given(cases(), eddies())
@settings(max_examples=20, deadline=None)
def test_rows_come_out_in_the_order_of_their_window(case, drawn):
    fabric, router = made(case, *drawn)
    router.window = None
    source = case.inputs["Src"]
    source = source.drop_columns("id").append_column("id", pa.array(range(source.num_rows)))
    for batch in in_batches(source, 25):
        ids = [i for out in fabric.run(batch, router) for i in out["id"].to_pylist()]
        assert ids == sorted(ids)


def guarded(batch, on_error):
    """A guard that must come first, and functions that raise without it, or on what it lets by."""

    def inverse(x):
        values = x.to_pylist()
        assert 0 not in values, "the guard comes first"
        if 7 in values:
            raise ValueError("seven")
        return pa.array([None if v is None else 10 / v > 2 for v in values])

    functions = {
        "guard": qm.predicate(lambda x: pa.array([v != 0 for v in x.to_pylist()]), name="guard"),
        "inverse": qm.predicate(inverse, name="inverse", after=["guard"]),
        "odd": qm.predicate(
            lambda x: pa.array([None if v is None else v % 2 == 1 for v in x.to_pylist()]),
            name="odd",
        ),
    }
    query = qm.query(
        "SELECT id FROM s WHERE inverse(x) AND odd(x) AND guard(x)", functions=functions
    )
    bound = query.bind({"s": batch.schema})
    return query, bound, Fabric(bound, on_error=on_error)


@given(st.lists(st.sampled_from([0, 1, 2, 3, 7, None]), max_size=80), eddies())
@settings(max_examples=60, deadline=None)
def test_what_must_come_first_does_and_errors_drop_the_same_rows(values, drawn):
    batch = pa.record_batch({"id": range(len(values)), "x": pa.array(values, pa.int64())})
    query, bound, fabric = guarded(batch, "drop")
    names = tuple(op.name for op in bound.operators)
    single = MeshRouter(written_order(query, names, bound.precedence))
    wanted = [i for b in fabric.run(batch, single) for i in b["id"].to_pylist()]
    assert wanted == [i for i, v in enumerate(values) if v in (1, 3)]
    policy, routing, seed = drawn
    _, _, fabric = guarded(batch, "drop")
    router = make_eddy(policy, bound, routing, seed=seed)
    assert [i for b in fabric.run(batch, router) for i in b["id"].to_pylist()] == wanted
    guard = next(op.index for op in bound.operators if op.name == "guard")
    inverse = next(op.index for op in bound.operators if op.name == "inverse")
    reached = fabric.metrics.by_operator()
    if inverse in reached:
        assert reached[inverse].evaluations <= reached[guard].passed


def test_passes_tells_which_rows_pass():
    rng = np.random.default_rng(0)
    outcomes = rng.random((500, 3)) < 0.7
    batch = stream(outcomes, c=rng.integers(0, 3, 500))
    query = qm.query("SELECT id FROM s WHERE p1 AND p2 AND p3")
    bound = query.bind({"s": batch.schema})
    for policy in ("eddy", "cbr"):
        found = Fabric(bound).passes(batch, make_eddy(policy, bound, replace(EAGER, chunk=33)))
        assert found.tolist() == outcomes.all(axis=1).tolist()


def test_content_knows_sends_each_value_its_way():
    batch = stream(np.ones((5, 2), bool), c=pa.array([0, 1, None, 2, 1]))
    router = OracleRouter("c", {0: (1, 2), 1: (2, 1)}, (2, 1))
    ways = watched(router)
    metrics = run(batch, router).metrics
    assert dict(ways) == {0: [1, 2], 1: [2, 1], 2: [2, 1], 3: [2, 1], 4: [2, 1]}
    assert metrics.routing_calls == 10
    assert {way for _, way in metrics.routing} == {"classifier c"}


def test_own_conditions_come_before_the_others():
    batch = stream(np.ones((4, 3), bool))
    operators_ = Fabric(qm.query("SELECT id FROM s WHERE p1 AND p2 AND p3").bind(
        {"s": batch.schema})).bound.operators  # fmt: skip
    router = EddyRouter(operators_, ONE_BY_ONE, own=frozenset({2, 3}))
    router.estimates.overall.update({1: 0.0, 2: 0.9, 3: 0.8})
    ways = watched(router)
    run(batch, router)
    assert all(set(way[:2]) == {2, 3} and way[2] == 1 for way in ways.values())
    assert set(router.routes()[0][:2]) == {2, 3}


def test_tuples_that_meet_again_after_different_ways_are_in_their_order():
    rng = np.random.default_rng(0)
    outcomes = np.column_stack([np.ones((200, 2), bool), rng.random(200) < 0.5])
    batch = stream(outcomes)
    router = eddy(batch, replace(PAPER, choice="lottery", chunk=200))
    router.estimates.overall.update({1: 0.1, 2: 0.1, 3: 1000.0})
    ways = watched(router)
    assert run(batch, router).metrics.by_operator()[3].calls < 5, "and go on together"
    assert {tuple(way) for way in ways.values()} >= {(1, 2, 3), (2, 1, 3)}


def test_a_large_fan_out_is_never_held_at_once():
    source = pa.table({"id": range(20), "g": [1] * 20})
    many = pa.table({"g": [1] * 30, "n": range(30)})
    query = qm.query("SELECT s.id FROM S s, Many t, Many u WHERE s.g = t.g AND s.g = u.g")
    bound = query.bind({"S": source.schema, "Many": many.schema})
    fabric = Fabric(bound, make_tables(bound, {"s": source, "t": many, "u": many}))
    held = []
    add = Pool.add

    def counting(pool, ruster):
        add(pool, ruster)
        held.append(pool.rows)

    with (
        mock.patch.object(operators, "MOST_ROWS", 50),
        mock.patch.object(fabric_module, "MOST_ROWS", 50),
        mock.patch.object(Pool, "add", counting),
    ):
        [batch] = source.to_batches()
        out = sum(b.num_rows for b in fabric.run(batch, make_eddy("eddy", bound, PAPER)))
    assert out == 20 * 30 * 30
    assert max(held) <= 50
