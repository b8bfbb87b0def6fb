"""On how many shards a join runs, and what its hypercube is made of."""

import pyarrow as pa
import pytest

import querymesh as qm
from querymesh.errors import OptionError, UnsupportedError
from querymesh.optimize.shards.join_shards import join_cube, shard_count
from querymesh.query.bind.windowed_join import bind_join

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), *((n, pa.int64()) for n in "pqr")])


def join_of(window="RANGE 9 SECONDS", where="a.p = b.p AND b.q = c.q"):
    relations = ", ".join(f"{s.upper()} {s} [{window}]" for s in "abc")
    asked = qm.query(f"SELECT a.p FROM {relations} WHERE {where}", time="ts")
    return bind_join(asked, {s.upper(): SCHEMA for s in "abc"})


def test_there_are_as_many_shards_as_asked_for_or_as_there_are_cores():
    join = join_of()
    assert shard_count(join, None, 6) == 6
    assert shard_count(join, None, 0) == 1
    assert shard_count(join, 1, 6) == 1
    assert shard_count(join, 9, 6) == 9


def test_windows_that_count_rows_take_one_shard():
    join = join_of("ROWS 5")
    assert shard_count(join, None, 6) == shard_count(join, 1, 6) == 1
    with pytest.raises(UnsupportedError, match=r"takes one shard, not 2: leave shards= out"):
        shard_count(join, 2, 6)


@pytest.mark.parametrize("asked", [0, -1, True, 2.0, "4"])
def test_what_is_no_number_of_shards_is_refused(asked):
    with pytest.raises(OptionError, match="shards is a whole number from 1 up"):
        shard_count(join_of(), asked, 6)


def test_a_cube_is_cut_by_the_keys_that_streams_share_and_by_their_rates():
    cube = join_cube(join_of(), 4, {})
    shared = [d for d in cube.dimensions if len(d.owners) > 1]
    assert [d.owners for d in shared] == [frozenset("ab"), frozenset("bc")]
    assert [n for d, n in zip(cube.dimensions, cube.shares, strict=True) if d in shared] == [2, 2]
    fast = join_cube(join_of(), 4, {"a": 100.0, "b": 1.0})
    assert fast.replication("a") == 1
    assert fast.replication("c") == 4


def test_a_stream_without_rows_in_the_sample_counts_as_slow_and_not_as_absent():
    """With a rate of 0 any copies of c would be free; 0.001 keeps a full row of it from all."""
    cube = join_cube(join_of(), 4, {"a": 0.0, "b": 0.0, "c": 1.0})
    assert cube.replication("c") == 1
    assert (
        join_cube(join_of(), 4, {"a": 0.0, "b": 0.0, "c": 0.0}).shares
        == join_cube(join_of(), 4, {}).shares
    )


def test_a_stream_without_a_rate_counts_as_one():
    """Cut 2 × 2 a and c are sent twice: 0.6 · 2 + 2; with c cut by 4 they are sent 0.6 · 4 + 1
    times, which would be less if c counted as 2."""
    cube = join_cube(join_of(), 4, {"a": 0.6, "b": 1.0})
    assert (cube.replication("a"), cube.replication("c")) == (2, 2)
    assert join_cube(join_of(), 4, {"a": 0.6, "b": 1.0, "c": 2.0}).replication("c") == 1


def test_only_keys_of_several_streams_are_dimensions_beside_the_rows_of_each():
    owners = [d.owners for d in join_cube(join_of(), 1, {}).dimensions]
    assert owners == [frozenset("ab"), frozenset("bc"), *map(frozenset, "abc")]


def test_a_key_that_one_stream_shares_with_a_static_relation_is_no_dimension():
    text = (
        "SELECT a.p FROM A a [RANGE 9 SECONDS], B b [RANGE 9 SECONDS], T t "
        "WHERE a.p = b.p AND a.q = t.q"
    )
    join = bind_join(qm.query(text, time="ts"), {"A": SCHEMA, "B": SCHEMA, "T": SCHEMA})
    assert [each.name for each in join.classes] == ["a.p = b.p", "a.q = t.q"]
    owners = [d.owners for d in join_cube(join, 1, {}).dimensions]
    assert owners == [frozenset("ab"), frozenset("a"), frozenset("b")]
