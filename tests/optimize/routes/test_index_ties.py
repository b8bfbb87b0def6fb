"""Streams whose orders cost the same settle on those that ask states alike."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import querymesh as qm
from querymesh.mesh.mesh import LeafStats
from querymesh.mesh.route import certain, route_fault
from querymesh.optimize.planning.orders import order_of, planned_mesh
from querymesh.optimize.routes import index_ties
from querymesh.optimize.routes.index_ties import SAME, access_patterns, with_fewer_indices
from querymesh.query.bind.windowed_join import bind_join
from querymesh.stats.profile import Profile

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), *((n, pa.int64()) for n in "pqrs")])
RING = "a.p = b.p AND a.q = c.q AND b.r = c.r"


def join_of(where=RING, streams="abc"):
    relations = ", ".join(f"{s.upper()} {s} [RANGE 9 SECONDS]" for s in streams)
    asked = qm.query(f"SELECT a.p FROM {relations} WHERE {where}", time="ts")
    return bind_join(asked, {s.upper(): SCHEMA for s in streams})


def profile_of(join, alias, fan_outs=None, cost_us=1.0):
    """Each operator passes every tuple, or as told; all probes cost the same."""
    view = join.views[alias]
    outcomes = np.ones((100, len(view.operators)))
    for operator in view.operators:
        outcomes[:, operator.index - 1] = (fan_outs or {}).get(operator.name, 1.0)
    names = tuple(operator.name for operator in view.operators)
    costs = np.full(len(names), cost_us)
    sample = pa.table({"x": range(100)})
    return Profile(sample, names, view.precedence, outcomes, costs, costs)


def meshes_of(join, **orders):
    return {alias: planned_mesh(join.views[alias], order, "", 9) for alias, order in orders.items()}


def ways(join, meshes):
    return {
        each
        for alias, m in meshes.items()
        for r in m.routes
        for each in access_patterns(join, alias, r)
    }


def test_a_probe_asks_by_what_is_joined_before_it():
    join = join_of()
    (mesh,) = meshes_of(join, a="bc").values()
    q_and_r, p = (0, 1), (0,)
    assert list(access_patterns(join, "a", mesh.routes[0])) == [("b", p), ("c", q_and_r)]


def test_streams_that_may_choose_ask_states_in_fewer_ways():
    join = join_of()
    before = meshes_of(join, a="bc", b="ca", c="ab")
    profiles = {alias: profile_of(join, alias) for alias in join.aliases}
    after = with_fewer_indices(join, before, profiles)
    assert len(ways(join, before)) == 6
    assert len(ways(join, after)) == 5
    changed = [alias for alias in join.aliases if after[alias] != before[alias]]
    assert len(changed) == 1
    assert after[changed[0]].expected_us == pytest.approx(3.0)
    assert with_fewer_indices(join, after, profiles) == after


@pytest.mark.parametrize(("dearer", "changes"), [(SAME / 2, True), (4 * SAME, False)])
def test_an_order_that_costs_more_is_not_taken_for_it(dearer, changes):
    join = join_of()
    before = meshes_of(join, a="bc", b="ca", c="ab")
    # What its first probe passes, its second sees to: as written each stream meets less.
    profiles = {
        "a": profile_of(join, "a", {"c": 1 + 3 * dearer}),
        "b": profile_of(join, "b", {"a": 1 + 3 * dearer}),
        "c": profile_of(join, "c", {"b": 1 + 3 * dearer}),
    }
    after = with_fewer_indices(join, before, profiles)
    assert (after != before) == changes


def test_of_orders_that_ask_alike_the_cheapest_is_taken():
    """a may go over c and over d first; both would leave one index less than b first."""
    join = join_of("a.p = b.p AND a.q = c.q AND b.r = c.r", "abc")
    before = meshes_of(join, a="bc", b="ca", c="ab")
    profiles = {"b": profile_of(join, "b")}
    after = with_fewer_indices(join, before, profiles)
    assert (after["a"], after["c"]) == (before["a"], before["c"])
    assert order_of(join.views["b"], after["b"].routes[0]) == ("a", "c")
    assert after["b"].single == after["b"].routes[0]
    assert after["b"].expected_us == after["b"].single_us == pytest.approx(3.0)
    assert after["b"].leaves == (LeafStats(1.0, 3.0, 3.0),)


def test_a_stream_stays_where_another_order_would_save_no_index():
    join = join_of()
    settled = meshes_of(join, a="bc", b="ac", c="ba")
    profiles = {alias: profile_of(join, alias) for alias in join.aliases}
    assert with_fewer_indices(join, settled, profiles) == settled


def test_orders_left_open_and_too_many_orders_stay(monkeypatch):
    join = join_of()
    before = meshes_of(join, a="bc", b="ca", c="ab")
    profiles = {alias: profile_of(join, alias) for alias in join.aliases}
    unsure = {a: replace(mesh, uncertain=(certain(mesh.routes[0]),)) for a, mesh in before.items()}
    assert with_fewer_indices(join, unsure, profiles) == unsure
    monkeypatch.setattr("querymesh.optimize.routes.index_ties.MOST_ORDERS", 1)
    assert with_fewer_indices(join, before, profiles) == before
    monkeypatch.setattr("querymesh.optimize.routes.index_ties.MOST_ORDERS", 2)
    assert with_fewer_indices(join, before, profiles) != before


def test_without_a_profile_or_with_several_routes_a_mesh_stays():
    join = join_of()
    before = meshes_of(join, a="bc", b="ca", c="ab")
    assert with_fewer_indices(join, before, {}) == before


@given(
    st.permutations("bcd"), st.permutations("acd"), st.permutations("abd"), st.permutations("abc")
)
def test_there_are_never_more_ways_and_every_order_is_allowed(a, b, c, d):
    join = join_of("a.p = b.p AND a.q = c.q AND b.r = c.r AND c.s = d.s AND a.r = d.r", "abcd")
    before = meshes_of(join, a=a, b=b, c=c, d=d)
    after = with_fewer_indices(join, before, {x: profile_of(join, x) for x in "abcd"})
    assert len(ways(join, after)) <= len(ways(join, before))
    for alias, mesh in after.items():
        view = join.views[alias]
        assert route_fault(mesh.routes[0], view.precedence) == ""
        assert len(order_of(view, mesh.routes[0])) == 3


def test_an_order_that_is_just_as_much_dearer_as_costs_the_same_is_taken(monkeypatch):
    """b asks c, then a, which finds two rows each, then whether these suit: 1 + 1 + 2 µs. With a
    first it is 1 + 2 + 2, a quarter more."""
    monkeypatch.setattr("querymesh.optimize.routes.index_ties.SAME", 0.25)
    join = join_of()
    before = meshes_of(join, a="bc", b="ca", c="ab")
    after = with_fewer_indices(join, before, {"b": profile_of(join, "b", {"a": 2.0})})
    assert order_of(join.views["b"], after["b"].routes[0]) == ("a", "c")
    assert after["b"].expected_us == pytest.approx(1 + 2 + 2)


def test_streams_that_never_settle_are_left_after_five_passes(monkeypatch):
    """The others always ask as b does not."""
    join = join_of()
    before = meshes_of(join, a="bc", b="ca", c="ab")
    orders = [meshes_of(join, b=order)["b"].routes[0] for order in ("ca", "ac")]
    asked = [frozenset(access_patterns(join, "b", route)) for route in orders]
    passes = []

    def others(*_):
        passes.append(1)
        return asked[len(passes) % 2]

    monkeypatch.setattr("querymesh.optimize.routes.index_ties._all_accesses", others)
    with_fewer_indices(join, before, {"b": profile_of(join, "b")})
    assert len(passes) == 5


@pytest.mark.parametrize(("streams", "orders"), [("abcdefg", 720), ("abcdefgh", 0)])
def test_six_probes_are_tried_in_every_order_and_seven_stay(streams, orders):
    join = join_of(" AND ".join(f"a.p = {s}.p" for s in streams[1:]), streams)
    mesh = meshes_of(join, a=streams[1:])["a"]
    assert len(index_ties._equally_cheap(join, "a", mesh, profile_of(join, "a"))) == orders


def test_a_stream_s_own_conditions_stay_before_its_probes():
    join = join_of(f"{RING} AND b.s > 3")
    before = meshes_of(join, a="bc", b="ca", c="ab")
    after = with_fewer_indices(join, before, {"b": profile_of(join, "b")})
    names = [join.views["b"].operators[k - 1].name for k in after["b"].routes[0]]
    assert names == ["b.s > 3", "a", "c", "a.q = c.q"]
    assert list(access_patterns(join, "b", after["b"].routes[0])) == [("a", (0,)), ("c", (0, 1))]
