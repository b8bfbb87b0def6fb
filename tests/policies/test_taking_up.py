"""What a stream goes on with after a restart, where what it learned may be damaged."""

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import querymesh as qm
from drifting import rows_of, trained
from join_feed import PAIR, SCHEMA
from querymesh.mesh.mesh import Mesh
from querymesh.policies.policy import Job, Policy, open_channel
from querymesh.query.bind.windowed_join import bind_join
from querymesh.runtime.run import Run
from querymesh.runtime.task.filter_task import FilterTask
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.view import View
from simulated_stream import OPPOSITE, tuples

DAMAGED = "what an earlier run learned is set aside: cannot read the mesh"


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return trained(OPPOSITE, cost=1.0)


def rows(count: int = 600) -> pa.Table:
    rng = np.random.default_rng(3)
    found = rows_of(tuples(rng, count, OPPOSITE), rng)
    return found.append_column("id", pa.array(np.arange(count)))


def job_of(mesh: Mesh, checkpoint: Path, **more: object) -> Job:
    """A stream of one source on its checkpoint."""
    bound = mesh.query.bind({"input": rows(1).schema})
    return Job(
        "run", {"input": bound}, None, True, trainer=None, checkpoint=str(checkpoint), **more
    )


def join_job(checkpoint: Path) -> Job:
    """A stream of two sources on its checkpoint."""
    join = bind_join(qm.query(f"{PAIR} AND a.x < 3", time="ts"), {"A": SCHEMA, "B": SCHEMA})
    return Job("run", join.views, join, True, trainer=None, checkpoint=str(checkpoint))


def opened(job: Job, alias: str, given: Mesh | None = None):
    """The channel of a source as a run opens it, and its view."""
    started = given or job.written()[alias]
    view = View(alias, job.views[alias], started)
    return open_channel(job, view, "mesh", must=True), view


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b'{"format": "other"}'])
def test_a_damaged_mesh_is_told_and_the_newest_that_can_be_read_stands(tmp_path, mesh, damage):
    channel, _ = opened(job_of(mesh, tmp_path), "input")
    for version in (1, 2, 3):
        channel.publish(mesh, version)
    folder = Path(channel.folder)
    (folder / "mesh-000003.json").write_bytes(damage)
    (folder / "mesh-000002.json").write_bytes(damage)
    again, view = opened(job_of(mesh, tmp_path), "input")
    assert [version for version, _ in view.versions] == [0, 1]
    assert view.mesh.routes == mesh.routes
    assert [problem.startswith(DAMAGED) for problem in view.problems] == [True, True]
    assert "mesh-000003.json" in view.problems[0]
    assert again.newest() == 1
    for version in (2, 3):
        assert (folder / f"mesh-{version:06d}.json.damaged").read_bytes() == damage


def test_with_no_mesh_that_can_be_read_the_given_one_stands(tmp_path, mesh):
    given = {"given": {"input": mesh}}
    channel, _ = opened(job_of(mesh, tmp_path, **given), "input", mesh)
    channel.publish(mesh, 1)
    (Path(channel.folder) / "mesh-000001.json").write_text("{")
    again, view = opened(job_of(mesh, tmp_path, **given), "input", mesh)
    assert (view.versions, len(view.problems)) == ([(0, mesh)], 1)
    assert again.newest() == 0


def test_each_source_of_a_join_takes_up_its_own(tmp_path):
    job = join_job(tmp_path)
    for alias in "ab":
        channel, view = opened(job, alias)
        channel.enough()
        channel.publish(view.mesh.found("a search"), 1)
    channel, _ = opened(job, "a")
    (Path(channel.folder) / "mesh-000001.json").write_text("{")
    again, view = opened(job, "a")
    assert [version for version, _ in view.versions] == [0]
    assert view.problems[0].startswith(DAMAGED)
    assert again.state().learning, "rows are profiled again"
    other, view = opened(job, "b")
    assert (view.version, view.problems) == (1, [])
    assert not other.state().learning


def test_a_mesh_that_fits_another_query_is_set_aside(tmp_path, mesh):
    channel, _ = opened(job_of(mesh, tmp_path), "input")
    turned = Mesh(**{**vars(mesh), "operators": mesh.operators[::-1]})
    channel.publish(turned, 1)
    _, view = opened(job_of(mesh, tmp_path), "input")
    assert view.version == 0
    assert "train it again" in view.problems[0]


def test_a_mesh_that_cannot_be_set_aside_is_as_a_folder_that_cannot_be_written(
    tmp_path, mesh, caplog
):
    job = job_of(mesh, tmp_path)
    channel, _ = opened(job, "input")
    channel.publish(mesh, 1)
    (Path(channel.folder) / "mesh-000001.json").write_text("{")
    (Path(channel.folder) / "mesh-000001.json.damaged").mkdir()
    with pytest.raises(qm.UnsupportedError, match="meshes cannot be kept under the checkpoint"):
        opened(job, "input")
    view = View("input", job.views["input"], mesh)
    with caplog.at_level(logging.WARNING, "querymesh"):
        assert open_channel(job, view, "mesh", must=False) is None
    assert "does not adapt" in caplog.text


class Running:
    """A stream on its checkpoint, whose tasks are called by hand."""

    def __init__(self, mesh: Mesh, checkpoint: Path, policy: Policy) -> None:
        job = job_of(mesh, checkpoint)
        begun = policy.begin(job)
        bound = job.views["input"]
        views = {"input": View("input", bound, begun.meshes["input"])}
        self.run = Run(bound.query, policy.name, "fabric", views)
        self.task = FilterTask(bound, begun.follow(self.run).sources["input"], self, dict)

    def send(self, report) -> None:
        """A task's report."""
        self.run.receive(report)

    def batches(self, count: int) -> Mesh:
        """Run some micro-batches, of one task each; the mesh in use afterwards."""
        for number in range(count):
            list(self.task.run(iter(rows().to_batches()), TaskPlace(0, number, "q")))
        assert self.run.wait_until_learned(60)
        return self.run.view.mesh


def test_a_stream_whose_only_mesh_is_damaged_learns_again(tmp_path, mesh):
    policy = qm.policies.Mesh(sample_rows=400)
    first = Running(mesh, tmp_path, policy)
    assert not first.run.view.mesh.is_learned
    assert first.batches(4).sample_rows >= 400
    (file,) = tmp_path.glob("querymesh/mesh-*/mesh-000001.json")
    file.write_text("{")
    again = Running(mesh, tmp_path, policy)
    assert again.run.problems[0].startswith(DAMAGED)
    assert not again.run.view.mesh.is_learned
    assert again.batches(4).sample_rows >= 400
    assert again.run.view.version == 1
    third = Running(mesh, tmp_path, policy)
    assert (third.run.view.version, third.run.problems) == (1, [])
