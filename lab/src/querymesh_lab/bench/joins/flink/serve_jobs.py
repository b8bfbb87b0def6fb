"""Runs in Flink's virtual environment: a Flink job for each line on standard input.

A line is a JSON object; the answer is one line of JSON on standard output. One process serves all
jobs, so that only the first pays for the start and the warming up of the Java machine.

    {"options": {...}, "tables": ["CREATE TABLE ...", ...], "insert": "INSERT INTO ...",
     "checkpoints": "/folder"}
    {"seconds": 1.9, "wall_seconds": 2.6, "state_bytes": 123456, "plan": "..."}
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyflink.common import Configuration  # type: ignore[import-not-found, unused-ignore]
from pyflink.table import (  # type: ignore[import-not-found, unused-ignore]
    EnvironmentSettings,
    TableEnvironment,
)

LOOK_EVERY_S = 0.02


class LargestCheckpoint(threading.Thread):
    """Looks at the checkpoints while a job runs: Flink removes them at its end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder = folder
        self.bytes = 0
        self.seen: set[str] = set()
        self._done = threading.Event()

    def run(self) -> None:
        """Note the largest checkpoint until `stop` is called."""
        while not self._done.wait(LOOK_EVERY_S):
            for checkpoint in self.folder.glob("*/chk-*"):
                self.seen.add(checkpoint.name)
                self.bytes = max(self.bytes, _size(checkpoint))

    def stop(self) -> None:
        """End the thread; the largest size seen stays."""
        self._done.set()
        self.join()


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # removed while we looked
            continue
    return total


def run_job(request: dict[str, Any]) -> dict[str, Any]:
    """One job from start to end; `seconds` is Flink's own net run time, without its start."""
    configuration = Configuration()
    for key, value in request["options"].items():
        configuration.set_string(key, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode()
    environment = TableEnvironment.create(settings.with_configuration(configuration).build())
    for statement in request["tables"]:
        environment.execute_sql(statement)
    plan = environment.explain_sql(request["insert"])
    watch = LargestCheckpoint(Path(request["checkpoints"]))
    watch.start()
    started = time.perf_counter()
    result = environment.execute_sql(request["insert"])
    result.wait()
    wall_seconds = time.perf_counter() - started
    watch.stop()
    job = result.get_job_client().get_job_execution_result().result()
    return {
        "seconds": job.get_net_runtime() / 1000,
        "wall_seconds": wall_seconds,
        "state_bytes": watch.bytes,
        "checkpoints": len(watch.seen),
        "plan": plan[plan.find("== Optimized Execution Plan ==") :],
    }


def main() -> None:
    """Run a job for each line of standard input, until it ends."""
    for line in sys.stdin:
        try:
            answer = run_job(json.loads(line))
        except Exception as problem:
            answer = {"error": f"{type(problem).__name__}: {problem}"}
        print("answer " + json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
