"""What all tests share: one Spark session, the `spark` mark, and what doctests leave out."""

import gc
import json
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

# Two processes of tests keep two cores busy. Products of small matrices that two threads share then
# take twenty times as long, mostly to wait for each other; numpy reads this when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from querymesh.spark.session import local_session

# Other tests run beside, and kernels may have to be compiled first: no example has a deadline.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

NO_SPARK_HOME = "/this test starts Spark: give it pytest.mark.spark"
"""SPARK_HOME of a test without the mark: PySpark looks there for its launcher, and its error names
this path. Processes that the test starts inherit it."""

SPARK_CONF = Path(__file__).parent / "tests/support/spark"
"""The folder of Spark's settings for tests."""

# Flink runs this file in an environment of its own: nothing else can import it.
collect_ignore = ["lab/src/querymesh_lab/bench/joins/flink/serve_jobs.py"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses the session, and run what has the mark first: it takes longest.

    First of all hooks, so that `-m` sees the marks.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


# Under xdist the process that schedules tests knows no more of them than their names, so a worker
# tells it by a file which tests share the session. (xdist has groups for this, but they change the
# names of tests, and since pytest 9.2 that is silently without effect.)

FOLDER = pytest.StashKey[TemporaryDirectory[str]]()


def shared_file(config: pytest.Config) -> Path:
    """The file of the process that schedules; it goes when the process ends."""
    if FOLDER not in config.stash:
        config.stash[FOLDER] = TemporaryDirectory(prefix="querymesh-tests-")
    return Path(config.stash[FOLDER].name) / "share-the-session.json"


def _folder(config: pytest.Config) -> Path:
    """The folder of this run; it goes when the run ends."""
    worker = getattr(config, "workerinput", None)
    return (Path(worker["shared_file"]) if worker else shared_file(config)).parent


def pytest_configure_node(node: WorkerController) -> None:
    """Tell a worker where the file is."""
    node.workerinput["shared_file"] = str(shared_file(node.config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the file, before what was collected is reported; one worker does, all have the same.

    And keep the collector of garbage away from all that was imported and collected: it stays to
    the end, and benchmarks that collect before they measure took most of their time to look at it.
    """
    gc.collect()
    gc.freeze()
    worker = getattr(session.config, "workerinput", None)
    if worker is not None and worker["workerid"] == "gw0":
        shared = [item.nodeid for item in session.items if _shares_the_session(item)]
        Path(worker["shared_file"]).write_text(json.dumps(shared), encoding="utf-8")


def _shares_the_session(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("spark")
    return mark is not None and not mark.kwargs.get("own_process", False)


class OneSession(LoadScopeScheduling):
    """Two processes share the tests: those that share the session go to one of them, so that there
    is one session; of all others each test goes to who is free."""

    @cached_property
    def shared(self) -> frozenset[str]:
        """The names of the tests that share the session."""
        return frozenset(json.loads(shared_file(self.config).read_text(encoding="utf-8")))

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid in self.shared else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneSession:
    """Asked for by `-n`."""
    return OneSession(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let no test without the mark start Spark, and the others as `SPARK_CONF` has it; fixtures of
    any scope are made within.

    What is measured of this machine is remembered for this run alone: a process with other settings
    of Java would find other prices.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUERYMESH_CACHE", str(_folder(item.config) / "cache"))
        if item.get_closest_marker("spark") is None:
            patch.setenv("SPARK_HOME", NO_SPARK_HOME)
        else:
            patch.setenv("SPARK_CONF_DIR", str(SPARK_CONF))
        return (yield)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One real local session for the whole run, whose Python workers are forked ready to run."""
    conf = {"spark.sql.session.timeZone": "UTC", "spark.python.daemon.module": "ready_daemon"}
    session = local_session(cores=2, app_name="querymesh-tests", conf=conf)
    yield session
    session.stop()
