"""A join as OM sees it: what links its streams, and its projections."""

import pytest

import querymesh as qm
from join_feed import SCHEMA
from querymesh.optimize.chart.plan_shape import (
    conditions_of,
    kept_share,
    probe_orders,
    shape_of,
)
from querymesh.query.bind.windowed_join import bind_join


def join_of(where, streams="abc", tables="", columns=None):
    relations = [f"{name.upper()} {name} [RANGE 5 SECONDS]" for name in streams]
    relations += [f"{name.upper()} {name}" for name in tables]
    columns = columns or ", ".join(f"{name}.id AS {name}" for name in streams)
    asked = qm.query(f"SELECT {columns} FROM {', '.join(relations)} WHERE {where}", time="ts")
    return bind_join(asked, {each.name: SCHEMA for each in asked.relations})


def links(where, **more):
    return [(each.pair, each.name, each.number) for each in conditions_of(join_of(where, **more))]


def test_a_condition_that_reads_two_streams_links_them_if_nothing_else_does():
    assert links("a.k = b.k AND b.x = c.x AND a.y + c.y > 7") == [
        (("a", "b"), "a.k = b.k", 0),
        (("b", "c"), "b.x = c.x", 1),
        (("a", "c"), "a.y + c.y > 7", None),
    ]
    assert links("a.k = b.k AND b.x = c.x AND a.y + b.y > 7") == [
        (("a", "b"), "a.k = b.k", 0),
        (("b", "c"), "b.x = c.x", 1),
    ]


def test_a_condition_on_three_streams_links_each_two_of_them():
    chain = "a.k = b.k AND b.x = c.x AND c.y = d.y"
    found = links(f"{chain} AND b.id + c.id + d.id > 7", streams="abcd")
    assert [pair for pair, *_ in found] == [("a", "b"), ("b", "c"), ("c", "d"), ("b", "d")]
    assert found[-1][1] == "b.id + c.id + d.id > 7"


def test_a_static_table_links_the_streams_around_it():
    found = links("a.k = t.k AND t.x = b.x AND b.y = c.y", tables="t")
    assert found == [
        (("b", "c"), "b.y = c.y", 2),
        (("a", "b"), "a and b by way of t", None),
    ]


def test_conditions_of_one_name_are_told_apart_by_their_place():
    assert links("a.k < b.k AND a.k < b.k AND b.x = c.x") == [
        (("b", "c"), "b.x = c.x", 0),
        (("a", "b"), "a.k < b.k (2)", None),
        (("a", "b"), "a.k < b.k (3)", None),
    ]


def test_a_stream_of_which_all_is_kept_has_no_projection():
    everything = ", ".join(f"a.{name} AS a{name}" for name in ("id", "k", "x", "y"))
    join = join_of("a.k = b.k", streams="ab", columns=f"{everything}, b.id AS b")
    assert kept_share(join, "a") == 1
    assert kept_share(join, "b") == pytest.approx(3 / 5)
    shape = shape_of(join, conditions_of(join), {}, {})
    assert [each.stream for each in shape.projections] == ["b"]


@pytest.mark.parametrize(
    ("fan_out", "probes"),
    [
        (None, ("b", "c", "t")),
        (0.99, ("t", "b", "c")),
        (1.0, ("b", "c", "t")),
        (1.5, ("b", "c", "t")),
    ],
)
def test_only_a_table_that_lets_through_fewer_than_ask_is_looked_up_first(fan_out, probes):
    join = join_of("a.k = b.k AND b.k = c.k AND t.k = a.x", tables="t")
    known = {("a", "t"): fan_out} if fan_out else {}
    assert probe_orders(join, ("b", "c", "a"), known)["a"] == probes
