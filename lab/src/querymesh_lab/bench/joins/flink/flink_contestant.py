"""Apache Flink on the same cases: its multi-way join operator, and its chain of interval joins.

Flink lives in a virtual environment of its own, since its package wants other versions than ours.
The package brings CSV but not parquet, so it reads the same rows as one CSV file a stream; results
go to CSV files, and DuckDB folds them into the fingerprint after the clock has stopped.

`MultiJoin` (Flink 2.1 and newer) keeps one state a stream, as we do, but knows no windows: the time
conditions are plain comparisons of numbers, which give the same results but never let it forget a
row. A time-to-live of state counts by the clock on the wall, not by the rows' own time, and would
give other results when files are replayed. The chain of interval joins forgets as it should.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from querymesh.errors import SetupError
from querymesh.spark.java import find_java
from querymesh_lab.bench.data.join_data import Design
from querymesh_lab.bench.joins.flink.flink_sql import flink_sql, options, tables
from querymesh_lab.bench.joins.join_case import JoinCase, Outcome, fingerprint_of
from querymesh_lab.bench.joins.processor_time import between, cpu_seconds

PYTHONS = ("python3.11", "python3.12", "python3.10")
"""Versions of Python that Flink's package supports, in the order we look for them."""


def prepare_flink(folder: Path | None = None) -> Path | str:
    """The Python of a virtual environment with Flink in it, made if need be; or why there is none.

    The environment is kept in `folder`, by default below the user's cache.
    """
    try:
        find_java()
    except SetupError as problem:
        return str(problem)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    place = folder or cache / "querymesh" / "flink"
    python = place / "bin" / "python"
    if _has_flink(python):
        return python
    for name in PYTHONS:
        found = shutil.which(name)
        if found is not None:
            break
    else:
        return f"Flink's package needs one of {', '.join(PYTHONS)} on the PATH"
    for command in (
        [found, "-m", "venv", str(place)],
        [str(python), "-m", "pip", "install", "--quiet", "apache-flink"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            return f"{' '.join(command)} failed: {' '.join(last)}"
    return python if _has_flink(python) else f"apache-flink was installed in {place}, but fails"


def flink_version(python: Path) -> str:
    """The version of Flink in this environment."""
    code = "from pyflink.version import __version__; print(__version__)"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _has_flink(python: Path) -> bool:
    if not python.exists():
        return False
    check = [str(python), "-c", "import pyflink.table"]
    return subprocess.run(check, capture_output=True, check=False).returncode == 0


class Flink:
    """A running Flink that is handed one job after another."""

    def __init__(self, python: Path) -> None:
        found = find_java()
        environment = dict(os.environ)
        environment.pop("PYTHONPATH", None)  # ours holds packages of other versions
        if found.home is not None:
            environment["JAVA_HOME"] = found.home
        script = Path(__file__).with_name("serve_jobs.py")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- closed by close()
        self._process = subprocess.Popen(
            [str(python), str(script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            text=True, env=environment,
        )  # fmt: skip

    def __enter__(self) -> Flink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process that serves Flink jobs."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._errors.close()

    def contestant(self, case: JoinCase, way: str = "chain") -> Outcome:
        """The contestant: one job over all rows of the case, by one of the WAYS."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _write_csv(case, folder)
            cpu = cpu_seconds(self._process.pid)
            answered = self._ask(
                {
                    "options": options(way, folder / "checkpoints"),
                    "tables": tables(case.design, folder, way),
                    "insert": f"INSERT INTO joined {flink_sql(case.design, way)}",
                    "checkpoints": str(folder / "checkpoints"),
                }
            )
            cpu = between(cpu, cpu_seconds(self._process.pid))
            answer = _answer(case.design, folder / "joined")
        details = {key: answered[key] for key in ("wall_seconds", "checkpoints")}
        details["operators"] = {
            name: answered["plan"].count(name) for name in ("MultiJoin(", "IntervalJoin(", " Join(")
        }
        return Outcome(
            answer, answered["seconds"], answered["state_bytes"], cpu_seconds=cpu, details=details
        )

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("answer "):
                answer: dict[str, Any] = json.loads(line.removeprefix("answer "))
                if "error" in answer:
                    raise SetupError(f"Flink could not run a job: {answer['error'][:2000]}")
                return answer
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace")[-2000:]
        raise SetupError(f"Flink ended without an answer: {said}")


def _write_csv(case: JoinCase, folder: Path) -> None:
    """One file a stream, in the order of arrival: two would be read at once, out of order."""
    import duckdb

    for stream in case.design.graph.streams:
        columns = ", ".join(["id", "epoch_ms(ts)", *case.design.graph.attributes(stream)])
        duckdb.connect(config={"threads": 1}).execute(
            f"COPY (SELECT {columns} FROM read_parquet('{case.files(stream)}/*.parquet')) "
            f"TO '{folder / stream}.csv' (HEADER false)"
        )


def _answer(design: Design, results: Path) -> tuple[int, int, int]:
    files = [path for path in results.rglob("part-*") if path.stat().st_size]
    if not files:
        return 0, 0, 0
    names = [str(path) for path in files]
    columns = dict.fromkeys(design.graph.ids(), "BIGINT")
    return fingerprint_of(f"read_csv({names}, header = false, columns = {columns})", design)
