"""Where the tasks of a run get their routers: the seam between policies and tasks."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from querymesh.fabric.core.router import Router
from querymesh.runtime.task.place import TaskPlace
from querymesh.runtime.task_report import ViewReport


class TaskStart(NamedTuple):
    """What a task begins with: its router, and how many of its rows it is to profile beside it.

    That is a share of them, how many at most, and whether the operators are timed meanwhile.
    """

    router: Router
    share: float = 0.0
    most: float = 0.0
    timed: bool = False


class RouterSource(Protocol):
    """Gives each task its router, and takes it back at the end; picklable."""

    @property
    def name(self) -> str:
        """The run and, of a join, the stream: unique among all runs of a worker."""

    @property
    def seed(self) -> int:
        """The seed of every random choice that tasks make."""

    def begin(self, place: TaskPlace, report: ViewReport) -> TaskStart:
        """The router of a task that begins; what goes wrong is reported."""

    def end(self, router: Router, place: TaskPlace, report: ViewReport) -> None:
        """A task is over: keep or report what its router has learned."""
