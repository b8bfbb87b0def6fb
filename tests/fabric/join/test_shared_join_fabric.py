import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

import querymesh as qm
from querymesh.errors import UnsupportedError
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.join.shared_join_fabric import make_join_fabric
from querymesh.mesh.mesh import written_mesh
from querymesh.query.bind.share_joins import share_joins
from querymesh.query.bind.windowed_join import bind_join
from querymesh.runtime.join_step import JoinSteps
from shared_joins import shared, shared_results, shared_windows
from soak import random_cases
from window_runs import expected, run_of


@random_cases(40, 150)
@given(st.data())
def test_queries_in_one_pass_give_what_duckdb_gives_for_each(data):
    cases = data.draw(shared_windows())
    rng = data.draw(st.randoms(use_true_random=False))
    run = run_of(rng, cases[0], rng.randint(1, 6))
    try:
        join = shared(cases)
    except UnsupportedError:
        assume(False)
    event(f"{len(join.groups)} groups of {len(cases)}")
    wanted = [expected(case, run, most=3_000) for case in cases]
    event("results of all" if all(wanted) else "of some" if any(wanted) else "of none")
    assert shared_results(cases, run) == wanted


# Queries by hand: rows are (second, k, m, v), and what comes out are the values.

SECOND_US = 1_000_000
A_B = "FROM A a [RANGE 5 SECONDS], B b [RANGE 5 SECONDS] WHERE"


def batch(*rows) -> pa.RecordBatch:
    seconds, keys, marks, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.record_batch(
        {
            "ts": pa.array([round(s * SECOND_US) for s in seconds], pa.timestamp("us", "UTC")),
            "k": pa.array(keys, pa.int64()),
            "m": pa.array(marks, pa.string()),
            "v": pa.array(values, pa.int64()),
        }
    )


def random_batch(rng: np.random.Generator, rows: int) -> pa.RecordBatch:
    times = np.sort(rng.integers(0, 60, rows)).tolist()
    keys, values = rng.integers(0, 40, rows).tolist(), rng.integers(0, 9, rows).tolist()
    return batch(*zip(times, keys, [f"m{k % 7}" for k in keys], values, strict=True))


class Running:
    """Queries, in one pass or each alone, step by step on the orders as written."""

    def __init__(self, *texts, functions=None, on_error="raise"):
        asked = [qm.query(text, time="ts", functions=functions or {}) for text in texts]
        schemas = dict.fromkeys("ABC", batch().schema)
        bound = [bind_join(each, schemas) for each in asked]
        self.join = share_joins(bound) if len(bound) > 1 else bound[0]
        self.fabric = make_join_fabric(self.join, {}, on_error)
        routers = {label: MeshRouter(written_mesh(v)) for label, v in self.join.views.items()}
        self.steps = JoinSteps(self.fabric, routers)

    def step(self, **streams) -> list[list[tuple]]:
        """The rows of each query, sorted."""
        found = [[] for _ in getattr(self.join, "parts", [None])]
        mine = {alias: rows for alias, rows in streams.items() if alias in self.join.aliases}
        for out in self.steps.step(self.steps.arrivals(mine)):
            rows = out.to_pylist()
            if len(found) > 1:
                for row in rows:
                    found[row["query"]].append(tuple(row[f"q{row['query'] + 1}"].values()))
            else:
                found[0] += [tuple(row.values()) for row in rows]
        return [sorted(rows) for rows in found]

    @property
    def probes(self) -> int:
        return sum(stem.probes for stem in self.fabric.streams.values())

    @property
    def stored(self) -> int:
        return sum(stem.rows for stem in self.fabric.streams.values())


def test_queries_that_are_alike_cost_one_of_them_and_others_share_the_states():
    texts = [
        f"SELECT a.v AS p, b.v AS q {A_B} a.k = b.k",
        f"SELECT a.v + b.v AS s {A_B} a.k = b.k AND a.v < b.v".replace("5 SECONDS", "2 SECONDS"),
        f"SELECT b.k AS k {A_B} a.k = b.k AND a.m = b.m AND b.v > 3",
        f"SELECT a.k AS k {A_B} a.m = b.m AND a.v = b.v",
    ]
    rng = np.random.default_rng(0)
    given = [{"a": random_batch(rng, 500), "b": random_batch(rng, 500)} for _ in range(3)]
    together, alone = Running(*texts), [Running(text) for text in texts]
    for streams in given:
        found = together.step(**streams)
        assert found == [each.step(**streams)[0] for each in alone]
        assert all(found)
    assert together.probes == alone[0].probes + alone[3].probes == 6_000
    assert sum(each.probes for each in alone) > 10_000
    assert together.stored == 3_000
    assert sum(each.stored for each in alone) > 10_000


def test_null_in_a_key_of_one_query_leaves_the_tuple_to_the_others():
    running = Running(
        f"SELECT a.v AS p, b.v AS q {A_B} a.k = b.k", f"SELECT a.v AS p, b.v AS q {A_B} a.m = b.m"
    )
    found = running.step(
        a=batch((1, None, "x", 1), (1, 7, None, 2), (1, None, None, 3)),
        b=batch((2, None, "x", 4), (2, 7, None, 5), (2, None, None, 6)),
    )
    assert found == [[(2, 5)], [(1, 4)]]
    assert running.stored == 4
    assert [view.unjoinable for view in running.fabric.views.values()] == [1, 1, 0, 0]


def test_each_query_sees_as_far_back_as_its_own_window_to_the_microsecond():
    text = f"SELECT a.v AS p, b.v AS q {A_B} a.k = b.k"
    running = Running(text, text.replace("A a [RANGE 5", "A a [RANGE 2"))
    found = running.step(
        a=batch((1, 1, "", 1), (3.999999, 1, "", 2), (4, 1, "", 3), (6, 1, "", 4)),
        b=batch((6, 1, "", 5), (1, 1, "", 6)),
    )
    assert found == [
        [(1, 5), (1, 6), (2, 5), (2, 6), (3, 5), (3, 6), (4, 5), (4, 6)],
        [(1, 6), (2, 6), (3, 5), (3, 6), (4, 5), (4, 6)],
    ]


def test_a_function_is_called_for_the_rows_of_the_queries_that_ask_for_it():
    seen: list[int] = []

    def checked(v: int) -> bool:
        seen.append(v)
        if v < 3:
            raise ValueError(f"{v} is guarded")
        return v != 4

    def over(p: int, q: int) -> bool:
        seen.append(p)
        return p + q > 9

    functions = {
        "checked": qm.predicate(checked, name="checked", vectorised=False, after=["a.v >= 3"]),
        "over": qm.predicate(over, name="over", vectorised=False),
    }
    text = f"SELECT a.v AS p, b.v AS q {A_B} a.k = b.k"
    guarded = f"{text} AND a.v >= 3 AND checked(a.v) AND over(a.v, b.v)"
    running = Running(text, guarded, functions=functions)
    rows = [(1, 1, "", v) for v in (1, 2, 4, 5, 6)]
    found = running.step(a=batch(*rows), b=batch((1, 1, "", 4)))
    assert found == [[(v, 4) for v in (1, 2, 4, 5, 6)], [(6, 4)]]
    assert sorted(seen) == [4, 5, 5, 6, 6]


@pytest.mark.parametrize("where", ["own", "key", "rest"])
def test_rows_on_which_a_function_raises_are_dropped_for_who_asked_and_counted(where):
    def bad(v: int) -> bool:
        if v == 2:
            raise ValueError("two")
        return True

    def key(v: int) -> int:
        bad(v)
        return 1

    functions = {
        "bad": qm.predicate(bad, name="bad", vectorised=False),
        "key": qm.function(key, returns=pa.int64(), name="key", vectorised=False),
    }
    asked = {
        "own": "a.k = b.k AND bad(a.v)",
        "key": "key(a.v) = b.k",
        "rest": "a.k = b.k AND bad(a.v * (b.v - 3))",
    }[where]
    plain = f"SELECT a.v AS p {A_B} a.k = b.k"
    running = Running(plain, f"SELECT a.v AS p {A_B} {asked}", functions=functions, on_error="drop")
    found = running.step(
        a=batch((1, 1, "", 1), (1, 1, "", 2), (1, 1, "", 3)), b=batch((1, 1, "", 4))
    )
    assert found == [[(1,), (2,), (3,)], [(1,), (3,)]]
    dropped = sum(view.metrics.errors_dropped for view in running.fabric.views.values())
    assert dropped == 1
