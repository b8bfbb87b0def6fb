"""Calls on threads that are left alone once they take too long."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from querymesh.query.costly.calls import lanes
from querymesh.query.costly.calls.crew import Crew
from querymesh.query.costly.calls.lanes import Hung, Lane, NoRoomError

LONG_S = 60.0


class Held(Crew):
    """Starts a task only when it is told to."""

    def __init__(self) -> None:
        super().__init__("held")
        self.tasks: list[Callable[[], None]] = []

    def start(self, task: Callable[[], None]) -> None:
        self.tasks.append(task)


def test_a_call_that_no_thread_began_in_time_is_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    held, called = Held(), []
    monkeypatch.setattr(lanes, "crew", held)
    monkeypatch.setattr(lanes, "hung", Hung(2))
    lane = Lane(lambda args, n: called.append(n), 0.01)
    with pytest.raises(NoRoomError, match="no thread began"):
        lane([], 1)
    assert len(lanes.hung) == 1
    held.tasks[0]()  # only now the machine has time for it
    assert called == []
    assert len(lanes.hung) == 0


def test_where_the_system_has_no_more_threads_no_call_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Full(Crew):
        def start(self, task: Any) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(lanes, "crew", Full("full"))
    with pytest.raises(NoRoomError, match="no more threads"):
        Lane(lambda args, n: n, LONG_S)([], 1)


def test_a_thread_of_a_crew_is_used_again_and_ends_when_idle() -> None:
    crew = Crew("short", idle_s=0.05)
    threads: list[threading.Thread] = []
    for _ in range(3):
        done = threading.Event()

        def task(done: threading.Event = done) -> None:
            threads.append(threading.current_thread())
            done.set()

        crew.start(task)
        assert done.wait(LONG_S)
        while not crew._idle and threads[-1].is_alive():
            pass  # it is about to be idle
    for thread in threads:
        thread.join(LONG_S)
        assert not thread.is_alive()
    assert crew._idle == []
