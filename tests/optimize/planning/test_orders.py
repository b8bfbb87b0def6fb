"""From the order of a stream's probes to its route."""

from itertools import permutations

import pytest

import querymesh as qm
from join_feed import SCHEMA
from querymesh.errors import QueryError
from querymesh.mesh.mesh import PlannedOrder
from querymesh.mesh.route import route_fault
from querymesh.optimize.planning.orders import order_of, planned_mesh, route_for, written_orders
from querymesh.optimize.planning.planner import Waiting
from querymesh.query.bind.windowed_join import bind_join

RING = "a.k = b.k AND b.x = c.x AND c.y = d.y AND a.id = d.id AND a.y > 1 AND b.id + c.id > 3"


def join_of(where=RING):
    streams = ", ".join(f"{name.upper()} {name} [RANGE 9 SECONDS]" for name in "abcd")
    asked = qm.query(f"SELECT a.id AS a FROM {streams} WHERE {where}", time="ts")
    return bind_join(asked, dict.fromkeys("ABCD", SCHEMA))


def names(view, route):
    return [view.operators[k - 1].name for k in route]


@pytest.mark.parametrize(
    ("order", "route"),
    [
        ("bcd", ["a.y > 1", "b", "c", "b.id + c.id > 3", "d", "d.y = c.y"]),
        ("bdc", ["a.y > 1", "b", "d", "c", "d.y = c.y", "b.id + c.id > 3"]),
        ("dbc", ["a.y > 1", "d", "b", "c", "d.y = c.y", "b.id + c.id > 3"]),
        ("cdb", ["a.y > 1", "d", "b", "c", "d.y = c.y", "b.id + c.id > 3"]),
        ("cbd", ["a.y > 1", "b", "c", "b.id + c.id > 3", "d", "d.y = c.y"]),
        ("d", ["a.y > 1", "d", "b", "c", "d.y = c.y", "b.id + c.id > 3"]),
        ("", ["a.y > 1", "b", "d", "c", "d.y = c.y", "b.id + c.id > 3"]),
        ("ddbb", ["a.y > 1", "d", "b", "c", "d.y = c.y", "b.id + c.id > 3"]),
    ],
)
def test_what_is_no_probe_comes_as_soon_as_it_can_be_asked(order, route):
    """c hangs on b, so that it is probed behind it; what an order leaves out comes last."""
    view = join_of().views["a"]
    assert names(view, route_for(view, order)) == route


def test_every_order_of_every_stream_gives_an_allowed_route():
    join = join_of()
    for alias, view in join.views.items():
        for order in permutations(set("abcd") - {alias}):
            route = route_for(view, order)
            assert route_fault(route, view.precedence) == ""
            assert sorted(order_of(view, route)) == sorted(order)
    assert order_of(join.views["a"], route_for(join.views["a"], "dbc")) == ("d", "b", "c")
    assert order_of(join.views["a"], (1, 3, 2)) == ("d", "b")


def test_the_written_orders_are_those_of_every_stream():
    assert written_orders(join_of()) == {
        "a": ("b", "d", "c"), "b": ("a", "c", "d"), "c": ("b", "d", "a"), "d": ("a", "c", "b"),
    }  # fmt: skip


def test_a_relation_that_is_not_probed_is_refused_with_those_that_are():
    view = join_of().views["a"]
    with pytest.raises(QueryError, match=r"a tuple of a cannot probe 'e'.*Known: b, c, d"):
        route_for(view, ("b", "e"))


def test_a_planned_mesh_has_the_route_of_its_order_and_says_why():
    view = join_of().views["a"]
    mesh = planned_mesh(view, "dbc", "because", 7)
    assert isinstance(mesh, PlannedOrder)
    assert mesh.routes == (route_for(view, "dbc"),) == (mesh.single,)
    assert (mesh.why, mesh.profiled_rows) == ("because", 7)
    assert mesh.query == view.query


def test_a_queue_is_what_was_taken_and_what_was_left():
    assert Waiting(3, taken=5, left=2, arriving=1.0, processed=1.0).rows == 7
    assert Waiting(3, taken=5, left=None, arriving=1.0, processed=1.0).rows == 5
