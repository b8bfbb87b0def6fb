"""Ctrl-C: a message, exit code 130, no traceback; streams stop, and their state is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import fails, invoke


def test_any_command_that_is_interrupted_ends_with_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("querymesh.cli.advise.load_functions", interrupted)
    monkeypatch.setattr("querymesh.cli.explain.read_query", interrupted)
    monkeypatch.setattr("querymesh.report.doctor.checks", interrupted)
    query = tmp_path / "query.sql"
    query.write_text("SELECT * FROM t", encoding="utf-8")
    for words in (("advise", "x", "--where", "a"), ("explain", query, "--sample", "t=x"),
                  ("doctor",)):  # fmt: skip
        fails(invoke(*words), 130, "stopped by Ctrl-C")


def waits_for(
    found: Callable[[], object], process: subprocess.Popen[str], seconds: float = 240
) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        if found():
            return
        time.sleep(0.2)
    pytest.fail(f"nothing came: {process.communicate(timeout=10) if process.poll() else 'waiting'}")


def interrupted(process: subprocess.Popen[str], when: Callable[[], object]) -> str:
    """What a command that is interrupted then says of it."""
    try:
        waits_for(when, process)
        # A terminal sends it to the whole group: the JVM among them.
        os.killpg(process.pid, signal.SIGINT)
        told, problems = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130, (told, problems)
    assert "Traceback" not in told + problems, problems
    return problems


def started(*words: object) -> subprocess.Popen[str]:
    """The command `querymesh`, in a group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "querymesh.cli.main", *map(str, words)],
        env={name: value for name, value in os.environ.items() if name != "SPARK_HOME"},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


@pytest.mark.spark(own_process=True)
def test_a_stream_that_is_interrupted_goes_on_where_it_stopped(tmp_path: Path) -> None:
    source, out, checkpoint = tmp_path / "rows", tmp_path / "out", tmp_path / "cp"
    source.mkdir()
    pq.write_table(pa.table({"id": range(100)}), source / "0.parquet")
    query = tmp_path / "query.sql"
    query.write_text("SELECT * FROM Rows WHERE id % 2 = 0 AND id % 3 = 0", encoding="utf-8")
    words = [
        *("run", query, "--input", f"Rows={source}", "--output", out),
        *("--stream", "--checkpoint", checkpoint),
    ]
    following = started(*words, "--follow")
    problems = interrupted(following, lambda: [*(checkpoint / "commits").glob("0")])
    assert "kept under the checkpoint" in problems
    assert "stopped by Ctrl-C" in problems

    pq.write_table(pa.table({"id": range(100, 200)}), source / "1.parquet")
    ended = started(*words)
    told, problems = ended.communicate(timeout=240)
    assert ended.returncode == 0, (told, problems)
    found = pq.read_table(out, schema=pa.schema([("id", pa.int64())])).column("id").to_pylist()
    assert sorted(found) == [i for i in range(200) if i % 6 == 0]


LAZY = """
import pathlib
import time
import querymesh as qm

@qm.predicate(columns=["id"], vectorised=False)
def lazy(number):
    pathlib.Path({called!r}).touch()
    time.sleep(0.05)
    return True
"""


@pytest.mark.spark(own_process=True)
def test_a_batch_that_is_interrupted_says_no_more_than_that(tmp_path: Path) -> None:
    called, functions, rows = (tmp_path / name for name in ("called", "f.py", "rows.parquet"))
    pq.write_table(pa.table({"id": range(3000)}), rows)
    functions.write_text(LAZY.format(called=str(called)), encoding="utf-8")
    query = tmp_path / "query.sql"
    query.write_text("SELECT * FROM Rows WHERE lazy(id)", encoding="utf-8")
    running = started(
        *("run", query, "--input", f"Rows={rows}", "--output", tmp_path / "out"),
        *("--functions", functions),
    )
    problems = interrupted(running, called.exists)
    assert "\tat " not in problems, problems
    assert problems.rstrip().endswith("stopped by Ctrl-C")
