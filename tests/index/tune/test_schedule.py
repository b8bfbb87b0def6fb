import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.index.tune.schedule import SCHEDULES, make_schedule

STATES = ["a", "b", "c"]
EVEN = {"a": 10, "b": 10, "c": 10}
SHIFTED = {"a": 10, "b": 15, "c": 5}


def returned(schedule, calls):
    return [schedule.see(call) for call in calls]


def test_continuous_selects_all_states_after_each_window():
    schedule = make_schedule("continuous", STATES, 60, 1000)
    assert schedule.assessing == set(STATES)
    assert returned(schedule, [EVEN] * 4) == [[], STATES, [], STATES]
    assert schedule.assessing == set(STATES)
    assert schedule.reason == dict.fromkeys(STATES, "continuous")


def test_periodic_assesses_for_one_window_of_each_period():
    schedule = make_schedule("periodic", STATES, 30, 90)
    counting = []
    selected = []
    for _ in range(7):
        counting.append(bool(schedule.assessing))
        selected.append(bool(schedule.see(EVEN)))
    assert counting == [True, False, False, True, False, False, True]
    assert selected == counting
    assert schedule.reason == dict.fromkeys(STATES, "periodic")


def test_a_periodic_window_longer_than_the_period_is_finished_first():
    schedule = make_schedule("periodic", STATES, 60, 30)
    assert returned(schedule, [EVEN] * 4) == [[], STATES, [], STATES]


def test_triggered_takes_the_state_that_changed_most():
    schedule = make_schedule("triggered", STATES, 30, 60)
    assert returned(schedule, [EVEN, EVEN, SHIFTED, SHIFTED]) == [[]] * 4
    # b rose by half, c fell by half: of equals, the busier one.
    assert schedule.assessing == {"b"}
    why = "λ_r of b went from 0.33 to 0.50 of all requests"
    assert schedule.reason == {"b": why}
    assert schedule.see(SHIFTED) == ["b"]
    assert schedule.assessing == frozenset()
    assert schedule.reason == {"b": why}
    assert schedule.see(SHIFTED) == []
    assert schedule.reason == {}


@pytest.mark.parametrize(("now", "assessed"), [(109, set()), (112, {"a"})])
def test_only_a_significant_change_triggers(now, assessed):
    schedule = make_schedule("triggered", ["a", "b"], 1000, 1000)
    schedule.see({"a": 100, "b": 900})
    schedule.see({"a": now, "b": 1000 - now})
    assert schedule.assessing == assessed


def test_a_state_that_was_never_searched_before_changed_most():
    schedule = make_schedule("triggered", STATES, 10, 30)
    returned(schedule, [{"a": 20, "b": 10}, {"a": 9, "b": 20, "c": 1}])
    assert schedule.assessing == {"c"}


def test_periods_crossed_in_one_call_are_one_period():
    schedule = make_schedule("triggered", STATES, 30, 30)
    schedule.see(dict.fromkeys(STATES, 100))
    assert schedule.see(dict.fromkeys(STATES, 70)) == []
    assert schedule.assessing == frozenset()
    schedule.see({"a": 30})
    assert schedule.assessing == {"a"}


def test_hybrid_takes_turns():
    schedule = make_schedule("hybrid", STATES, 30, 1000)
    order = []
    for _ in range(6):
        (state,) = schedule.assessing
        assert schedule.reason[state] == "waited longest"
        order.append(state)
        assert schedule.see(EVEN) == [state]
    assert order == ["a", "b", "c", "a", "b", "c"]


def test_hybrid_takes_a_changed_state_before_the_head_of_the_list():
    schedule = make_schedule("hybrid", STATES, 60, 30)
    # While a is assessed c falls to nothing; b would be next.
    assert returned(schedule, [EVEN, {"a": 15, "b": 15}]) == [[], ["a"]]
    assert schedule.assessing == {"c"}
    assert schedule.reason["c"] == "λ_r of c went from 0.33 to 0.00 of all requests"
    assert schedule.reason["a"] == "waited longest"
    # c has had its turn and is at the bottom.
    assert returned(schedule, [EVEN, EVEN]) == [[], ["c"]]
    assert schedule.assessing == {"b"}
    assert returned(schedule, [EVEN, EVEN]) == [[], ["b"]]
    assert schedule.assessing == {"a"}


CALLS = st.lists(st.tuples(*[st.integers(0, 40)] * 3), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(CALLS)
def test_hybrid_forgets_no_state_whatever_changes(calls):
    schedule = make_schedule("hybrid", STATES, 30, 20)
    turns = []
    for call in calls:
        assert len(schedule.assessing) == 1
        turns += schedule.see(dict(zip(STATES, call, strict=True)))
    for begin in range(len(turns) - 5):
        assert set(turns[begin : begin + 6]) == set(STATES)


@settings(max_examples=60, deadline=None)
@given(CALLS, st.sampled_from(sorted(SCHEDULES)))
def test_an_assessment_lasts_its_window_and_no_call_longer(calls, name):
    schedule = make_schedule(name, STATES, 50, 70)
    lasted = dict.fromkeys(schedule.assessing, 0)
    for call in calls:
        before = schedule.assessing
        complete = schedule.see(dict(zip(STATES, call, strict=True)))
        lasted = {state: lasted.get(state, 0) + sum(call) for state in before}
        assert complete == [state for state in STATES if lasted.get(state, 0) >= 50]
        assert schedule.reason.keys() == schedule.assessing | set(complete)
        for state in complete:
            del lasted[state]


def test_never_assesses_nothing():
    schedule = make_schedule("never", STATES, 1, 1)
    assert returned(schedule, [EVEN] * 3) == [[]] * 3
    assert schedule.assessing == frozenset()
    assert schedule.reason == {}


def test_wrong_names_say_which_there_are():
    with pytest.raises(ValueError, match="did you mean 'hybrid'"):
        make_schedule("hybird", STATES, 1, 1)
    with pytest.raises(ValueError, match="unknown state d"):
        make_schedule("hybrid", STATES, 1, 1).see({"d": 1})
    with pytest.raises(ValueError, match="1 request or more"):
        make_schedule("hybrid", STATES, 0, 1)


def test_only_what_is_more_than_significant_counts():
    for significant, assessed in ((0.25, set()), (0.2499, {"a"})):
        schedule = SCHEDULES["triggered"](["a", "b", "c"], 1000, 8, significant)
        schedule.see({"a": 4, "b": 4})
        schedule.see({"a": 5, "b": 3})  # from 1/2 to 5/8 and 3/8: a quarter of itself
        assert schedule.assessing == assessed


def test_a_state_that_is_never_searched_does_not_change():
    schedule = make_schedule("triggered", STATES, 10, 30)
    assert returned(schedule, [{"a": 20, "b": 10}] * 3) == [[]] * 3
    assert schedule.assessing == frozenset()


def test_a_state_that_gets_all_requests_after_none_changed_most():
    schedule = make_schedule("triggered", ["a", "b"], 100, 30)
    returned(schedule, [{"a": 30}, {"b": 30}])
    assert schedule.assessing == {"b"}


def test_a_period_begins_when_its_requests_are_over_and_not_before():
    schedule = make_schedule("triggered", ["a", "b"], 100, 30)
    # 29 and one: the first period. Then 30 more, in which b falls; what came before is forgotten.
    returned(schedule, [{"a": 14, "b": 15}, {"a": 1}, {"a": 15, "b": 14}])
    assert schedule.assessing == frozenset()
    schedule.see({"a": 1})
    assert schedule.assessing == frozenset(), "16 and 14 of 30: a fifteenth more"
    schedule.see({"a": 18, "b": 12})
    assert schedule.assessing == {"b"}, "from 14 to 12 of 30: a seventh less"


def test_a_state_that_is_assessed_goes_on_though_it_changes_again():
    schedule = make_schedule("triggered", ["a", "b"], 50, 30)
    returned(schedule, [{"a": 3, "b": 27}, {"a": 6, "b": 24}, {"a": 12, "b": 18}])
    assert schedule.reason == {"a": "λ_r of a went from 0.10 to 0.20 of all requests"}
    assert schedule.see({"a": 8, "b": 12}) == ["a"], "50 requests after it began"


def test_hybrid_waits_for_the_window_and_keeps_an_older_change_behind_a_newer_one():
    schedule = make_schedule("hybrid", ["a", "b", "c", "d"], 90, 30)
    quarter = {"a": 9, "b": 7, "c": 7, "d": 7}
    assert returned(schedule, [quarter, {"a": 9, "b": 7, "c": 3, "d": 11}]) == [[], []]
    # d rose and c fell; then b doubles, and c and d stay.
    assert returned(schedule, [{"a": 2, "b": 14, "c": 3, "d": 11}]) == [["a"]]
    assert schedule.assessing == {"b"}, "the newest change, and the head of the list as well"
    same = {"a": 6, "b": 42, "c": 9, "d": 33}
    assert schedule.see(same) == ["b"]
    assert schedule.assessing == {"c"}
    assert schedule.reason["c"] == "λ_r of c went from 0.23 to 0.10 of all requests"
    assert schedule.see(same) == ["c"]
    assert schedule.assessing == {"d"}


def test_no_states_need_no_turns():
    assert make_schedule("hybrid", [], 1, 1).assessing == frozenset()


def test_a_period_of_no_requests_is_refused():
    with pytest.raises(ValueError, match="window 1 and every 0: both must be 1 request or more"):
        make_schedule("hybrid", STATES, 1, 0)
