"""What the driver does while a query runs: one protocol, whatever is learned, planned or tuned.

::

    tasks ── TaskReport ──> Run ──> every Loop ──> files that the next tasks read (`channel.py`)

Nothing that goes wrong in a loop reaches the query: it goes on with what it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from querymesh.runtime.task_report import TaskReport

KEPT_PROBLEMS = 20
"""Problems that are kept to be looked at; there may be one a batch."""


class Loop(Protocol):
    """Hears of every task and acts on threads of its own."""

    def receive(self, report: TaskReport) -> None:
        """Take a task's report; returns at once."""

    def wait(self, seconds: float) -> bool:
        """Wait until all that was reported is taken in; of a learner, until it has learned
        something. False if it took longer."""

    @property
    def problems(self) -> Sequence[str]:
        """What went wrong and did not stop the query."""

    def explain(self) -> str:
        """What is known now and what was decided, for people."""
