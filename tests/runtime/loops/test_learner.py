"""The learner of a stream without Spark: tasks are called, and their reports handed on, by hand."""

from threading import Event
from time import perf_counter, sleep
from uuid import uuid4

import numpy as np
import pyarrow as pa

import querymesh as qm
from drifting import SWAPPED, rows_of, trained
from querymesh.optimize.adapt.budget import Ask
from querymesh.optimize.adapt.watch import Look
from querymesh.runtime.channel import Channel
from querymesh.runtime.loops.learner import Learner, LearnerSettings
from querymesh.runtime.task.filter_task import FilterTask
from querymesh.runtime.task.mesh_source import MeshSource
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.view import View
from simulated_stream import OPPOSITE, OVERHEADS, tuples


class Reports:
    """Stands in for what carries reports: hands on what a task sends."""

    def __init__(self, learner):
        self.learner = learner

    def send(self, report):
        started = perf_counter()
        self.learner.receive(report)
        self.longest = max(getattr(self, "longest", 0.0), perf_counter() - started)


def learning(channel):
    """A mesh that runs, its query bound, its channel and learner, and the view it installs into."""
    mesh = trained(OPPOSITE, cost=1.0)
    rng = np.random.default_rng(3)
    sample = rows_of(tuples(rng, 10, OPPOSITE), rng).append_column("id", pa.array(np.arange(10)))
    channel.open()
    settings = LearnerSettings(
        channel, OVERHEADS, qm.policies.Training(), False, [False] * 3, qm.policies.Adaptation()
    )
    bound = mesh.query.bind({"input": sample.schema})
    view = View(bound.source.alias, bound, mesh)
    return mesh, bound, channel, Learner(view, settings), view


def run_task(bound, mesh, channel, reports, rows, batch):
    """What a task of a new worker gives."""
    source = MeshSource(uuid4().hex, mesh, channel)
    task = FilterTask(bound, source, reports, dict)
    return list(task.run(iter(rows.to_batches()), TaskPlace(0, batch)))


def test_a_mesh_found_for_data_that_is_gone_is_let_go(tmp_path, monkeypatch):
    """The search takes long, and the data swaps back meanwhile: what it finds fits nothing."""
    rng = np.random.default_rng(3)
    mesh, bound, channel, learner, view = learning(Channel(str(tmp_path / "channel")))
    released = Event()
    find = Look.finding

    def slowly(look):
        found = find(look)
        released.wait(30)
        return found

    monkeypatch.setattr(Look, "finding", slowly)
    reports = Reports(learner)
    for number in range(30):
        passes = SWAPPED if 8 <= number < 18 else OPPOSITE
        rows = rows_of(tuples(rng, 4000, passes), rng)
        rows = rows.append_column("id", pa.array(np.arange(4000)))
        run_task(bound, mesh, channel, reports, rows, number)
        sleep(0.03)
    assert view.version == 0
    assert learner._searching, "a search is under way, begun while the data was swapped"
    released.set()
    sleep(1.0)
    assert view.version == 0


class SlowChannel(Channel):
    """A folder far away."""

    def publish(self, mesh, version):
        sleep(0.4)
        super().publish(mesh, version)


def test_reports_are_handed_over_at_once_however_slow_the_search_and_the_folder(tmp_path):
    """The whole loop without Spark: three tasks a batch, the selectivities swap after ten."""
    rng = np.random.default_rng(3)
    mesh, bound, channel, learner, view = learning(SlowChannel(str(tmp_path / "channel")))
    reports = Reports(learner)
    for number in range(24):
        for _ in range(3):
            profile = tuples(rng, 2000, OPPOSITE if number < 10 else SWAPPED)
            rows = rows_of(profile, rng).append_column("id", pa.array(np.arange(2000)))
            found = run_task(bound, mesh, channel, reports, rows, number)
            assert sum(out.num_rows for out in found) == int(profile.outcomes.prod(axis=1).sum())
        sleep(0.1)
    versions = [version for version, _ in view.versions[1:]]
    assert versions == list(range(1, len(versions) + 1))
    assert 1 <= len(versions) <= 2
    assert channel.newest() == versions[-1]
    assert reports.longest < 0.2, "less than it takes to publish"


def test_a_channel_keeps_the_last_few_meshes_and_asks(tmp_path):
    channel = Channel(str(tmp_path / "channel"))
    channel.open()
    mesh = trained(OPPOSITE, cost=1.0)
    for number in range(1, 41):
        channel.publish(mesh, number)
        channel.ask(Ask(share=number / 100), number)
    state = channel.state()
    assert (state.version, state.ask_number) == (40, 40)
    assert 8 <= len(list((tmp_path / "channel").glob("mesh-*"))) <= 16
    assert len(list((tmp_path / "channel").glob("ask-*"))) <= 8
    assert channel.asked(40).share == 0.4
    assert channel.asked(1) == Ask(), "an ask that is gone asks for nothing"
    assert channel.read(33, mesh.query).routes == mesh.routes
    channel.open()
    assert channel.asked(channel.state().ask_number) == Ask(), "a new driver asks for itself"
