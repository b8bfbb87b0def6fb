"""What the driver does while a query runs: one contract, whatever is learned, planned or tuned.

::

    tasks ── TaskReport ──> Run ──> every Loop ──> files that the next tasks read (`channel.py`)

Nothing that goes wrong in a loop reaches the query: it goes on with what it has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from querymesh.runtime.task_report import TaskReport

if TYPE_CHECKING:
    from querymesh.runtime.progress import RunProgress

KEPT_PROBLEMS = 20
"""Problems that are kept to be looked at; there may be one a batch."""


class Loop(ABC):
    """Hears of every task and acts on threads of its own. `run.loops.append(...)` starts it."""

    @abstractmethod
    def receive(self, report: TaskReport) -> None:
        """Take a task's report; returns at once."""

    @abstractmethod
    def wait(self, seconds: float) -> bool:
        """Wait until all that was reported is taken in; of a learner, until it has learned
        something. False if it took longer."""

    @property
    @abstractmethod
    def problems(self) -> Sequence[str]:
        """What went wrong and did not stop the query."""

    @abstractmethod
    def explain(self) -> str:
        """What is known now and what was decided, for people."""

    def wait_until_learned(self, seconds: float) -> bool:
        """Its part of `Run.wait_until_learned`: as `wait`, unless it has another."""
        return self.wait(seconds)

    def add_progress(self, progress: RunProgress) -> None:
        """Write its own figures into the progress of the run; none unless it has some."""
        return
