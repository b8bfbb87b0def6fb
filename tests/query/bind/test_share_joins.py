"""Several joins of windowed streams as one: common names, groups, what is stored."""

import pyarrow as pa
import pytest

from querymesh.errors import QueryError, SchemaError, UnsupportedError
from querymesh.query.bind.share import MOST_QUERIES
from querymesh.query.bind.share_joins import share_joins
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.model import Window
from querymesh.query.parse.query import query
from querymesh.query.predicate.decorators import predicate
from querymesh.query.shared_join import SharedJoin

STREAM = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("k", pa.int64()),
        ("m", pa.string()),
        ("x", pa.int64()),
        ("unread", pa.string()),
    ]
)
SCHEMAS = {"A": STREAM, "B": STREAM, "C": STREAM, "T": pa.schema([("k", pa.int64())])}
AB = "SELECT a.x FROM A a [RANGE 5 SECONDS], B b [RANGE 5 SECONDS] WHERE a.k = b.k"
OTHER_AB = "SELECT u.x FROM A u [RANGE 9 SECONDS], B v [RANGE 1 SECOND] WHERE u.k = v.k"
AC = "SELECT a.x FROM A a [RANGE 5 SECONDS], C c [RANGE 5 SECONDS] WHERE a.m = c.m"


def shared(*texts: str, functions=None, schemas=SCHEMAS, time="ts") -> SharedJoin:
    bound = [bind_join(query(t, time=time, functions=functions or {}), schemas) for t in texts]
    return share_joins(bound)


def groups(found: SharedJoin) -> list[tuple[int, ...]]:
    return [group.queries for group in found.groups]


def rest(found: SharedJoin, group: int = 0) -> dict[str, int]:
    return {operator.name: served for operator, served in found.groups[group].rest}


def test_queries_under_other_names_share_one_join_with_the_longest_windows():
    found = shared(AB, OTHER_AB)
    assert groups(found) == [(0, 1)]
    assert found.aliases == ("a", "b")
    assert [stream.window.size for stream in found.streams] == [9_000_000, 5_000_000]
    bounds = {(b.query, b.alias): b.range_us for b in found.groups[0].bounds}
    assert bounds == {(0, "a"): 5_000_000, (1, "b"): 1_000_000}
    assert found.masked == frozenset()
    assert [str(part.outputs[0].expr) for part in found.parts] == [
        "Column(relation='a', name='x')"
    ] * 2


def test_a_query_that_asks_more_checks_the_rest_at_the_end():
    found = shared(AB, f"{AB} AND a.m = b.m AND a.x < b.x AND a.x + b.x > 3")
    assert groups(found) == [(0, 1)]
    assert rest(found) == {
        "a.m = b.m [q2]": 0b10,
        "a.x < b.x [q2]": 0b10,
        "a.x + b.x > 3 [q2]": 0b10,
    }
    assert [each.name for each in found.groups[0].join.classes] == ["a.k = b.k"]
    assert {"m", "x"} <= set(found.columns_kept("b"))


def test_what_all_queries_of_a_group_ask_is_part_of_its_join():
    more = f"{AB} AND a.x < b.x AND a.x + b.x > 3"
    found = shared(f"{more} AND a.x <> b.x", more)
    assert [each.text for each in found.groups[0].join.compared] == ["a.x < b.x"]
    assert found.groups[0].conditions == ["a.k = b.k", "a.x < b.x", "a.x + b.x > 3"]
    assert rest(found) == {"a.x <> b.x [q1]": 0b01}


@pytest.mark.parametrize(
    "other",
    [
        AC,
        AB.replace("a.k = b.k", "a.m = b.m"),
        AB.replace("a.k = b.k", "a.x = b.x AND a.m = b.m"),
        AB.replace("RANGE 5 SECONDS", "ROWS 5"),
        AB.replace("a.k = b.k", "a.x < b.x"),
    ],
)
def test_other_joins_are_groups_of_their_own(other):
    assert groups(shared(AB, other)) == [(0,), (1,)]


def test_a_query_that_asks_more_does_not_make_the_others_look_further_back():
    more = f"{AB} AND a.m = b.m"
    longer = more.replace("B b [RANGE 5", "B b [RANGE 50")
    assert groups(shared(AB, longer)) == [(0,), (1,)]
    assert groups(shared(AB, more.replace("RANGE 5", "RANGE 2"))) == [(0, 1)]
    assert groups(shared(AB, AB.replace("RANGE 5", "RANGE 50"), longer)) == [(0, 1, 2)]


def test_windows_that_count_other_numbers_of_rows_are_groups_on_one_state():
    rows = AB.replace("RANGE 5 SECONDS", "ROWS 5")
    found = shared(rows, rows.replace("ROWS 5", "ROWS 7"), rows)
    assert groups(found) == [(0, 2), (1,)]
    assert [stream.window for stream in found.streams] == [Window("rows", 7)] * 2
    assert found.groups[0].join.window_of("a") == Window("rows", 5)


def test_a_state_has_the_keys_of_all_groups_each_once():
    found = shared(AB, AC, f"{AC} AND a.x <= c.x", AB.replace("a.k = b.k", "a.x < b.x"))
    assert [each.name for each in found.keys_of("a")] == ["a.k", "a.m"]
    assert [each.name for each in found.keys_of("c")] == ["c.m"]
    assert [str(order) for order in found.orders_of("a")] == ["Column(relation='a', name='x')"]
    by_m = found.groups[1].join
    assert [each.name for each in by_m.keys_of("a")] == ["a.k", "a.m = c.m"]
    assert found.masked == {"a", "b"}
    assert found.columns_kept("a") == ["ts", "k", "m", "x", "__queries"]
    assert "unread" not in found.columns_sent("a")
    assert found.codes_may_be_of_null


def test_conditions_on_one_stream_are_asked_once_with_the_queries_they_are_of():
    found = shared(f"{AB} AND a.x > 1 AND b.x = 2", f"{OTHER_AB} AND u.x > 1 AND u.m = 'm'")
    own = {
        alias: dict(zip([op.name for op in each.operators], each.serves, strict=True))
        for alias, each in found.own.items()
    }
    assert own == {
        "a": {"a.x > 1 [q1, q2]": 0b11, "u.m = 'm' [q2]": 0b10},
        "b": {"b.x = 2 [q1]": 0b01},
    }
    assert found.masked == {"a", "b"}


def test_the_same_stream_twice_is_the_first_and_the_second_of_each_query():
    self_join = "SELECT p.x FROM A p [RANGE 5 SECONDS], A q [RANGE 2 SECONDS] WHERE p.k = q.k"
    found = shared(self_join, self_join.replace("q", "r").replace("p", "q"))
    assert groups(found) == [(0, 1)]
    assert found.aliases == ("p", "q")


def test_a_static_table_has_what_all_queries_of_a_group_ask_of_it():
    text = (
        "SELECT a.x FROM A a [RANGE 5 SECONDS], B b [RANGE 5 SECONDS], T t "
        "WHERE a.k = b.k AND b.k = t.k AND t.k > 3"
    )
    found = shared(text, f"{text} AND t.k < 9")
    assert groups(found) == [(0, 1)]
    assert len(found.groups[0].join.static_filters["t"]) == 1
    assert rest(found) == {"t.k < 9 [q2]": 0b10}


def test_functions_that_differ_under_one_name_are_told_apart():
    one, other = predicate(lambda x: x, name="f"), predicate(lambda x: not x, name="f")
    text = f"{AB} AND f(a.x)"
    bound = [
        bind_join(query(text, time="ts", functions={"f": each}), SCHEMAS) for each in (one, other)
    ]
    found = share_joins(bound)
    assert found.own["a"].serves == (0b01, 0b10)
    assert set(found.query.functions) == {"f", "f_2"}


def test_shards_go_by_keys_that_every_query_agrees_on():
    assert [each.name for each in shared(AB, AC).classes if len(each.members) > 1] == [
        "a.k = b.k",
        "a.m = c.m",
    ]
    by_other_keys = shared(AB, AB.replace("a.k = b.k", "a.m = b.m"))
    assert all(len(each.members) == 1 for each in by_other_keys.classes)
    assert by_other_keys.spread == ("a", "b")
    bc = AC.replace("A a", "B a")
    assert shared(AB, AC, bc).spread == ()


def test_what_cannot_share_a_pass_is_refused_with_its_name():
    near = predicate(lambda x, y: x == y, name="near")
    linked = AB.replace("a.k = b.k", "near(a.x, b.x)")
    with pytest.raises(UnsupportedError, match=r"q2 cannot share a pass.* run q2 by itself"):
        shared(AB, linked, functions={"near": near})
    rows = AB.replace("RANGE 5 SECONDS", "ROWS 5")
    turned = "SELECT a.x FROM B b [ROWS 5], A a [ROWS 5] WHERE a.k = b.k"
    with pytest.raises(UnsupportedError, match=r"q2 counts rows.*: write FROM A, B"):
        shared(rows, turned)
    zoneless = STREAM.set(0, pa.field("ts", pa.timestamp("us")))
    both = "SELECT a.x FROM C a [RANGE 5 SECONDS], C b [RANGE 5 SECONDS] WHERE a.k = b.k"
    with pytest.raises(SchemaError, match="TIMESTAMP_NTZ"):
        shared(AB, both, schemas={**SCHEMAS, "C": zoneless})
    with pytest.raises(QueryError, match="at most 62 queries"):
        shared(*[AB] * (MOST_QUERIES + 1))


def test_what_is_shared_is_told_in_lines():
    assert shared(AB, f"{OTHER_AB} AND u.x < v.x", AC).sharing == [
        "a: one state for q1, q2, q3",
        "b: one state for q1, q2",
        "c: one state for q3",
        "q1, q2 in one join: a.k = b.k",
        "  then a.x < b.x [q2]",
        "  then a [RANGE 5 SECONDS] [q1]",
        "  then b [RANGE 1 SECONDS] [q2]",
        "q3 by itself: a.m = c.m",
    ]
