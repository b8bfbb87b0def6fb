"""The folder through which driver and tasks of a stream hand on what is learned."""

import pyarrow as pa
import pytest

import querymesh as qm
from drifting import trained
from querymesh.errors import MeshFileError, QueryMeshError
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.budget import Ask
from querymesh.runtime.channel import Channel, RouterStates, channel_folder
from querymesh.runtime.task_report import RouterSnapshot
from simulated_stream import OPPOSITE

SCHEMA = pa.schema({"kind": pa.string(), **dict.fromkeys("xyz", pa.int32()), "id": pa.int64()})


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return trained(OPPOSITE, cost=1.0)


@pytest.fixture
def channel(tmp_path) -> Channel:
    made = Channel(str(tmp_path / "channel"))
    assert made.open() == 0
    return made


def test_the_newest_mesh_is_found_and_read(channel: Channel, mesh: Mesh) -> None:
    assert channel.newest() == 0
    for version in (1, 2):
        channel.publish(mesh, version)
    assert channel.newest() == channel.open() == 2
    again = channel.read(2, mesh.query)
    assert (again.tree, again.routes) == (mesh.tree, mesh.routes)
    with pytest.raises(MeshFileError, match=r"cannot read the mesh .*mesh-000003"):
        channel.read(3, mesh.query)


def test_a_damaged_mesh_is_set_aside_with_its_bytes(channel, mesh, tmp_path) -> None:
    for version in (1, 2):
        channel.publish(mesh, version)
    newest = tmp_path / "channel" / "mesh-000002.json"
    newest.write_bytes(b'{"version": \xff')
    with pytest.raises(MeshFileError, match=str(newest)):
        channel.read(2, mesh.query)
    channel.set_aside(2)
    assert channel.newest() == 1
    assert not newest.exists()
    assert (tmp_path / "channel" / "mesh-000002.json.damaged").read_bytes() == b'{"version": \xff'
    channel.set_aside(2)
    assert channel.newest() == 1, "setting aside what is gone already does nothing"
    channel.publish(mesh, 2)
    assert channel.newest() == 2, "the number is free again"


def test_a_mesh_whose_bytes_cannot_be_kept_stays_where_it_is(channel, mesh, tmp_path) -> None:
    channel.publish(mesh, 1)
    (tmp_path / "channel" / "mesh-000001.json.damaged").mkdir()
    with pytest.raises(OSError, match="damaged"):
        channel.set_aside(1)
    assert channel.newest() == 1


def test_rows_are_profiled_until_enough_are_and_again_if_no_mesh_came_of_it(channel, mesh) -> None:
    assert channel.state().learning
    channel.enough()
    assert not channel.state().learning
    channel.open()
    assert channel.state().learning, "the driver ended before it published"
    channel.enough()
    channel.publish(mesh, 1)
    channel.open()
    assert not channel.state().learning
    channel.set_aside(1)
    channel.open()
    assert channel.state().learning, "what was learned is gone"


def test_what_an_earlier_driver_asked_for_no_longer_holds(channel: Channel) -> None:
    channel.ask(Ask(share=0.5), 1)
    assert channel.asked(1).share == 0.5
    channel.open()
    assert channel.asked(channel.state().ask_number) == Ask()


def test_routers_are_handed_on(channel: Channel, tmp_path) -> None:
    states = RouterStates({"0": RouterSnapshot(3, {"seen": 7})}, {"seen": 7})
    channel.tell(states, 1)
    assert channel.told(channel.state().router_number) == states
    assert channel.router_numbers() == [1]
    (tmp_path / "channel" / "router-000001.json").write_text('{"shards": {"0": 3}}')
    with pytest.raises(MeshFileError, match=r"cannot read the routers .*router-000001"):
        channel.told(1)


def test_plans_of_indices_are_handed_out(channel: Channel, tmp_path) -> None:
    channel.hand_out({"common": {}}, 1)
    assert channel.indices(channel.state().index_number) == {"common": {}}
    (tmp_path / "channel" / "index-000001.json").write_text("{")
    with pytest.raises(MeshFileError, match=r"cannot read the indices .*index-000001"):
        channel.indices(1)


def test_another_query_policy_or_mesh_has_another_folder(mesh: Mesh, tmp_path) -> None:
    bound = mesh.query.bind({"input": SCHEMA})
    other = qm.query("SELECT * FROM input WHERE x > 1 AND y > 1").bind({"input": SCHEMA})
    folders = [
        channel_folder(*which, str(tmp_path), True)
        for which in (
            (bound, "mesh", None),
            (bound, "single", None),
            (bound, "mesh", mesh),
            (other, "mesh", None),
        )
    ]
    assert len(set(folders)) == 4
    assert all(folder.startswith(f"{tmp_path}/querymesh/mesh-") for folder in folders)
    assert channel_folder(bound, "mesh", None, f"{tmp_path}/", True) == folders[0]


def test_without_a_checkpoint_one_machine_has_a_folder_and_a_cluster_none(mesh: Mesh) -> None:
    bound = mesh.query.bind({"input": SCHEMA})
    assert channel_folder(bound, "mesh", None, None, True) != channel_folder(
        bound, "mesh", None, None, True
    )
    with pytest.raises(QueryMeshError, match="give checkpoint="):
        channel_folder(bound, "mesh", None, None, False)
