import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifiers import AnyClass
from querymesh.classify.tree import (
    Classes,
    Leaf,
    Member,
    Missing,
    Split,
    Threshold,
    leaves,
    leaves_of,
)
from querymesh.fabric.core.leaf_numbers import LeafNumbers
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.ruster import ClassificationWindow
from querymesh.mesh.mesh import LeafStats, written_order
from querymesh.query.parse.query import query

NUMBERS = st.sampled_from([-2, -1, 0, 1, 2, 3])
FLOATS = st.sampled_from([-1.5, -0.0, 0.0, 0.5, 2.0, math.nan, math.inf])
TEXTS = st.sampled_from(["", "a", "b", "long text"])

COLUMNS = {
    "small": (pa.int32(), NUMBERS),
    "whole": (pa.int64(), NUMBERS | st.sampled_from([2**60, -(2**60)])),
    "unsigned": (pa.uint64(), st.sampled_from([0, 1, 2**63])),
    "float": (pa.float64(), FLOATS),
    "text": (pa.string(), TEXTS),
    "flag": (pa.bool_(), st.booleans()),
}

NUMERIC = st.sampled_from(["small", "whole", "float"])
LIMITS = FLOATS.filter(math.isfinite)
WHOLE = st.sampled_from(["small", "whole"])

tests = st.one_of(
    st.builds(Threshold, NUMERIC, LIMITS, st.booleans()),
    st.builds(Member, WHOLE, st.lists(NUMBERS, max_size=20).map(tuple)),
    st.builds(Member, st.just("unsigned"), st.lists(st.sampled_from([0, 2**63])).map(tuple)),
    st.builds(Member, st.just("text"), st.lists(TEXTS, max_size=3).map(tuple)),
    st.builds(Member, st.just("flag"), st.lists(st.booleans(), max_size=2).map(tuple)),
    st.builds(Missing, st.sampled_from([*COLUMNS])),
)  # fmt: skip
trees = st.recursive(
    st.just(Leaf(0)), lambda below: st.builds(Split, tests, below, below), max_leaves=6
)


@st.composite
def batches(draw):
    rows = draw(st.integers(0, 12))
    columns = {}
    for name, (kind, values) in COLUMNS.items():
        given = st.lists(
            st.none() | values if draw(st.booleans()) else values, min_size=rows, max_size=rows
        )
        columns[name] = pa.array(draw(given), kind)
    return pa.record_batch(columns).slice(draw(st.integers(0, rows)))


@settings(max_examples=300, deadline=None)
@given(trees, batches())
def test_the_compiled_tree_sends_each_row_to_the_leaf_of_the_tree(tree, batch):
    found = LeafNumbers(tree).of(batch.column, batch.num_rows)
    expected = np.full(batch.num_rows, -1)
    for leaf, rows in enumerate(leaves_of(tree, batch.column, batch.num_rows)):
        expected[rows] = leaf
    assert found.tolist() == expected.tolist()


def test_leaves_are_numbered_from_left_to_right():
    tree = Split(Threshold("x", 1.0, False), Split(Member("x", (0,)), Leaf(4), Leaf(5)), Leaf(4))
    column = pa.record_batch({"x": [0, 1, 2, None]}).column
    assert LeafNumbers(tree).of(column, 4).tolist() == [0, 1, 2, 2]
    assert len([*leaves(tree)]) == 3


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(KeyError, match="y"):
        LeafNumbers(Split(Missing("y"), Leaf(0), Leaf(0))).of(pa.record_batch({"x": [1]}).column, 1)


@given(st.lists(NUMBERS, max_size=60), st.integers(1, 70), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_of_so_many_tuples_in_a_row_all_follow_the_first(values, every, seed):
    batch = pa.record_batch({"small": pa.array(values, pa.int32())})
    window = ClassificationWindow("t", batch)
    count = 3
    asked = AnyClass(("small",), count, seed)
    for tree in (
        Split(Threshold("small", 0.5, False), Leaf(0), Leaf(1)),
        Classes(asked, tuple(map(Leaf, range(count))), 0.0),
    ):
        ends = len(list(leaves(tree)))
        mesh = replace(
            written_order(query("SELECT * FROM t WHERE small > 0"), ("p",), (frozenset(),)),
            tree=tree,
            routes=((1,),) * ends,
            leaves=(LeafStats(1 / ends, 1.0, 1.0),) * ends,
        )
        told = MeshRouter(mesh).leaves(window)
        router = MeshRouter(replace(mesh, classify_every=every))
        expected = [told[row - row % every] for row in range(len(values))]
        assert router.leaves(window).tolist() == expected
        by_ruster = {row: r.leaf for r in router.rusters(window) for row in r.rows.tolist()}
        assert [by_ruster[row] for row in range(len(values))] == expected


def test_values_that_all_tests_treat_alike_are_one_bin():
    six = tuple("abcdef")
    below = Split(Member("y", tuple(range(9))), Leaf(0), Leaf(1))
    tree = Split(Member("x", six), below, Split(Member("x", (*six, "g")), below, Leaf(2)))
    bins = LeafNumbers(tree)._bins
    assert {name: each.groups for name, each in bins.items()} == {
        "x": (six, ("g",)),
        "y": (tuple(range(9)),),
    }
