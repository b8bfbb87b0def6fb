from dataclasses import replace
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import querymesh as qm
from querymesh.classify.tree import Leaf, Split, Threshold
from querymesh.errors import PredicateError
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.join import state
from querymesh.fabric.join.arrivals import in_order, without_null
from querymesh.fabric.join.join_fabric import JoinFabric, static_stems
from querymesh.fabric.join.join_ruster import FOREVER, moved
from querymesh.fabric.join.probe import JoinedKeys
from querymesh.index.store.codes import Codes
from querymesh.mesh.mesh import written_order
from querymesh.query.bind.windowed_join import LONGEST_WINDOW, bind_join
from querymesh.query.evaluate import evaluate
from querymesh.runtime.join_step import JoinSteps
from soak import random_cases
from window_cases import window_cases
from window_runs import at_most, expected, results, runs

SECOND_US = 1_000_000


@random_cases(100, 150)
@given(st.data())
def test_any_way_to_run_a_windowed_join_gives_what_duckdb_gives_on_the_whole_data(data):
    case = data.draw(window_cases())
    run = data.draw(runs(case))
    wanted = expected(case, run, most=5_000)
    event("has results" if wanted else "has none")
    assert results(case, run) == wanted


# One join by hand: rows are (second, key, value), and what comes out are the values.


def batch(*rows, key=None) -> pa.RecordBatch:
    seconds, keys, values = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.record_batch(
        {
            "ts": pa.array([s * SECOND_US for s in seconds], pa.timestamp("us", "UTC")),
            "k": pa.array(keys, key or pa.int64()),
            "v": pa.array(values, pa.int64()),
        }
    )


def places_of(streams):
    """Where rows stand in their inputs, if one stream's come after the other's."""
    ends = np.cumsum([rows.num_rows for rows in streams.values()])
    return {
        alias: np.arange(end - rows.num_rows, end)
        for (alias, rows), end in zip(streams.items(), ends, strict=True)
    }


class Running:
    """A join that runs step by step, on the order as written unless a route is given."""

    def __init__(self, sql, functions=None, on_error="raise", key=None, time="ts", **tables):
        self.query = qm.query(sql, time=time, functions=functions or {})
        names = {r.name for r in self.query.relations}
        self.join = bind_join(self.query, {name: batch(key=key).schema for name in names})
        self.key = key
        statics = static_stems(
            self.join, {a: pa.Table.from_batches([t]) for a, t in tables.items()}, on_error
        )
        self.fabric = JoinFabric(self.join, statics, on_error)
        self.steps = JoinSteps(self.fabric, self.routers())

    @property
    def counted(self):
        return self.steps.counted

    def routers(self, **routes):
        made = {}
        for alias, view in self.join.views.items():
            names = tuple(op.name for op in view.operators)
            mesh = written_order(self.query, names, view.precedence)
            if alias in routes:
                indices = {op.name: op.index for op in view.operators}
                route = tuple(indices[name] for name in routes[alias])
                mesh = replace(mesh, routes=(route,), single=route)
            made[alias] = MeshRouter(mesh)
        return made

    def step(self, routes=None, absent=(), **streams):
        """The results of a step, sorted; streams that are not named get nothing."""
        given = {a: batch(*streams.get(a, ()), key=self.key) for a in self.join.aliases}
        here = {alias: rows for alias, rows in given.items() if alias not in absent}
        self.steps.routers = self.routers(**(routes or {}))
        out = list(self.steps.step(self.steps.arrivals(here, places_of(here))))
        return sorted(tuple(row.values()) for b in out for row in b.to_pylist())

    def stored(self):
        return {alias: stem.rows for alias, stem in self.fabric.streams.items()}


PAIR = "SELECT a.v AS i, b.v AS j FROM A a [RANGE 5 SECONDS], B b [RANGE 2 SECONDS] WHERE a.k = b.k"


def test_each_stream_has_its_own_window_to_the_newest_member():
    running = Running(PAIR)
    assert running.step(a=[(0, 7, 1), (4, 7, 2)], b=[(2, 7, 10)]) == [(1, 10), (2, 10)]
    assert running.step(a=[(5, 7, 3)]) == [], "b is 3 seconds older, and reaches 2"
    assert running.step(b=[(9, 7, 11), (10, 7, 12)]) == [(2, 11), (3, 11), (3, 12)]


def test_a_window_ends_with_its_last_microsecond():
    running = Running(PAIR.replace("2 SECONDS", "1 MICROSECOND"))
    second = 1 / SECOND_US
    assert running.step(b=[(1, 7, 10)], a=[(1 + second, 7, 1), (1 + 2 * second, 7, 2)]) == [(1, 10)]


@pytest.mark.parametrize("window", ["RANGE 999999999 DAYS", "ROWS 99999999999999999999"])
def test_a_window_may_be_so_long_that_it_never_ends(window):
    running = Running(PAIR.replace("RANGE 5 SECONDS", window))
    assert running.step(a=[(-60_000_000_000, 7, 1)]) == []
    running.fabric.evict(0, running.counted)
    running.fabric.streams["a"].compact(running.join.streams[0].window.size)
    assert running.step(b=[(250_000_000_000, 7, 10)]) == [(1, 10)]


LAST_SECOND = (2**63 - 1) // SECOND_US


@pytest.mark.parametrize("second", [LAST_SECOND, -LAST_SECOND], ids=["last", "first"])
def test_a_window_at_the_end_of_time_holds_what_is_in_it(second):
    running = Running(PAIR.replace("2 SECONDS", "1 DAY"))
    assert running.step(a=[(second, 7, 1)], b=[(second, 7, 10)]) == [(1, 10)]
    assert running.step(a=[(second, 7, 2)]) == [(2, 10)]
    assert running.step(b=[(second, 7, 11)]) == [(1, 11), (2, 11)]


@given(
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.integers(-LONGEST_WINDOW, LONGEST_WINDOW),
)
def test_a_time_moves_as_far_as_numbers_go(time, span):
    wanted = max(-FOREVER, min(FOREVER, time + span))
    assert moved(np.array([time]), span).tolist() == [wanted]


def test_a_tuple_that_comes_late_meets_those_that_are_newer():
    running = Running(PAIR)
    assert running.step(b=[(6, 7, 10)]) == []
    assert running.step(a=[(0, 7, 1), (1, 7, 2)]) == [(2, 10)]


def test_tuples_of_one_step_meet_once_and_not_themselves():
    running = Running(
        "SELECT a.v AS i, b.v AS j FROM A a [RANGE 5 SECONDS], A b [RANGE 5 SECONDS] "
        "WHERE a.k = b.k AND a.v < b.v"
    )
    rows = [(0, 7, 1), (0, 7, 2), (1, 8, 3)]
    assert running.step(a=rows, b=rows) == [(1, 2)]


def test_rows_count_by_arrival_whatever_conditions_the_stream_has():
    running = Running(
        "SELECT a.v AS i, b.v AS j FROM A a [ROWS 2], B b [ROWS 1] WHERE a.k = b.k AND a.v <> 2"
    )
    assert running.step(a=[(0, 7, 1), (1, 7, 2)]) == []
    assert running.step(b=[(2, 7, 10)]) == [(1, 10)], "both are among the last two"
    assert running.step(a=[(3, 8, 2)], b=[(4, 7, 11)]) == [], "another came that was dropped"
    assert running.step(a=[(5, 7, 4)]) == [(4, 11)]
    assert running.step(b=[(6, 9, 12)]) == []
    assert running.step(a=[(7, 7, 5)]) == [], "the last of b has another key"


def test_rows_are_counted_in_steps_that_have_none_of_a_stream():
    running = Running("SELECT a.v AS i, b.v AS j FROM A a [ROWS 2], B b [ROWS 1] WHERE a.k = b.k")
    assert running.step(a=[(0, 7, 1), (1, 7, 2), (2, 7, 3)], absent="b") == []
    assert running.step(b=[(3, 7, 10), (4, 7, 11)], absent="a") == [
        (2, 10),
        (2, 11),
        (3, 10),
        (3, 11),
    ]
    assert running.step(a=[(5, 7, 4)], absent="b") == [(4, 11)]


def test_rows_need_no_time_column():
    running = Running("SELECT a.v AS i, b.v AS j FROM A a [ROWS 1], B b [ROWS 1] WHERE a.k = b.k",
                      time=None)  # fmt: skip
    assert running.join.times == {}
    assert running.step(a=[(9, 7, 1), (3, 7, 2)], b=[(0, 7, 10)]) == [(2, 10)]


def test_the_order_of_arrival_is_by_time_then_place_then_from():
    a, b = batch((2, 0, 0), (1, 0, 1), (1, 0, 2)), batch((1, 0, 3), (2, 0, 4))
    found = in_order({"a": a, "b": b}, {"a": "ts", "b": "ts"}, {"a": 5})
    assert found["a"].rows["v"].to_pylist() == [1, 2, 0]
    assert found["a"].serials.tolist() == [0, 1, 3]
    assert found["b"].serials.tolist() == [2, 4]
    assert found["a"].numbers.tolist() == [5, 6, 7], "of the stream, since it began"
    assert found["a"].before["a"].tolist() == [5, 6, 7], "without the tuple itself"
    assert found["b"].before["a"].tolist() == [7, 8]
    assert found["a"].times.tolist() == [SECOND_US, SECOND_US, 2 * SECOND_US]

    places = {"a": np.array([0, 4, 2]), "b": np.array([2, 3])}
    placed = in_order({"a": a, "b": b}, {"a": "ts", "b": "ts"}, {"b": 0}, places)
    assert placed["a"].rows["v"].to_pylist() == [2, 1, 0], "of one time, by their place"
    assert placed["a"].serials.tolist() == [0, 2, 3]
    assert placed["b"].serials.tolist() == [1, 4], "of one time and place, by FROM"
    assert placed["a"].before["b"].tolist() == [0, 1, 1]


def test_a_part_of_arrivals_keeps_what_belongs_to_each():
    found = in_order({"a": batch((1, 0, 1), (2, 0, 2), (3, 0, 3))}, {"a": "ts"}, {"a": 0})["a"]
    part = found.slice(1, 2)
    assert (part.rows["v"].to_pylist(), part.serials.tolist()) == ([2, 3], [1, 2])
    assert (part.numbers.tolist(), part.before["a"].tolist()) == ([1, 2], [1, 2])


def test_no_arrivals_are_in_order():
    found = in_order({"a": batch(), "b": batch()}, {"a": "ts", "b": "ts"}, {"a": 3})
    assert [len(arrived) for arrived in found.values()] == [0, 0]


def test_rows_without_a_value_can_be_left_out():
    rows = pa.record_batch({"ts": pa.array([1, None, 3])})
    assert without_null(rows, "ts")["ts"].to_pylist() == [1, 3]


def test_eviction_keeps_what_a_later_tuple_may_meet_and_drops_the_rest():
    running = Running(PAIR)
    running.step(a=[(0, 7, 1)], b=[(0, 7, 10)])
    running.step(a=[(3, 7, 2)], b=[(3, 7, 11)])
    running.fabric.evict(5 * SECOND_US, {})
    assert running.stored() == {"a": 2, "b": 1}, "a reaches 5 seconds back, b only 2"
    assert running.step(b=[(5, 7, 12)]) == [(1, 12), (2, 12)]
    running.fabric.evict(5 * SECOND_US + 1, {})
    assert running.stored() == {"a": 1, "b": 1}


def test_the_state_of_a_long_stream_stays_as_large_as_its_window():
    """What the window holds, the rows of a step, and what is in a partition with newer rows."""
    running = Running(PAIR)
    for step in range(200):
        now = step * 2
        running.step(
            a=[(now, step % 3, step), (now + 1, step % 3, step)],
            b=[(now, step % 3, step), (now + 1, step % 3, step)],
        )
        running.fabric.evict((now + 1) * SECOND_US, running.counted)
        assert running.stored()["a"] <= 6 + 2
        assert running.stored()["b"] <= 3 + 2


def test_the_state_of_a_window_of_rows_holds_its_rows_and_a_partition_more():
    running = Running("SELECT a.v AS i FROM A a [ROWS 4], B b [ROWS 2] WHERE a.k = b.k")
    for step in range(50):
        rows = [(step, 7, step)] * 3
        running.step(a=rows, b=rows)
        running.fabric.evict(0, running.counted)
        assert 4 <= running.stored()["a"] + (step == 0) <= 4 + 2
        assert 2 <= running.stored()["b"] <= 2 + 2


CHAIN = """SELECT a.v AS i, b.v AS j, c.v AS l
           FROM A a [RANGE 9 SECONDS], B b [RANGE 9 SECONDS], C c [RANGE 9 SECONDS]
           WHERE a.k = b.k AND b.k = c.k"""


def test_routes_may_change_between_steps():
    steps = [{alias: [(s, s % 2, 10 * s + i)] for i, alias in enumerate("abc")} for s in range(6)]
    fixed, changing = Running(CHAIN), Running(CHAIN)
    for s, rows in enumerate(steps):
        route = ("b", "c") if s % 2 else ("c", "b")
        assert changing.step({"a": route}, **rows) == fixed.step(**rows)


def test_comparisons_and_probes_are_counted_where_they_happen():
    running = Running(CHAIN)
    running.step(b=[(0, 1, 1), (0, 1, 2), (0, 2, 3)], c=[(0, 1, 4)])
    made = {alias: running.fabric.stems[alias].probes for alias in "abc"}
    assert made == {"a": 4, "b": 0, "c": 0}, "there was no a, so nobody went further"
    before = {alias: running.fabric.stems[alias].comparisons for alias in "abc"}

    def looked(route, row):
        running.step({"a": route}, a=[row])
        now = {alias: running.fabric.stems[alias].comparisons for alias in "abc"}
        grown = tuple(now[alias] - before[alias] for alias in "bc")
        before.update(now)
        return grown

    assert looked(("b", "c"), (1, 1, 0)) == (2, 2), "two of b, and for each of them one of c"
    assert looked(("c", "b"), (1, 1, 0)) == (2, 1), "one of c, and then two of b"
    assert looked(("b", "c"), (1, 2, 0)) == (1, 0), "c has no such key"
    assert looked(("c", "b"), (1, 2, 0)) == (0, 0), "so b is not even asked"
    view = running.fabric.views["a"]
    assert view.metrics.comparisons == 2 + 2 + 2 + 1 + 1
    by_name = {
        op.name: view.metrics.by_operator()[op.index].evaluations for op in view.bound.operators
    }
    assert by_name == {"b": 3, "c": 5}
    assert view.metrics.rows_out == 4


def test_texts_that_share_a_hash_are_told_apart():
    def all_alike(values):
        return Codes(np.zeros(len(values), np.int64), exact=False)

    key = pa.string()
    rows = {"a": [(0, "x", 1), (0, "y", 2)], "b": [(0, "y", 10), (1, "z", 11)]}
    with mock.patch.object(state, "equality_codes", all_alike):
        running = Running(PAIR, key=key)
        assert running.step(**rows) == [(2, 10)]
        assert running.step(b=[(2, "x", 12)]) == [(1, 12)], "from the state as well"
    with mock.patch.object(state, "equality_codes", all_alike):
        upper = Running(PAIR.replace("a.k = b.k", "upper(a.k) = b.k"), key=key)
        assert upper.step(a=[(0, "x", 1), (0, "y", 2)], b=[(0, "Y", 10)]) == [(2, 10)]
    with mock.patch.object(state, "equality_codes", all_alike):
        third = CHAIN.replace("b.k = c.k", "b.k = c.k AND a.v < c.v")
        chain = Running(third, key=key)
        for alias in "abc":
            made = chain.step(**{alias: [(0, "x", ord(alias)), (0, "y", ord(alias) + 9)]})
        assert made == [tuple(map(ord, "abc")), tuple(ord(c) + 9 for c in "abc")]


def test_a_column_may_be_called_as_the_values_of_a_key_are():
    query = qm.query(PAIR.replace("a.k = b.k", "upper(a.__key0) = b.k"), time="ts")
    a = batch((0, "x", 1), key=pa.string()).rename_columns(["ts", "__key0", "v"])
    b = batch((0, "X", 10), key=pa.string())
    join = bind_join(query, {"A": a.schema, "B": b.schema})
    fabric = JoinFabric(join)
    routers = {
        alias: MeshRouter(written_order(query, tuple(o.name for o in v.operators), v.precedence))
        for alias, v in join.views.items()
    }
    steps = JoinSteps(fabric, routers)
    found = steps.step(steps.arrivals({"a": a, "b": b}))
    assert [out.to_pylist() for out in found] == [[{"i": 1, "j": 10}]]


def test_keys_that_differ_only_in_the_type_of_a_number_are_two():
    sql = CHAIN.replace(
        "a.k = b.k AND b.k = c.k",
        "concat(a.k, CAST(1 AS STRING)) = b.k AND concat(a.k, CAST(TRUE AS STRING)) = c.k",
    )
    running = Running(sql, key=pa.string())
    rows = {"a": [(0, "x", 1)], "b": [(0, "x1", 2)], "c": [(0, "xtrue", 3)]}
    assert running.step(**rows) == [(1, 2, 3)]


def test_what_stands_behind_the_probes_is_counted_leaf_by_leaf():
    running = Running(PAIR + " AND a.v + b.v > 12")
    (single,) = running.routers()["a"].mesh.routes
    tree = Split(Threshold("v", 1.0, False), Leaf(0), Leaf(0))
    mesh = replace(running.routers()["a"].mesh, tree=tree, leaves=())
    running.routers = lambda **_: {**Running.routers(running), "a": MeshRouter(mesh)}
    assert running.step(b=[(0, 7, 10), (0, 7, 11)]) == []
    assert running.step(a=[(1, 7, 1), (1, 7, 2), (1, 7, 3)]) == [(2, 11), (3, 10), (3, 11)]
    probe, condition = single
    visits = running.fabric.views["a"].metrics.visits
    for leaf, arrived, passed in ((0, 1, 0), (1, 2, 3)):
        assert visits[0, leaf, probe].evaluations == arrived
        assert (
            visits[0, leaf, probe].passed == visits[0, leaf, condition].evaluations == 2 * arrived
        )
        assert visits[0, leaf, condition].passed == passed


def too_long(rows):
    """Evaluation that takes no more than so many rows at a time, as Arrow does with long texts."""

    def limited(expr, column, count, *more):
        if count > rows:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
        return evaluate(expr, column, count, *more)

    return limited


@pytest.mark.parametrize("place", ["operators", "output"])
def test_texts_too_long_for_one_array_are_gone_through_in_parts(place):
    sql = PAIR + " AND a.v <> b.v"
    rows = {"a": [(0, 7, v) for v in range(5)], "b": [(0, 7, v) for v in range(4)]}
    wanted = Running(sql).step(**rows)
    with mock.patch(f"querymesh.fabric.core.{place}.evaluate", too_long(3)):
        assert Running(sql).step(**rows) == wanted
    with (
        mock.patch(f"querymesh.fabric.core.{place}.evaluate", too_long(0)),
        pytest.raises(pa.ArrowInvalid, match="overflowed"),
    ):
        Running(sql).step(**rows)


def test_keys_too_long_for_one_array_are_compared_in_parts():
    values = JoinedKeys.values

    def limited(self, ruster, alias, each):
        if len(ruster) > 3:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
        return values(self, ruster, alias, each)

    rows = {"a": [(0, "x", v) for v in range(5)], "b": [(0, "x", v) for v in range(4)]}
    wanted = Running(PAIR, key=pa.string()).step(**rows)
    with mock.patch.object(JoinedKeys, "values", limited):
        assert Running(PAIR, key=pa.string()).step(**rows) == wanted


def test_a_row_that_fails_in_an_array_that_is_too_long_is_dropped_once():
    sql = f"{PAIR} AND p(a.v + b.v)"
    rows = {"a": [(0, 7, v) for v in range(5)], "b": [(0, 7, v) for v in range(4)]}
    wanted = Running(sql, FAILING, on_error="drop").step(**rows)

    def limited(expr, column, count, *more):
        result = evaluate(expr, column, count, *more)
        if count > 3:
            raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")
        return result

    with mock.patch("querymesh.fabric.core.operators.evaluate", limited):
        running = Running(sql, FAILING, on_error="drop")
        assert running.step(**rows) == wanted
    errors = sum(view.metrics.errors_dropped for view in running.fabric.views.values())
    assert errors == 20 - len(wanted)


def test_the_memory_of_a_state_without_columns_can_be_told():
    running = Running("SELECT a.v AS i FROM A a [ROWS 5], B b [ROWS 5] WHERE a.v > b.v", time=None)
    assert running.join.columns_kept("b") == []
    running.step(a=[(0, 7, 1)], b=[(0, 7, 0), (0, 7, 1)])
    assert running.fabric.streams["b"].nbytes > 0


def test_a_tuple_that_can_join_nothing_is_not_stored():
    running = Running(PAIR + " AND a.v > 0")
    assert running.step(a=[(0, None, 1), (0, 7, 1), (0, 7, 0), (0, 7, None)]) == []
    assert running.stored() == {"a": 1, "b": 0}
    assert running.fabric.views["a"].unjoinable == 1
    assert running.step(b=[(0, None, 10), (0, 7, 11)]) == [(1, 11)]


def test_a_static_table_has_no_window():
    running = Running(
        "SELECT a.v AS i, b.v AS j, t.v AS l "
        "FROM A a [RANGE 5 SECONDS], B b [RANGE 2 SECONDS], T t "
        "WHERE a.k = b.k AND t.k = b.k AND t.v > 1",
        t=batch((-99, 7, 1), (999, 7, 2), (0, None, 3), (0, 7, 4), (0, 8, 5)),
    )
    assert running.step(a=[(0, 7, 1)], b=[(1, 7, 10), (4, 7, 11)]) == [
        (1, 10, 2), (1, 10, 4), (1, 11, 2), (1, 11, 4),
    ]  # fmt: skip
    assert running.step(b=[(6, 7, 12)]) == []


@pytest.mark.parametrize("most", [1, 2, 7])
def test_many_matches_come_in_pieces(most):
    with at_most(most):
        running = Running(PAIR)
        running.step(a=[(0, 7, i) for i in range(5)])
        given = {"a": batch(), "b": batch(*[(0, 7, i) for i in range(4)])}
        sizes = [b.num_rows for b in running.steps.step(running.steps.arrivals(given))]
    assert sum(sizes) == 20
    assert max(sizes) <= most + most


def fails_on_seven(value):
    if value == 7:
        raise ValueError("seven")
    return True


FAILING = {"p": qm.predicate(fails_on_seven, name="p", vectorised=False)}


@pytest.mark.parametrize("condition", ["p(a.v)", "p(a.v + b.v)"])
def test_a_function_that_raises_stops_the_join_with_its_name(condition):
    running = Running(f"{PAIR} AND {condition}", FAILING)
    with pytest.raises(PredicateError, match=r"(?s)\bp\b.*7.*ValueError: seven"):
        running.step(a=[(0, 7, 7)], b=[(0, 7, 0)])


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("p(a.v)", [(1, 0), (1, 6)]),
        ("p(b.v + a.v)", [(1, 0), (7, 6)]),
        ("(p(a.v) OR b.v = 0)", [(1, 0), (1, 6)]),
        ("p(a.v) = (b.v >= 0)", [(1, 0), (1, 6)]),
    ],
    ids=["of one stream", "of two", "within OR", "in a key"],
)
def test_on_error_drop_drops_only_the_rows_on_which_a_function_raised(condition, left):
    running = Running(f"{PAIR} AND {condition}", FAILING, on_error="drop")
    assert running.step(a=[(0, 7, 1), (0, 7, 7)], b=[(0, 7, 0), (0, 7, 6)]) == left
    running = Running(f"{PAIR} AND {condition}", FAILING, on_error="drop")
    assert running.step(a=[(0, 7, 1), (0, 7, 7)]) == []
    assert running.step(b=[(0, 7, 0), (0, 7, 6)]) == left


def test_what_was_dropped_is_counted():
    running = Running(f"{PAIR} AND p(a.v)", FAILING, on_error="drop")
    running.step(a=[(0, 7, 1), (0, 7, 7)], b=[(0, 7, 0)])
    assert running.fabric.views["a"].metrics.errors_dropped == 1
    assert running.stored()["a"] == 1


def test_a_key_that_raised_is_an_error_and_not_a_null():
    running = Running(f"{PAIR} AND p(a.v) = (b.v >= 0)", FAILING, on_error="drop")
    running.step(a=[(0, 7, 1), (0, 7, 7), (0, None, 2)], b=[(0, 7, 0)])
    view = running.fabric.views["a"]
    assert (view.metrics.errors_dropped, view.unjoinable) == (1, 1)
    assert running.stored()["a"] == 1
