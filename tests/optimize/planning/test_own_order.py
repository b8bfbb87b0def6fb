"""The order of a stream's own conditions under a planner, on rounds made by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import querymesh as qm
from join_feed import SCHEMA
from querymesh.mesh.route import route_fault
from querymesh.optimize.planning.orders import planned_mesh, route_for
from querymesh.optimize.planning.own_order import LEAST_ASKED, OwnOrder, expected_s
from querymesh.optimize.planning.planner import ConditionStats, Round
from querymesh.query.bind.windowed_join import bind_join

CONDITIONS = "a.x > 1 AND a.y > 2 AND a.id > 3"


def join_of(own, functions=None):
    sql = (
        "SELECT a.id AS a FROM A a [RANGE 9 SECONDS], B b [RANGE 9 SECONDS], C c [RANGE 9 SECONDS] "
        f"WHERE {own} AND a.k = b.k AND a.k = c.k AND a.x + b.x > 3"
    )
    asked = qm.query(sql, time="ts", functions=functions)
    return bind_join(asked, dict.fromkeys("ABC", SCHEMA))


def round_of(**tried):
    """By operator, as `o1`, what it did."""
    conditions = {("a", int(name[1:])): ConditionStats(*each) for name, each in tried.items()}
    return Round(0, 1.0, 0.0, {}, {}, {}, {}, {}, conditions=conditions)


def test_what_drops_most_for_its_cost_comes_first():
    own = OwnOrder(join_of(CONDITIONS))
    shown = round_of(o1=(100, 50, 9e-6), o2=(100, 10, 1e-6), o3=(100, 90, 1e-7))
    assert own.observe(shown) == {"a"}
    assert own.orders == {"a": (3, 2, 1)}
    assert own.observe(shown) == set(), "once"


def test_the_probes_and_what_reads_several_relations_stay_where_they_were():
    view = join_of(CONDITIONS).views["a"]
    written = route_for(view, ("c", "b"))
    assert written[:3] == (1, 2, 3)
    assert route_for(view, ("c", "b"), (2, 3, 1)) == (2, 3, 1, *written[3:])
    assert route_for(view, ("c", "b"), (3, 2)) == (3, 2, 1, *written[3:])
    assert planned_mesh(view, ("c", "b"), "why", 1, (3, 1, 2)).routes == ((3, 1, 2, *written[3:]),)


def test_a_condition_stays_behind_its_guard():
    functions = {
        "later": qm.predicate(lambda x: x, name="later", after=["guard"], vectorised=False),
        "guard": qm.predicate(lambda x: x, name="guard", vectorised=False),
    }
    own = OwnOrder(join := join_of("guard(a.x) AND later(a.x) AND a.y > 2", functions))
    own.observe(round_of(o1=(100, 100, 9e-6), o2=(100, 1, 1e-7), o3=(100, 50, 1e-6)))
    assert own.orders == {"a": (3, 1, 2)}
    view = join.views["a"]
    assert route_fault(route_for(view, (), own.orders["a"]), view.precedence) == ""
    assert route_for(view, (), (2, 3, 1))[:3] == (3, 1, 2), "however its place was asked for"


def test_little_is_not_enough_and_rounds_add_up():
    own = OwnOrder(join_of(CONDITIONS))
    few = round_of(o1=(20, 20, 1e-5), o2=(20, 2, 1e-6), o3=(20, 2, 1e-6))
    changed = [own.observe(few) for _ in range(4)]
    assert 40 < LEAST_ASKED <= 60
    assert changed == [set(), set(), {"a"}, set()]


@pytest.mark.parametrize(("asked", "orders"), [(49, {}), (50, {"a": (2, 3, 1)})])
def test_fifty_tuples_are_enough(asked, orders):
    own = OwnOrder(join_of(CONDITIONS))
    own.observe(round_of(o1=(asked, asked, 1e-5), o2=(asked, 1, 1e-6), o3=(asked, 2, 1e-6)))
    assert own.orders == orders


def test_nothing_is_ordered_while_little_is_known_of_one_condition():
    own = OwnOrder(join_of(CONDITIONS))
    own.observe(round_of(o1=(100, 100, 1e-5), o2=(100, 1, 1e-6), o3=(20, 2, 1e-6)))
    assert own.orders == {}


def test_a_condition_that_takes_no_time_comes_first_if_it_drops_anything():
    own = OwnOrder(join_of(CONDITIONS))
    own.observe(round_of(o1=(100, 1, 1e-6), o2=(100, 50, 0.0), o3=(100, 100, 0.0)))
    assert own.orders == {"a": (2, 1, 3)}


def test_older_rounds_weigh_less_and_costs_are_means_by_what_was_asked():
    own = OwnOrder(join_of(CONDITIONS))
    own.observe(round_of(o1=(100, 50, 2e-6), o2=(100, 80, 1e-6)))
    own.observe(round_of(o1=(110, 11, 4e-6)))
    first = own._stats["a"][1]
    assert first == pytest.approx((200, 56, (90 * 2e-6 + 110 * 4e-6) / 200))
    assert own._stats["a"][2] == (100, 80, 1e-6)


def test_nearly_equal_conditions_stay_and_those_that_change_their_ways_change_places():
    own = OwnOrder(join_of(CONDITIONS))
    assert own.observe(round_of(o1=(99, 50, 1e-6), o2=(99, 48, 1e-6), o3=(99, 50, 1e-6))) == set()
    assert own.orders == {}
    changed = round_of(o1=(100, 95, 1e-6), o2=(100, 95, 1e-6), o3=(100, 5, 1e-6))
    assert any(own.observe(changed) for _ in range(5))
    assert own.orders["a"][0] == 3


def test_a_condition_that_is_seen_later_finds_its_place():
    own = OwnOrder(join_of(CONDITIONS))
    own.observe(round_of(o1=(100, 90, 1e-6), o2=(100, 10, 1e-6)))
    assert own.orders == {"a": (2, 1)}
    own.observe(round_of(o3=(100, 1, 1e-8)))
    assert own.orders == {"a": (3, 2, 1)}


@given(
    st.lists(st.tuples(st.integers(0, 100), st.floats(1e-7, 1e-3)), min_size=3, max_size=3),
    st.permutations((1, 2, 3)),
)
def test_no_order_costs_much_less_than_the_one_that_is_taken(figures, other):
    tried = {
        k: ConditionStats(100, passed, cost_s) for k, (passed, cost_s) in enumerate(figures, 1)
    }
    own = OwnOrder(join_of(CONDITIONS))
    own.observe(round_of(**{f"o{k}": each for k, each in tried.items()}))
    taken = own.orders.get("a", (1, 2, 3))
    assert sorted(taken) == [1, 2, 3]
    assert expected_s(other, tried) >= 0.9 * expected_s(taken, tried) * (1 - 1e-9)


def test_nothing_is_said_of_a_stream_with_one_condition():
    own = OwnOrder(join_of("a.x > 1"))
    assert own.observe(round_of(o1=(100, 1, 1e-6))) == set()
    assert own.observe(round_of(o1=(100, 1, 0.0))) == set()
    assert own.orders == {}
    assert own.observe(round_of()) == set()
    assert expected_s((), {}) == pytest.approx(0)
