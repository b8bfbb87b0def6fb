"""What the learner of a stream says of itself, step by step, with a clock that is set by hand."""

import datetime as dt

from querymesh.runtime.loops.learning_status import SLOW_BATCHES, LearningStatus


def status_at(times, *, learned=False):
    moments = iter(dt.datetime(2026, 3, 1, 12, 0, second, tzinfo=dt.UTC) for second in times)
    return LearningStatus("s", 2000, learned=learned, now=lambda: next(moments))


def test_each_step_of_learning_is_told():
    status = status_at([0, 5, 7])
    assert status.message == "learning since 2026-03-01T12:00:00.000Z: 0 of 2,000 rows profiled"
    status.heard(("q", 0), 1200, [])
    status.heard(("q", 1), 900, [])
    assert status.message.endswith(": 2,100 of 2,000 rows profiled")
    status.began()
    assert "training since 2026-03-01T12:00:05.000Z" in status.message
    assert status.progress["trainingSince"] == "2026-03-01T12:00:05.000Z"
    status.ended("mesh 1 learned from 2,100 rows: 3 kinds", learned=True)
    progress = status.progress
    assert progress["message"] == (
        "at 2026-03-01T12:00:07.000Z mesh 1 learned from 2,100 rows: 3 kinds"
    )
    assert not progress["isLearning"]
    assert progress["trainingSince"] is None
    assert progress["lastTraining"]["durationMs"] >= 0
    assert status.problems == []


def test_rows_that_cannot_be_profiled_are_the_reason_given():
    status = status_at([0])
    status.heard(("q", 0), 0, ["rows could not be profiled (poison)"])
    assert status.message.endswith("0 of 2,000 rows profiled; rows could not be profiled (poison)")
    assert status.problems == [], "it may still learn from the next"


def test_a_stream_that_learns_nothing_for_long_says_so_among_its_problems():
    status = status_at([0])
    for batch in range(SLOW_BATCHES):
        status.heard(("q", batch), 1, [])
        status.heard(("q", batch), 1, [])
    assert status.problems == []
    status.heard(("q", SLOW_BATCHES), 1, [])
    (told,) = status.problems
    assert told.startswith("s runs in the order as written, learning since 2026-03-01T12:00:00")
    assert told.endswith("21 of 2,000 rows profiled")


def test_a_training_that_failed_is_told_at_once():
    status = status_at([0, 1, 2])
    status.began()
    status.ended("no mesh could be learned: ValueError: odd", learned=False)
    assert status.progress["isLearning"]
    (told,) = status.problems
    assert "learning since" in told
    assert "at 2026-03-01T12:00:02.000Z no mesh could be learned: ValueError: odd" in told


def test_a_stream_on_a_mesh_it_was_given_is_not_learning():
    status = status_at([0, 1], learned=True)
    assert status.message == "learned"
    status.began()
    assert status.message == "searching since 2026-03-01T12:00:01.000Z; learned"
    assert status.problems == []
