import logging
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

from querymesh.index.kernels import compiled, kernels

FOLD = """
import numpy as np
from querymesh.index.kernels import kernels
kernels.fold(np.arange(3), np.arange(3))
print(len(kernels.fold._dispatcher.stats.cache_hits))
"""


def test_a_second_process_loads_what_the_first_compiled(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    hits = [
        subprocess.run(
            [sys.executable, "-c", FOLD],
            capture_output=True,
            text=True,
            check=True,
            env=env,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert hits == ["0", "1"]


FILTER = """
import sys
import pyarrow as pa
from querymesh.fabric.core.fabric import Fabric
from querymesh.fabric.core.router import MeshRouter
from querymesh.mesh.mesh import written_mesh
from querymesh.query.parse.query import query

rows = pa.record_batch({"x": [1, 2, 3]})
bound = query("SELECT x FROM s WHERE x > 1 AND x < 3").bind({"s": rows.schema})
(out,) = Fabric(bound).run(rows, MeshRouter(written_mesh(bound)))
print(out["x"].to_pylist(), "numba" in sys.modules)
"""


def test_a_filter_needs_no_numba():
    told = subprocess.run(
        [sys.executable, "-c", FILTER], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "[2] False"


def test_without_a_folder_for_the_cache_kernels_are_compiled_all_the_same(monkeypatch, caplog):
    jit = numba.njit

    def no_cache(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return jit(*arguments, **options)

    monkeypatch.setattr(numba, "njit", no_cache)
    monkeypatch.setattr(compiled, "_KERNELS", [])

    with caplog.at_level(logging.WARNING, "querymesh"):

        @compiled.kernel(compiled.INTS)
        def total(numbers):
            return numbers.sum()

        assert total(np.arange(4)) == 6
    assert "set NUMBA_CACHE_DIR" in caplog.text


def test_a_torn_cache_is_told_and_done_without(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", FOLD]
    subprocess.run(command, check=True, capture_output=True, env=env)
    torn = list(tmp_path.rglob("*.nbi"))
    assert torn
    for index in torn:
        index.write_bytes(b"")
    second = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    assert second.stdout.strip() == "0"
    assert "kernel fold cannot use its cache (EOFError" in second.stderr
    assert f"delete what lies in {torn[0].parent}" in second.stderr


def test_read_only_arrays_are_read_with_the_same_compiled_code():
    codes = np.frombuffer(np.arange(8).tobytes(), np.int64)
    assert not codes.flags.writeable
    offsets, *_ = kernels.by_bucket(codes, 3)
    assert offsets[-1] == 8
    assert len(kernels.by_bucket._dispatcher.signatures) == 1


def test_other_types_are_refused_rather_than_compiled_for():
    kernels.fold(np.arange(3), np.arange(3))
    with pytest.raises(TypeError):
        kernels.fold(np.arange(6)[::2], np.arange(3))
