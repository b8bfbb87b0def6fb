"""A run's folder on one machine, in which its workers share answers; gone with the run."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Any

PREFIX = "querymesh-answers-"


class ScratchFolder:
    """A folder that lasts as long as this object, and as this process at most.

    Only its owner can look into it (mode 0700). Tasks are given its `path`; what they write after
    it has gone is not kept (`AnswerStore`).
    """

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=PREFIX)
        self._finalizer = weakref.finalize(self, _remove, self.path, os.getpid())

    def __reduce__(self) -> Any:
        raise TypeError("a scratch folder belongs to its process: give tasks its path")

    def remove(self) -> None:
        """Remove it now; a second time does nothing."""
        self._finalizer()


def scratch_folder() -> ScratchFolder:
    """A new folder for a run's answers."""
    return ScratchFolder()


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a process that was forked from it
        shutil.rmtree(path, ignore_errors=True)
