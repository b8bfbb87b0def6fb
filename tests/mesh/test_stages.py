import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshes import one_route, three_kinds
from querymesh.classify.tree import Leaf, attributes_of, leaves, leaves_of
from querymesh.errors import MeshFileError
from querymesh.mesh.fit import as_single
from querymesh.mesh.mesh import LeafStats
from querymesh.mesh.mesh_file import mesh_from_json, mesh_to_json
from querymesh.mesh.stages import Parts, Stages, stages_fault

MESH = three_kinds()
"""Three leaves with the routes 1 > 2 > 3, 2 > 3 > 1 and 1 > 2 > 3."""


def test_a_route_falls_into_three_parts_and_reads_so():
    stages = Stages(((1, 1), (0, 3), (3, 0)))
    assert stages.parts(MESH) == (
        Parts((1,), (2,), (3,)),
        Parts((), (2, 3, 1), ()),
        Parts((1, 2, 3), (), ()),
    )
    assert [stages.text(MESH, leaf) for leaf in range(3)] == [
        "1 > [2] > 3",
        "[2 > 3 > 1]",
        "1 > 2 > 3",
    ]
    assert stages.crossing == (True, True, False)
    assert stages.in_python(MESH) == {1, 2, 3}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=3, max_size=3))
def test_the_parts_of_a_route_are_the_route(splits):
    stages = Stages(tuple((before, min(python, 3 - before)) for before, python in splits))
    assert stages_fault(stages, MESH.leaf_routes) == ""
    for route, *parts in zip(
        MESH.leaf_routes, stages.before(MESH), stages.python(MESH), stages.after(MESH), strict=True
    ):
        assert sum(parts, ()) == route


def test_the_python_mesh_has_the_same_leaves_with_the_python_parts():
    stages = Stages(((1, 1), (0, 3), (3, 0)))
    python = stages.python_mesh(MESH)
    assert python.leaf_routes == ((2,), (2, 3, 1), ())
    assert python.leaves == MESH.leaves
    assert attributes_of(python.tree) == attributes_of(MESH.tree)
    assert python.operators == MESH.operators
    assert python.stages is None


def test_a_python_mesh_of_one_part_asks_for_no_column():
    python = Stages(((0, 1), (2, 1), (0, 1))).python_mesh(MESH)
    assert python.tree == Leaf(0)
    assert python.routes == ((1,),)
    assert len(python.leaves) == 1
    assert python.leaves[0].share == pytest.approx(1.0)
    assert python.leaves[0].route_us == pytest.approx(0.4 * 42.2 + 0.35 * 8.25 + 0.25 * 50.0)


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_a_python_mesh_by_leaf_number_sends_each_row_to_the_leaf_it_names(count):
    routes = tuple((k % 3 + 1,) for k in range(count))
    tree = MESH.tree
    while len(list(leaves(tree))) < count:
        tree = replace(MESH.tree, no=tree)
    tree = cut(tree, count)
    mesh = replace(MESH, tree=tree, routes=routes, leaves=(LeafStats(1 / count, 1.0, 1.0),) * count)
    python = Stages(((0, 1),) * count).python_mesh(mesh, leaf_column="leaf")
    assert attributes_of(python.tree) == {"leaf"}
    numbers = pa.array(np.arange(count), pa.int32())
    assert [list(rows) for rows in leaves_of(python.tree, lambda _: numbers, count)] == [
        [k] for k in range(count)
    ]
    assert python.leaf_routes == mesh.leaf_routes


def cut(tree, count):
    """The tree with its leaves numbered, and only so many of them."""
    labels = iter(range(count))

    def walk(node, room):
        if isinstance(node, Leaf) or room == 1:
            return Leaf(next(labels))
        right = min(room - 1, len(list(leaves(node.no))))
        yes = walk(node.yes, room - right)
        return replace(node, yes=yes, no=walk(node.no, right))

    return walk(tree, count)


def test_rusters_keep_apart_where_leaves_have_different_work_in_python():
    small = replace(MESH, least_ruster=50)
    assert Stages(((0, 3), (0, 3), (0, 3))).python_mesh(small).least_ruster == 50
    assert Stages(((0, 3), (1, 2), (0, 3))).python_mesh(small).least_ruster == 0


def test_a_choice_left_open_never_crosses_a_stage():
    steps = (((1, 2), (3,)), ((2, 3, 1),), ((1,), (2, 3)))
    uncertain = replace(MESH, uncertain=steps)
    python = Stages(((1, 2), (0, 2), (1, 2))).python_mesh(uncertain)
    assert python.leaf_choices == (((2,), (3,)), ((2, 3),), ((2, 3),))


def test_stages_are_alike_where_every_operator_has_one_place():
    assert Stages(((1, 2), (2, 1), (1, 2))).is_alike(MESH) is False
    assert Stages(((0, 3), (0, 3), (0, 3))).is_alike(MESH)
    assert Stages(((2, 1), (1, 2), (2, 1))).is_alike(MESH) is False
    assert Stages(((1, 1),)).is_alike(one_route())


def test_a_mesh_file_carries_stages_and_one_without_them_is_read():
    staged = replace(MESH, stages=Stages(((1, 1), (0, 3), (3, 0))))
    text = mesh_to_json(staged)
    again = mesh_from_json(text, asked=MESH.query)
    assert again.stages == staged.stages
    assert mesh_to_json(again) == text
    assert "stages" not in json.loads(mesh_to_json(MESH))
    assert mesh_from_json(mesh_to_json(MESH), asked=MESH.query).stages is None


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([[1, 1]], "the tree has 3 leaves, but the stages of 1 are given"),
        ([[1, 3], [0, 0], [0, 0]], "leaf 0, 1 before and 3 in Python, do not fit a route of 3"),
        ([[0, 0], [-1, 1], [0, 0]], "the stages of leaf 1, -1 before"),
        ([[0, 0], [0, -1], [0, 0]], "and -1 in Python"),
        ([[0, 0], [1], [0, 0]], "not how many operators"),
        ([[0, 0], [True, 1], [0, 0]], "not how many operators"),
        ([[0, 0], 3, [0, 0]], "the stages of a leaf are 3"),
        ("none", "not of type list"),
    ],
)
def test_stages_that_do_not_fit_the_mesh_are_refused(stages, message):
    content = {**json.loads(mesh_to_json(MESH)), "stages": stages}
    with pytest.raises(MeshFileError, match=message):
        mesh_from_json(json.dumps(content), asked=MESH.query)


def test_a_single_route_keeps_to_the_stages_of_its_mesh():
    alike = replace(MESH, stages=Stages(((0, 3), (0, 3), (0, 3))))
    assert (as_single(alike).routes, as_single(alike).stages) == ((MESH.single,), Stages(((0, 3),)))
    other = replace(MESH, stages=Stages(((1, 1), (0, 3), (3, 0))))
    single = as_single(other)
    assert (single.routes, single.single) == ((MESH.leaf_routes[0],), MESH.leaf_routes[0])
    assert single.stages == Stages(((1, 1),))
    assert as_single(MESH).stages is None
    assert as_single(MESH).expected_us == MESH.single_us
