"""What one more ruster costs at a join state."""

import pytest

from querymesh.cost.route_time import Overheads
from querymesh.fabric.profile import calibrate_join
from querymesh.fabric.profile.calibrate import calibrate
from querymesh.fabric.profile.calibrate_join import (
    PARTITIONS,
    Parts,
    _rows,
    asking_us,
    leaf_us,
    overheads_for,
    probing_us,
    visit_us,
)
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.parse.query import query


def view_of(where):
    schemas = dict.fromkeys("AB", _rows(0, 1).schema)
    sql = f"SELECT a.k FROM A a [ROWS 9], B b [ROWS 9] WHERE a.k = b.k {where}"
    return bind_join(query(sql), schemas).views["a"]


@pytest.fixture
def prices(monkeypatch):
    plain = Overheads(node_us=0.5, ruster_us=30.0, window=1000)
    monkeypatch.setattr(calibrate_join, "calibrate", lambda window=0: plain)
    for name, price in (("leaf_us", 2.0), ("probing_us", 70.0), ("asking_us", 0.01)):
        monkeypatch.setattr(calibrate_join, name, lambda price=price: price)


@pytest.mark.usefixtures("prices")
def test_a_leaf_of_probes_alone_costs_what_it_costs_a_program():
    assert overheads_for(view_of(""), 1000) == Overheads(0.01, 2.0, 1000)


@pytest.mark.usefixtures("prices")
def test_own_conditions_are_visited_ruster_by_ruster():
    assert overheads_for(view_of("AND a.k > 1"), 1000) == Overheads(0.01, 16.0, 1000)


@pytest.mark.usefixtures("prices")
def test_a_condition_behind_a_probe_makes_rusters_of_all_leaves():
    assert overheads_for(view_of("AND a.k + b.k > 1"), 1000) == Overheads(0.5, 70.0, 1000)
    assert visit_us(view_of("")) == 70.0


def test_prices_are_measured():
    assert probing_us() > 0
    assert asking_us() > 0
    assert leaf_us() >= 0


def test_a_query_without_states_pays_what_a_filter_pays():
    bound = query("SELECT k FROM a WHERE k > 1").bind({"a": _rows(0, 1).schema})
    assert overheads_for(bound, 1000) is calibrate(1000)


def test_the_rusters_that_are_timed_hold_every_row_once():
    class Window:
        rows = 10

    parts = Parts(3).rusters(Window())
    assert sorted(row for part in parts for row in part.rows) == list(range(10))
    assert PARTITIONS > 1
