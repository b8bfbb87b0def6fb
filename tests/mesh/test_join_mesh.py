import json

import pytest

import querymesh as qm
from querymesh.errors import MeshFileError
from querymesh.mesh.hypercube import join_dimensions
from querymesh.mesh.join_mesh import JoinMesh, join_mesh_to_json
from querymesh.mesh.mesh import written_order
from querymesh.optimize.shards.shares import choose_shares

SQL = (
    "SELECT a.x AS x FROM A a [RANGE 5 SECONDS], B b [RANGE 5 SECONDS], C c [RANGE 5 SECONDS] "
    "WHERE a.x = b.x AND b.y = c.y"
)
RATES = {"a": 1.0, "b": 1.0, "c": 1.0}


@pytest.fixture(scope="module")
def mesh():
    query = qm.query(SQL, time="ts")
    names = {"a": ("b", "c"), "b": ("a", "c"), "c": ("b", "a")}
    meshes = {
        alias: written_order(query, probed, (frozenset(),) * 2) for alias, probed in names.items()
    }
    dimensions = join_dimensions("abc", {"a.x = b.x": "ab", "b.y = c.y": "bc"})
    return JoinMesh(query, meshes, RATES, choose_shares(dimensions, RATES, 4))


def test_a_join_mesh_comes_back_with_its_shards(mesh, tmp_path):
    mesh.save(tmp_path / "mesh.json")
    again = qm.load(tmp_path / "mesh.json")
    assert (again.cube, again.rates, again.routes) == (mesh.cube, mesh.rates, mesh.routes)
    assert "4 shards = 2 × 2" in again.explain()
    assert again.explain() == mesh.explain()


@pytest.mark.parametrize("drop", [False, True])
def test_a_join_mesh_whose_shards_are_not_decided_comes_back_without(mesh, tmp_path, drop):
    content = json.loads(join_mesh_to_json(JoinMesh(mesh.query, mesh.meshes)))
    if drop:
        del content["cube"]
    (tmp_path / "mesh.json").write_text(json.dumps(content))
    assert qm.load(tmp_path / "mesh.json").cube is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"owners": ["a", "stranger"]}, "owners among the streams"),
        ({"owners": "ab"}, "owners among the streams"),
        ({"owners": [["a"]]}, "owners among the streams"),
        ({"owners": []}, "no stream has an attribute"),
        ({"share": 2.0}, "a whole number"),
        ({"share": True}, "a whole number"),
        ({"share": 0}, "a share of 1 or more|0 shards"),
        ({"dimension": None}, "must hold a dimension"),
        ({"dimension": "b.y = c.y"}, "two dimensions are called"),
    ],
)
def test_damaged_shards_are_refused_by_the_file_s_name(mesh, tmp_path, change, message):
    content = json.loads(join_mesh_to_json(mesh))
    content["cube"][0].update(change)
    (tmp_path / "mesh.json").write_text(json.dumps(content))
    with pytest.raises(MeshFileError, match=rf"mesh\.json: .*({message})"):
        qm.load(tmp_path / "mesh.json")


@pytest.mark.parametrize("cube", [4, {"shares": [2, 2]}, ["x"]])
def test_shards_that_are_something_else_are_refused(mesh, tmp_path, cube):
    content = {**json.loads(join_mesh_to_json(mesh)), "cube": cube}
    (tmp_path / "mesh.json").write_text(json.dumps(content))
    with pytest.raises(MeshFileError, match="must hold a dimension"):
        qm.load(tmp_path / "mesh.json")
