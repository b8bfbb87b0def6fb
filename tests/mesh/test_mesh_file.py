import json

import pytest

import querymesh as qm
from profiles import three_classes
from querymesh.cost.route_time import Overheads
from querymesh.errors import MeshFileError
from querymesh.mesh.mesh import written_order
from querymesh.mesh.mesh_file import mesh_from_json, mesh_to_json
from querymesh.optimize.train.train import train_mesh

FUNCTIONS = {"slow": qm.predicate(lambda x: x, columns=["x"], name="slow")}


@pytest.fixture(scope="module")
def mesh():
    query = qm.query("SELECT * FROM t WHERE slow(x) AND y > 1 AND z < 2", functions=FUNCTIONS)
    return train_mesh(query, three_classes(), Overheads(0.005, 20.0, 10_000))


def test_a_mesh_comes_back_as_it_was_saved(mesh, tmp_path):
    mesh.save(tmp_path / "mesh.json")
    again = qm.load(tmp_path / "mesh.json", functions=FUNCTIONS)
    assert again.tree == mesh.tree
    assert (again.routes, again.leaves, again.operators) == (
        mesh.routes,
        mesh.leaves,
        mesh.operators,
    )
    assert again.query.sql == mesh.query.sql
    assert mesh_to_json(again) == mesh_to_json(mesh)


def test_a_mesh_saved_by_the_version_before_is_read(mesh):
    content = json.loads(mesh_to_json(mesh))
    for key in ("uncertain", "found_by", "accuracy", "window", "least_ruster", "classify_every"):
        del content[key]
    again = mesh_from_json(json.dumps({**content, "version": 1}), FUNCTIONS)
    assert (again.tree, again.routes, again.uncertain) == (mesh.tree, mesh.routes, ())


def test_an_untrained_mesh_can_be_stored_too():
    mesh = written_order(qm.query("SELECT * FROM t WHERE a > 1"), ("a > 1",), (frozenset(),))
    assert mesh_to_json(mesh_from_json(mesh_to_json(mesh))) == mesh_to_json(mesh)


def test_a_missing_function_is_named(mesh, tmp_path):
    mesh.save(tmp_path / "mesh.json")
    with pytest.raises(MeshFileError, match="calls slow: give functions="):
        qm.load(tmp_path / "mesh.json")


def damage(**changes):
    def change(content):
        content.update(changes)

    return change


def drop(key):
    return lambda content: content.pop(key)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (damage(version=5), "upgrade QueryMesh"),
        (damage(version=True), "mesh file version True"),
        (damage(version=2.0), "mesh file version 2.0"),
        (damage(expected_us=float("inf")), "Infinity is not a finite number"),
        (damage(bound_us=float("nan")), "NaN is not a finite number"),
        (lambda c: c["leaves"][0].update(share=None), "share is not between 0 and 1"),
        (lambda c: c["operators"][1].update(after=[2]), "operator 2 must come after itself"),
        (damage(format="other"), "not a saved mesh"),
        (drop("tree"), "'tree' is missing"),
        (damage(tree={"route": 9}), "a leaf points to a route"),
        (damage(tree={"test": {"attribute": "k"}, "yes": 1, "no": 2}), "neither 'at_most'"),
        (damage(routes=[[1, 1, 2]]), "is not an order of the 3 operators"),
        (damage(routes="1,2,3"), "not of type list"),
        (damage(routes=[[1, 2, "3"]]), "not an operator index"),
        (damage(leaves=[]), "leaves, but 0 are described"),
        (damage(sample_rows="many"), "not of type int"),
        (damage(window=0), "'window' and 'classify_every' must be at least 1"),
        (damage(classify_every=0), "'window' and 'classify_every' must be at least 1"),
        (damage(tree={"classifier": {"kind": "other", "us": 1.0}, "routes": [0, 1]}), "'other'"),
        (damage(uncertain=[[[1, 2, 3]]] * 9), "but 9 uncertain routes"),
        (damage(uncertain=[[[1], [2]]] * 3), "uncertain route <1, 2>"),
        (damage(uncertain=[[1]] * 3), "not a list of operator indices"),
        (damage(expected_us="cheap"), "not a number"),
        (damage(sql="SELEC * FROM"), "SELEC"),
        (damage(operators=[3]), "not a JSON object"),
        (
            damage(tree={"test": {"attribute": "k", "at_most": None, "null": True}, "yes": 1}),
            "not a finite number",
        ),
    ],
)
def test_a_tampered_file_is_refused_by_name(mesh, tmp_path, change, message):
    content = json.loads(mesh_to_json(mesh))
    change(content)
    path = tmp_path / "mesh.json"
    path.write_text(json.dumps(content))
    with pytest.raises(MeshFileError, match=message) as caught:
        qm.load(path, functions=FUNCTIONS)
    assert str(path) in str(caught.value)


def test_a_route_that_breaks_precedence_is_refused(mesh):
    content = json.loads(mesh_to_json(mesh))
    content["operators"][0]["after"] = [2, 3]
    content["routes"] = [[1, 2, 3]] * len(content["routes"])
    with pytest.raises(MeshFileError, match="before operator 2, which must come earlier"):
        mesh_from_json(json.dumps(content), FUNCTIONS)


def test_a_number_too_large_for_a_double_is_refused(mesh):
    content = json.loads(mesh_to_json(mesh))
    text = json.dumps({**content, "expected_us": 0.125}).replace("0.125", "1e999")
    with pytest.raises(MeshFileError, match="'expected_us' is inf, not a finite number"):
        mesh_from_json(text, FUNCTIONS)


def test_figures_of_an_operator_keep_their_names(mesh):
    content = json.loads(mesh_to_json(mesh))
    del content["operators"][0]["drop_us"]
    content["operators"][0]["pass_us"] = 77.0
    first = mesh_from_json(json.dumps(content), FUNCTIONS).operators[0]
    assert (first.drop_us, first.pass_us) == (first.cost_us, 77.0)


def test_a_place_that_cannot_be_written_to_is_named_as_it_was_given(mesh, tmp_path):
    for path in (tmp_path / "absent" / "mesh.json", tmp_path):
        with pytest.raises(MeshFileError, match=f"cannot write the mesh file {path}: "):
            mesh.save(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00"])
def test_what_is_no_mesh_at_all_is_refused(tmp_path, text):
    path = tmp_path / "mesh.json"
    path.write_text(text)
    with pytest.raises(MeshFileError):
        qm.load(path)
    with pytest.raises(MeshFileError, match="cannot read"):
        qm.load(tmp_path / "absent.json")
