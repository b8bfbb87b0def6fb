"""Arrivals in the order of their index: the same tuples, each with all that belongs to it."""

import numpy as np
import pyarrow as pa
import pytest

import querymesh as qm
from querymesh.fabric.core.router import MeshRouter, Router
from querymesh.fabric.join.arrivals import Arrivals, in_order
from querymesh.fabric.join.index_order import LEAST_ROWS, in_index_order
from querymesh.fabric.routers.make_eddy import make_eddy
from querymesh.index.store.configuration import Configuration
from querymesh.index.store.hash_index import HashIndex
from querymesh.index.store.index_plan import BitPlan, HashPlan
from querymesh.mesh.mesh import written_mesh
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int32()), ("s", pa.string())])
BY_KEY = {"a": HashPlan(None, (0,)), "b": HashPlan(None, (0,))}


def joined(condition: str = "a.k = b.k") -> JoinQuery:
    sql = f"SELECT a.s FROM A a [ROWS 5], B b [ROWS 5] WHERE {condition}"
    return bind_join(qm.query(sql, time="ts"), {"A": SCHEMA, "B": SCHEMA})


def arrivals(rows: int = 300, keys: pa.Array | None = None) -> dict[str, Arrivals]:
    rng = np.random.default_rng(1)
    streams = {}
    for alias in "ab":
        times = pa.array(rng.permutation(rows), pa.int64()).cast(pa.timestamp("us", "UTC"))
        own = pa.array(rng.integers(0, 90, rows), pa.int32()) if keys is None else keys
        texts = pa.array([f"{alias}{n}" for n in range(rows)])
        streams[alias] = pa.RecordBatch.from_arrays([times, own, texts], schema=SCHEMA)
    places = {alias: np.arange(rows) for alias in streams}
    return in_order(streams, {"a": "ts", "b": "ts"}, {"a": 7, "b": 9}, places)


def meshes(join: JoinQuery) -> dict[str, Router]:
    return {alias: MeshRouter(written_mesh(view)) for alias, view in join.views.items()}


def described(arrived: Arrivals) -> list[tuple[object, ...]]:
    counts = [arrived.before[alias].tolist() for alias in sorted(arrived.before)]
    arrays = (arrived.times, arrived.serials, arrived.numbers)
    texts = arrived.rows.column("s").to_pylist()
    return list(zip(texts, *(array.tolist() for array in arrays), *counts, strict=True))


def test_rows_lie_as_the_index_lays_them_out_and_keep_what_belongs_to_them() -> None:
    join, given = joined(), arrivals()
    ordered = in_index_order(join, given, BY_KEY, meshes(join), least_rows=1)
    for alias, arrived in ordered.items():
        codes = np.asarray(arrived.rows.column("k")).astype(np.int64)
        assert HashIndex.build(codes).order is None
        assert described(arrived) != described(given[alias])
        assert sorted(described(arrived)) == sorted(described(given[alias]))


def test_few_tuples_stay_as_they_are() -> None:
    join = joined()
    for rows, moved in ((LEAST_ROWS - 1, False), (LEAST_ROWS, True)):
        given = arrivals(rows)
        ordered = in_index_order(join, given, BY_KEY, meshes(join))
        assert [ordered[a] is not given[a] for a in "ab"] == [moved, moved]


@pytest.mark.parametrize(
    ("condition", "plan"),
    [
        ("a.k = b.k", HashPlan()),
        ("a.k = b.k", BitPlan(Configuration((2,), 1, (0,)))),
        ("a.s = b.s", HashPlan(None, (0,))),
        ("a.k + 1 = b.k + 1", HashPlan(None, (0,))),
    ],
)
def test_there_is_no_order_without_a_layout_by_plain_columns(
    condition: str, plan: HashPlan | BitPlan
) -> None:
    join, given = joined(condition), arrivals()
    ordered = in_index_order(join, given, {"a": plan, "b": plan}, meshes(join), least_rows=1)
    assert all(ordered[alias] is given[alias] for alias in "ab")


def test_keys_that_are_null_leave_the_order_of_arrival() -> None:
    keys = pa.array([None, *range(299)], pa.int32())
    join, given = joined(), arrivals(keys=keys)
    ordered = in_index_order(join, given, BY_KEY, meshes(join), least_rows=1)
    assert ordered == given


def test_a_router_that_decides_on_the_way_gets_tuples_as_they_arrive() -> None:
    join, given = joined(), arrivals()
    eddy = make_eddy("eddy", join.views["a"], qm.policies.Routing(), frozenset())
    routers = {**meshes(join), "a": eddy}
    ordered = in_index_order(join, given, BY_KEY, routers, least_rows=1)
    assert ordered["a"] is given["a"]
    assert ordered["b"] is not given["b"]
