import logging

import numpy as np
import pyarrow as pa
import pytest

import querymesh as qm
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.join.arrivals import in_order
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.fabric.join.probe import ProbeModule
from querymesh.fabric.profile import fan_out
from querymesh.fabric.profile.join_profile import SampledJoin, profile_arrivals
from querymesh.mesh.mesh import written_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.bind.windowed_join import bind_join
from querymesh.spark.joins.join_sample import stretch_of_time
from querymesh.spark.joins.join_train import JoinData

WINDOW = "[RANGE 9 SECONDS]"
STAR = f"""SELECT a.x AS i FROM A a {WINDOW}, B b {WINDOW}, C c {WINDOW}
           WHERE a.x = b.x AND a.y = c.y"""


def table(times, **columns):
    return pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), **columns})


def bound(sql, tables, functions=None):
    query = qm.query(sql, time="ts", functions=functions or {})
    return bind_join(query, {name: each.schema for name, each in tables.items()})


def by_alias(join, tables):
    return {s.alias: tables[s.name].combine_chunks().to_batches()[0] for s in join.streams}


def profiled(sql, tables, alias="a", timed=True, functions=None, on_error="raise"):
    join = bound(sql, tables, functions)
    sampled = SampledJoin(join, by_alias(join, tables), {}, on_error)
    arrivals = sampled.arrivals[alias]
    return profile_arrivals(join, alias, sampled.fabric.stems, arrivals, on_error, timed)


def fans(rows, first, second, **more):
    """Rows of a, each of which meets so many of b and so many of c."""
    zeros = np.zeros(max(rows, first, second), int)
    return {
        "A": table(np.arange(rows) + 10**6, x=zeros[:rows], y=zeros[:rows]),
        "B": table(np.arange(first), x=zeros[:first], **more),
        "C": table(np.arange(second), y=zeros[:second], **more),
    }


@pytest.mark.parametrize("timed", [True, False])
def test_a_large_fan_out_is_counted_whole(timed):
    profile, _ = profiled(STAR, fans(1000, 400, 150), timed=timed)
    assert np.unique(profile.outcomes, axis=0).tolist() == [[400, 150]]


@pytest.mark.parametrize("timed", [True, False])
def test_of_a_huge_fan_out_few_rows_are_asked_and_all_have_an_outcome(timed, monkeypatch):
    monkeypatch.setattr(fan_out, "MOST_COUNTED", 5_000)
    profile, evaluations = profiled(STAR, fans(200, 400, 3), timed=timed)
    assert np.unique(profile.outcomes, axis=0).tolist() == [[400, 3]]
    if not timed:
        assert evaluations == (200 + 50 + 13 + 4) + 200, (
            "of b, until a part could be counted; and of c"
        )


@pytest.mark.parametrize("timed", [True, False])
def test_rows_that_were_not_carried_on_do_not_count_as_dropped(timed, monkeypatch):
    monkeypatch.setattr(fan_out, "MOST_PROFILED", 500)
    sql = STAR + " AND b.v + c.v < 3"
    tables = fans(400, 10, 1)
    tables["B"] = tables["B"].append_column("v", pa.array(np.arange(10) % 2 * 5))
    tables["C"] = tables["C"].append_column("v", pa.array([0]))
    profile, _ = profiled(sql, tables, timed=timed)
    assert profile.outcomes[:, :2].mean(axis=0).tolist() == [10, 1]
    assert profile.outcomes[:, 2].mean() == pytest.approx(0.5, abs=0.1), "every second of b passes"


def test_each_condition_between_two_relations_has_its_own_outcome():
    rng = np.random.default_rng(0)
    n = 2000
    tables = {
        "A": table(np.arange(n) + n, x=np.arange(n), y=np.arange(n)),
        "B": table(np.arange(n), x=np.arange(n), p=rng.integers(0, 2, n), q=rng.integers(0, 4, n)),
        "C": table(np.arange(n), y=np.arange(n), p=rng.integers(0, 2, n), q=rng.integers(0, 4, n)),
    }
    profile, _ = profiled(STAR + " AND b.p = c.p AND b.q = c.q AND b.p <= c.q", tables)
    assert profile.names[2:] == ("b.p = c.p", "b.q = c.q", "b.p <= c.q")
    assert profile.outcomes.mean(axis=0) == pytest.approx([1, 1, 1 / 2, 1 / 4, 7 / 8], abs=0.05)


GUARDED = {
    "is_number": qm.predicate(str.isdigit, name="is_number", vectorised=False),
    "number": qm.function(
        int, name="number", after=["is_number"], returns=pa.int64(), vectorised=False
    ),
}
NUMBERS = {
    "A": table(range(100), s=["7", "bad"] * 50, v=range(100)),
    "B": table(range(100), k=[7, 8] * 50, v=range(100)),
}


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("key", ["number(a.s) = b.k", "a.v <= b.v AND number(a.s) < b.k"])
def test_a_key_is_computed_of_what_its_guard_lets_through(key, timed):
    sql = f"SELECT a.v AS i FROM A a {WINDOW}, B b {WINDOW} WHERE is_number(a.s) AND {key}"
    profile, evaluations = profiled(sql, NUMBERS, timed=timed, functions=GUARDED)
    assert profile.outcomes[:, 0].tolist() == [1, 0] * 50, "of all that arrived"
    assert not profile.outcomes[1::2, 1].any()
    assert profile.rows == 100
    if not timed:
        assert evaluations == 100 + 100 + 50, "the guard once more, before there are keys"


def test_text_keys_are_computed_of_what_their_guard_lets_through():
    shout = {"shout": qm.function(lambda s: {"7": "A"}[s], name="shout", returns=pa.string(),
                                  after=["is_number"], vectorised=False)}  # fmt: skip
    tables = {**NUMBERS, "B": table(range(100), k=["A", "b"] * 50)}
    sql = f"SELECT a.v AS i FROM A a {WINDOW}, B b {WINDOW} WHERE is_number(a.s) AND shout(a.s)=b.k"
    profile, _ = profiled(sql, tables, functions={**GUARDED, **shout})
    assert profile.outcomes[::2, 1].tolist() == list(range(50)), "those of b that came before"


def test_a_condition_after_another_is_not_asked_about_nothing():
    functions = {
        "first": qm.predicate(lambda x, y: x < y, name="first", vectorised=False),
        "later": qm.predicate(lambda x, y: x < y, name="later", after=["first"], vectorised=False),
    }
    tables = {"A": table([1, 2], k=[1, 2], v=[0, 0]), "B": table([1, 2], k=[7, 8], v=[0, 0])}
    sql = f"""SELECT a.v AS i FROM A a {WINDOW}, B b {WINDOW}
              WHERE a.k = b.k AND first(a.v, b.v) AND later(a.v, b.v)"""
    profile, _ = profiled(sql, tables, functions=functions)
    assert not profile.outcomes.any()


def trained(sql, tables, **settings):
    join = bound(sql, tables)
    data = {r.alias: tables[r.name] for r in join.query.relations}
    meshes, _ = JoinData(join, data, None, "raise").train(Training(**settings), one_route=False)
    return join, meshes


def test_a_stream_of_few_rows_is_profiled_by_all_of_them():
    tables = fans(3, 50, 100)
    join, meshes = trained(STAR, tables)
    assert meshes["a"].sample_rows == 3
    sampled = SampledJoin(join, by_alias(join, tables), {})
    assert sampled.profile("a", 100, 0).outcomes.tolist() == [[50, 100]] * 3


def test_arrivals_with_full_windows_that_cannot_be_joined_are_not_all_there_are():
    second = 10**6
    keys = pa.array([0] * 9 + [None] * 41, pa.int64())
    tables = {**fans(1, 5, 5), "A": table(np.arange(50) * second, x=keys, y=keys)}
    join = bound(STAR, tables)
    profile = SampledJoin(join, by_alias(join, tables), {}).profile("a", 100, 0)
    assert profile.rows == 9


@pytest.mark.parametrize("rows", [0, 50])
def test_a_stream_without_a_joinable_row_keeps_the_order_as_written(rows):
    tables = fans(rows, 20, 20)
    tables["A"] = table(range(rows), x=pa.nulls(rows, pa.int64()), y=pa.nulls(rows, pa.int64()))
    join, meshes = trained(STAR, tables)
    assert meshes["a"].routes == written_mesh(join.views["a"]).routes
    assert (meshes["a"].sample_rows, meshes["b"].sample_rows) == (0, 20)


def test_the_stretch_of_time_is_no_longer_for_rows_of_one_time(monkeypatch):
    monkeypatch.setattr("querymesh.spark.joins.join_sample.MOST_STRETCH", 100)
    tables = {name: table(np.zeros(500, int), x=range(500), y=range(500)) for name in "ABC"}
    join = bound(STAR, tables)
    found = stretch_of_time(join, {name.lower(): each for name, each in tables.items()}, 100)
    assert {alias: each.num_rows for alias, each in found.items()} == dict.fromkeys("abc", 100)


def test_the_stretch_of_time_begins_a_window_before_all_streams_have_begun():
    second = 10**6
    tables = {
        "A": table(np.arange(100_000, 101_000) * second, x=range(1000), y=range(1000)),
        "B": table(np.arange(101_000) * second, x=range(101_000)),
        "C": table(np.arange(100_000, 101_000)[::-1] * second, y=range(1000)),
    }
    join = bound(STAR, tables)
    found = stretch_of_time(join, {name.lower(): each for name, each in tables.items()}, 3 * 50 + 9)
    assert {alias: each.num_rows for alias, each in found.items()} == {"a": 50, "b": 59, "c": 50}
    seconds = {
        alias: each["ts"].cast(pa.int64()).to_numpy() // second for alias, each in found.items()
    }
    assert seconds["b"][0] == 100_000 - 9
    assert {each[-1] for each in seconds.values()} == {100_049}
    assert (seconds["c"] == seconds["a"]).all(), "in the order of time"


def test_streams_that_begin_together_are_taken_from_their_beginning():
    second = 10**6
    tables = fans(0, 0, 0)
    for name, first in zip("ABC", (0, 5, 9), strict=True):
        rows = 100
        tables[name] = table(np.arange(first, first + rows) * second, x=range(rows), y=range(rows))
    join = bound(STAR, tables)
    found = stretch_of_time(join, {name.lower(): each for name, each in tables.items()}, 60)
    assert found["a"]["ts"][0] == tables["A"]["ts"][0]
    assert sum(each.num_rows for each in found.values()) <= 62


def test_a_stretch_goes_on_until_the_windows_are_full():
    tables = {n: table(np.arange(1000) * 10**5, x=range(1000), y=range(1000)) for n in "ABC"}
    join = bound(STAR, tables)
    found = stretch_of_time(join, {name.lower(): each for name, each in tables.items()}, 20)
    assert {each.num_rows for each in found.values()} == {1 + 15 * 9}


def test_all_rows_are_taken_where_there_are_not_more():
    tables = fans(30, 40, 50)
    join = bound(STAR, tables)
    found = stretch_of_time(join, {name.lower(): each for name, each in tables.items()}, 120)
    assert {alias: each.num_rows for alias, each in found.items()} == {"a": 30, "b": 40, "c": 50}


@pytest.mark.parametrize(("rows", "told"), [(20, True), (400, False)])
def test_a_stretch_shorter_than_the_longest_window_is_told(rows, told, caplog, monkeypatch):
    monkeypatch.setattr("querymesh.spark.joins.join_sample.MOST_STRETCH", rows)
    tables = {n: table(np.arange(1000) * 10**5, x=range(1000), y=range(1000)) for n in "ABC"}
    join = bound(STAR, tables)
    with caplog.at_level(logging.WARNING, "querymesh"):
        stretch_of_time(join, {name.lower(): each for name, each in tables.items()}, rows)
    assert ("longest window 9" in caplog.text) == told


def test_profiling_asks_the_state_as_it_is_before_the_step_is_settled():
    tables = fans(5, 4, 3)
    join = bound(STAR, tables)
    fabric = JoinFabric(join)
    arrivals = in_order(by_alias(join, tables), join.times)
    routers = {alias: MeshRouter(written_mesh(view)) for alias, view in join.views.items()}
    fabric.admit(arrivals, routers)
    found = {
        alias: profile_arrivals(join, alias, fabric.stems, arrivals[alias], timed=False)[0]
        for alias in "ab"
    }
    assert found["a"].outcomes.tolist() == [[4, 3]] * 5
    assert not found["b"].outcomes.any(), "a came later"


@pytest.mark.parametrize(("rows", "us"), [(2000, 0.5), (200, 1.0)])
def test_what_a_visit_takes_by_itself_is_no_rows_cost(rows, us, monkeypatch):
    spent, process = [0.0], ProbeModule.process

    def slow(module, ruster):
        spent[0] += 100e-6 + 0.5e-6 * len(ruster)
        return process(module, ruster)

    monkeypatch.setattr(ProbeModule, "process", slow)
    monkeypatch.setattr(ProbeModule, "clock", staticmethod(lambda: spent[0]))
    profile, _ = profiled(STAR, fans(rows, 1, 1))
    # Of a few rows a slope says nothing: 100 µs are theirs.
    np.testing.assert_allclose(profile.pass_us, us)
