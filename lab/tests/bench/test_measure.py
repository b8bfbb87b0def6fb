from itertools import count

import pytest

from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.measure import CONTROL, RivalsDisagreeError, Timing, interleave


def ticking(step: float = 1.0):
    """A clock that moves on by `step` each time it is read."""
    ticks = count()
    return lambda: next(ticks) * step


def test_the_ratio_is_the_median_of_the_rounds_and_not_the_ratio_of_medians():
    timing = Timing(
        {"a": (1.0, 10.0, 30.0), "b": (1.0, 2.0, 30.0), CONTROL: (1.0, 10.0, 30.0)}, "a"
    )
    assert timing.ratios("a", "b") == (1.0, 5.0, 1.0)
    assert timing.ratio("a", "b") == 1.0
    assert timing.a_a == 1.0


def test_every_contender_runs_once_a_round_and_the_first_one_twice():
    ran: list[str] = []
    contenders = {name: (lambda name=name: ran.append(name)) for name in "abc"}
    timing = interleave(contenders, rounds=3, warm_ups=1, clock=ticking())
    assert timing.rounds == 3
    assert timing.control == "a"
    assert [ran.count(name) for name in "abc"] == [8, 4, 4]
    assert set(timing.seconds) == {"a", "b", "c", CONTROL}
    assert timing.a_a == 1.0


def test_the_order_rotates_from_round_to_round():
    ran: list[str] = []
    contenders = {name: (lambda name=name: ran.append(name)) for name in "abc"}
    interleave(contenders, rounds=4, warm_ups=0)
    rounds = ["".join(ran[start : start + 4]) for start in range(0, 16, 4)]
    assert rounds == ["abca", "bcaa", "caab", "aabc"]


def test_warm_ups_are_not_counted():
    times = iter([0.0, 100.0, 100.0, 200.0, 200.0, 201.0, 201.0, 202.0])
    timing = interleave({"a": lambda: 1}, rounds=1, warm_ups=1, clock=lambda: next(times))
    assert timing.seconds == {"a": (1.0,), CONTROL: (1.0,)}


def test_contenders_that_disagree_are_not_compared():
    with pytest.raises(RivalsDisagreeError, match="b answered 2, but a answered 1"):
        interleave({"a": lambda: 1, "b": lambda: 2}, rounds=1)


def test_another_contender_can_be_the_control():
    timing = interleave({"a": lambda: 1, "b": lambda: 1}, rounds=1, control="b", clock=ticking())
    assert timing.control == "b"


def test_the_fastest_is_the_one_with_the_least_median():
    timing = Timing({"a": (1.0, 9.0, 9.0), "b": (5.0, 5.0, 5.0)}, "a")
    assert timing.fastest(["a", "b"]) == "b"


@pytest.mark.parametrize(
    ("direction", "limit", "value", "met", "target"),
    [
        ("at least", 1.4, 1.4, True, "≥ 1.4 ×"),
        ("at least", 1.4, 1.39, False, "≥ 1.4 ×"),
        ("at most", 1.05, 1.06, False, "≤ 1.05 ×"),
        ("report", None, 0.5, True, "-"),
    ],
)
def test_a_finding_knows_whether_its_target_is_met(direction, limit, value, met, target):
    row = Finding("case", "claim", value, "×", direction, limit).as_row("querymesh bench where")
    assert (row["met"], row["target"]) == (met, target)
    assert row["details"]["command"] == "querymesh bench where"
