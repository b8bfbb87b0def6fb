"""Rounds of work in the background: what fails and what takes long is told."""

from querymesh.runtime.loops import background
from querymesh.runtime.loops.background import Background


def done(work):
    rounds = Background("planner", work, "no plan could be made")
    rounds.ask()
    assert rounds.wait(30)
    return rounds


def test_a_round_that_went_well_is_no_problem():
    assert done(lambda: None).problems == []


def test_a_round_that_failed_is_told_with_the_reason():
    def fail():
        raise ValueError("odd figures")

    def cannot_write():
        raise OSError("disk full")

    assert done(fail).problems == ["no plan could be made: ValueError: odd figures"]
    assert done(cannot_write).problems == ["no plan could be made: disk full"]


def test_a_round_that_takes_long_is_told(monkeypatch, caplog):
    monkeypatch.setattr(background, "SLOW_SECONDS", 0.0)
    (told,) = done(lambda: None).problems
    assert told.startswith("planner was busy for 0.0 s")
    assert told in caplog.text
