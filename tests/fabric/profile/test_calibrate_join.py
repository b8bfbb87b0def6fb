"""What one more ruster costs at a join state."""

from querymesh.fabric.profile.calibrate import calibrate
from querymesh.fabric.profile.calibrate_join import PARTITIONS, Parts, _rows, overheads_for
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.parse.query import query


def test_a_join_pays_at_least_as_much_for_a_ruster_as_a_filter():
    schemas = dict.fromkeys("AB", _rows(0, 1).schema)
    join = bind_join(query("SELECT a.k FROM A a [ROWS 9], B b [ROWS 9] WHERE a.k = b.k"), schemas)
    found, plain = overheads_for(join.views["a"], 1000), calibrate(1000)
    assert found.ruster_us >= plain.ruster_us > 0
    assert (found.node_us, found.window) == (plain.node_us, plain.window)


def test_a_query_without_states_pays_what_a_filter_pays():
    bound = query("SELECT k FROM a WHERE k > 1").bind({"a": _rows(0, 1).schema})
    assert overheads_for(bound, 1000) is calibrate(1000)


def test_the_rusters_that_are_timed_hold_every_row_once():
    class Window:
        rows = 10

    parts = Parts(3).rusters(Window())
    assert sorted(row for part in parts for row in part.rows) == list(range(10))
    assert PARTITIONS > 1
