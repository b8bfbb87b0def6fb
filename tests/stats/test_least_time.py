from itertools import count

from querymesh.stats.least_time import least_seconds


def test_the_least_of_the_timings_is_taken():
    took = iter([3.0, 0.5, 7.0])
    now = [0.0]

    def action():
        now[0] += next(took)

    assert least_seconds(action, 3, lambda: now[0]) == 0.5


def test_the_action_is_run_as_often_as_told():
    runs = count()
    least_seconds(lambda: next(runs), 4, lambda: 0.0)
    assert next(runs) == 4
