"""How a task gets its router, wherever it runs."""

import numpy as np

import querymesh as qm
from equivalence import rows_of
from querymesh.fabric.core.metrics import Metrics
from querymesh.fabric.routers.make_eddy import make_eddy
from querymesh.runtime.channel import Channel
from querymesh.runtime.loops.router_loop import RouterLoop
from querymesh.runtime.task import eddy_source
from querymesh.runtime.task.eddy_source import EddySource
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.task_report import TaskReport, ViewReport

QUICK = qm.policies.Routing(probability=0.5, sample=60, trial_rows=200, trial_by="calls")
PLAIN = "a % 2 = 0 AND s LIKE '%b%' AND ok"
NAMES = {1: "one", 2: "two", 3: "three"}


class Shards:
    """Tasks of several partitions and workers, and their driver."""

    def __init__(self, tmp_path, policy="cbr"):
        columns = rows_of(np.random.default_rng(1), 10).schema
        query = qm.query(f"SELECT * FROM S WHERE {PLAIN}")
        self.bound = query.bind({"S": columns})
        self.channel = Channel(str(tmp_path / "channel"))
        self.channel.open()
        self.source = EddySource("run", policy, self.bound, QUICK, channel=self.channel)
        fresh = make_eddy(policy, self.bound, QUICK)
        self.states = RouterLoop("S", policy, NAMES, fresh, self.channel)
        self.another_worker()

    def another_worker(self):
        eddy_source._last.clear()

    def task(self, partition, batch, rows=100):
        """What a task of a partition has seen before it begins; it sees so many more."""
        place, report = TaskPlace(partition, batch, "q"), ViewReport(Metrics())
        router = self.source.begin(place, report).router
        before = router.estimates.seen.get(1, 0)
        router.estimates.add(1, 0, rows, rows // 2, 0.001)
        self.source.end(router, place, report)
        self.states.receive(TaskReport({"S": report}, place))
        assert self.states.wait(10)
        return before, report.problems


def test_a_partition_goes_on_wherever_its_task_runs(tmp_path):
    shards = Shards(tmp_path)
    assert shards.task(0, batch=0) == (0, [])
    assert shards.task(0, batch=1) == (100, [])
    shards.another_worker()
    assert shards.task(0, batch=2) == (200, [])
    assert shards.task(0, batch=3) == (300, [])
    assert shards.states.learned({}).estimates.seen == {1: 400}


def test_a_new_partition_begins_with_what_all_know(tmp_path):
    shards = Shards(tmp_path)
    shards.task(0, batch=0, rows=100)
    assert shards.task(1, batch=0, rows=300) == (100, [])
    shards.another_worker()
    assert shards.task(2, batch=1) == (250, []), "it counts as one of two"
    assert shards.task(1, batch=1) == (400, [])


def test_a_worker_that_is_behind_takes_what_the_driver_knows(tmp_path):
    shards = Shards(tmp_path)
    shards.task(0, batch=0)
    here = {key: eddy_source._last.get(key) for key in eddy_source._last}
    shards.another_worker()
    shards.task(0, batch=1)
    shards.another_worker()
    for key, last in here.items():
        eddy_source._last.put(key, last)
    assert shards.task(0, batch=2) == (200, [])


def test_a_folder_that_is_gone_is_told(tmp_path):
    shards = Shards(tmp_path)
    shards.task(0, batch=0)
    newest = max((tmp_path / "channel").glob("router-*.json"))
    newest.write_text("{}")
    shards.another_worker()
    before, problems = shards.task(0, batch=1)
    assert before == 0
    assert newest.name in problems[0]


def test_the_newest_file_that_can_be_read_takes_the_place_of_damaged_ones(tmp_path):
    shards = Shards(tmp_path)
    shards.task(0, batch=0)
    shards.task(0, batch=1)
    max((tmp_path / "channel").glob("router-*.json")).write_text("[]")
    fresh = make_eddy("cbr", shards.bound, QUICK)
    again = RouterLoop("S", "cbr", {1: "one"}, fresh, shards.channel)
    again.open()
    (problem,) = again.problems
    assert "router-000002.json" in problem
    assert again.learned({}).estimates.seen == {1: 100}
    assert shards.channel.told(3).shards["0"].batch == 0
