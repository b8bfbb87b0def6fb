import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.errors import QueryError, QueryMeshError
from querymesh.optimize.chart.fair_rounds import FairRounds


def rounds_of(*queries):
    rounds = FairRounds()
    for query in queries:
        rounds.register(query)
    return rounds


def test_one_heavy_query_and_nine_light_ones_all_wait_for_nine_turns_at_most():
    seconds = {"heavy": 10.0} | {f"light{each}": 0.1 for each in range(9)}
    rounds = rounds_of(*seconds)
    turns = list(rounds.turns(seconds.__getitem__, 1000))
    for query in seconds:
        served = rounds.served(query)
        assert served.rounds == 100
        assert served.longest_turns == 9
        assert served.longest_s <= sum(seconds.values()) - seconds[query] + 1e-6
    assert rounds.served("heavy").longest_s == pytest.approx(0.9)
    assert rounds.now_s == pytest.approx(sum(turn.took_s for turn in turns))


def test_a_query_that_was_not_served_yet_has_waited_for_nothing():
    rounds = rounds_of("one", "two")
    served = rounds.served("one")
    assert (served.rounds, served.busy_s, served.waited_s) == (0, 0, 0)
    assert (served.longest_s, served.longest_turns) == (0, 0)


def test_who_registers_later_waits_from_then_on():
    rounds = rounds_of("one")
    rounds.turn(lambda name: 5.0)
    rounds.register("two")
    first, second = (rounds.turn(lambda name: 3.0) for _ in range(2))
    assert (first.query, first.waited_s, first.started_s) == ("one", 0, 5)
    assert (second.query, second.waited_s, second.started_s) == ("two", 3, 8)
    assert rounds.served("two").longest_turns == 1


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12), st.integers(1, 60))
def test_whatever_rounds_take_nobody_is_served_twice_before_all_are_served_once(seconds, turns):
    rounds = rounds_of(*map(str, range(len(seconds))))
    for turn in rounds.turns(lambda query: seconds[int(query)], turns):
        others = sum(seconds) - seconds[int(turn.query)]
        assert turn.waited_s <= others + 1e-9 * sum(seconds)
    served = [rounds.served(query).rounds for query in map(str, range(len(seconds)))]
    assert max(served) - min(served) <= 1
    assert sum(served) == turns


@given(st.lists(st.tuples(st.sampled_from("+-."), st.integers(0, 5)), max_size=60))
def test_queries_that_come_and_go_starve_nobody(events):
    rounds, registered = FairRounds(), set()
    for event, number in events:
        query = f"q{number}"
        if event == "+" and query not in registered:
            rounds.register(query)
            registered.add(query)
        elif event == "-" and query in registered:
            rounds.remove(query)
            registered.remove(query)
        elif registered:
            rounds.turn(lambda _: 1.0)
    assert set(rounds.waiting) == registered
    for query in registered:
        assert rounds.served(query).longest_turns <= 5


def test_one_that_registers_goes_to_the_back():
    rounds = rounds_of("a", "b")
    rounds.turn(lambda _: 1.0)
    rounds.register("c")
    assert rounds.waiting == ("b", "a", "c")
    assert [turn.query for turn in rounds.turns(lambda _: 1.0, 4)] == ["b", "a", "c", "b"]
    assert rounds.served("c").longest_s == 2.0


def test_a_query_that_fails_goes_to_the_back_as_well():
    rounds = rounds_of("bad", "good")

    def serve(query):
        if query == "bad":
            raise ZeroDivisionError
        return 1.0

    with pytest.raises(ZeroDivisionError):
        rounds.turn(serve)
    assert rounds.turn(serve).query == "good"
    assert rounds.waiting == ("bad", "good")
    assert rounds.served("bad").rounds == 1


def test_a_query_may_remove_itself_and_others_while_it_is_served():
    rounds = rounds_of("a", "b", "c")

    def serve(query):
        if query == "a":
            rounds.remove("a")
            rounds.remove("b")
        return 1.0

    assert [turn.query for turn in rounds.turns(serve, 3)] == ["a", "c", "c"]


def test_the_queue_ends_when_the_last_query_leaves():
    rounds = rounds_of("a")
    assert rounds.remove("a").rounds == 0
    assert list(rounds.turns(lambda _: 1.0, 5)) == []
    with pytest.raises(QueryError, match="no query is registered"):
        rounds.turn(lambda _: 1.0)


def test_wrong_names_and_times_are_refused():
    rounds = rounds_of("orders")
    with pytest.raises(QueryError, match="registered already"):
        rounds.register("orders")
    with pytest.raises(QueryError, match="did you mean 'orders'"):
        rounds.remove("order")
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(QueryMeshError, match="which is no time"):
            rounds.turn(lambda _, took_s=wrong: took_s)
    assert rounds.now_s == 0.0
