"""Workers killed between a call and its answer: nothing is lost, and nothing counted wrongly.

Sessions of tests give up at the first task that fails, so this has its own process and session.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from querymesh_lab.bench.costly.cells.failures import FORMS, QUICK_ROWS, ROWS
from soak import SOAK, soak_only

PROGRAM = """
import json, sys
from querymesh_lab.bench.costly.costly_bench import run_costly

rows = run_costly(sys.argv[1] == "quick", sys.argv[2:], None, lambda line: None)
print(json.dumps(rows))
"""


def check(form: str, pace: str, rows: int, folder: Path) -> None:
    words = [sys.executable, "-c", PROGRAM, pace, f"in flight, {form}"]
    ended = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=900, check=False
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found[0]["details"]["rows"] == rows
    assert all(row["met"] for row in found), found


@pytest.mark.spark(own_process=True)
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="workers are found in /proc")
def test_two_workers_are_killed_among_faults_and_no_row_is_lost(tmp_path: Path) -> None:
    check("threads", "quick", QUICK_ROWS, tmp_path)


@soak_only
@pytest.mark.spark(own_process=True)
@pytest.mark.parametrize("form", FORMS)
def test_the_same_with_many_rows_and_in_every_form(form: str, tmp_path: Path) -> None:
    for _ in range(SOAK):
        check(form, "full", ROWS, tmp_path)
