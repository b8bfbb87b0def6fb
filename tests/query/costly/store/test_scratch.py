"""A run's folder: there for its workers, gone with the run, however it ends."""

import gc
import os
import pickle
import stat
import subprocess
import sys

import pytest

from querymesh.query.costly.store.scratch import scratch_folder


def test_only_its_owner_can_look_into_it():
    folder = scratch_folder()
    assert stat.S_IMODE(os.stat(folder.path).st_mode) == 0o700
    assert os.listdir(folder.path) == []
    assert scratch_folder().path != folder.path


def test_it_goes_with_its_run_and_with_all_that_is_in_it():
    folder = scratch_folder()
    path = folder.path
    os.mkdir(f"{path}/f-1")
    with open(f"{path}/f-1/a.answers", "w") as file:
        file.write("x")
    del folder
    gc.collect()
    assert not os.path.exists(path)


def test_it_can_be_removed_early_and_twice():
    folder = scratch_folder()
    folder.remove()
    folder.remove()
    assert not os.path.exists(folder.path)


def test_tasks_are_given_its_path_and_not_the_folder():
    with pytest.raises(TypeError, match="give tasks its path"):
        pickle.dumps(scratch_folder())


ENDS = """
import os, sys
from querymesh.query.costly.store.scratch import scratch_folder
folder = scratch_folder()
if os.fork() == 0:
    sys.exit()  # a child that ends as Python processes end
os.wait()
print(folder.path, os.path.exists(folder.path))
"""


def test_it_goes_when_its_process_ends_and_not_when_a_child_does():
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, check=True)
    path, was_there = done.stdout.split()
    assert was_there == "True"
    assert not os.path.exists(path)
