"""The endpoint answers by its rules, fails as it was told to, and counts what came."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import pytest

from querymesh_lab.bench.costly.client import (
    BusyError,
    FailedError,
    GarbageError,
    ask,
    ask_async,
)
from querymesh_lab.bench.costly.endpoint import Endpoint
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.costly.questions import rule_of, tokens


@pytest.fixture(scope="module")
def shared() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(shared: Endpoint) -> Endpoint:
    shared.behave(Manners())
    return shared


def test_answers_are_those_of_the_rule_in_the_order_of_the_inputs(endpoint: Endpoint) -> None:
    agents = ["Googlebot/2.1", "Mozilla/5.0", "curl/7"]
    assert ask(endpoint.address, "bot", agents) == [True, False, True]
    pairs = [["http", 3], ["smtp", 4]]
    rule = rule_of("share 50 salt")
    assert ask(endpoint.address, "share 50 salt", pairs) == [rule(pair) for pair in pairs]


def test_a_question_that_is_unknown_is_an_error_of_the_caller(endpoint: Endpoint) -> None:
    with pytest.raises(ValueError, match="no question 'weather'"):
        ask(endpoint.address, "weather", ["today"])


def test_calls_inputs_and_money_are_counted_for_all_and_by_question(endpoint: Endpoint) -> None:
    endpoint.behave(Manners(money_per_call=1.0, money_per_token=0.5, times={"long": 2.0}))
    ask(endpoint.address, "bot", ["a", "b", "a"])
    ask(endpoint.address, "bot", ["b"])
    ask(endpoint.address, "long", ["abcd"])
    counts = endpoint.counts()
    assert (counts.calls, counts.answered, counts.inputs, counts.distinct) == (3, 3, 5, 3)
    assert (counts.by_question["bot"].calls, counts.by_question["bot"].distinct) == (2, 2)
    assert counts.tokens == 4 * tokens("a") + tokens("abcd")
    assert counts.money == pytest.approx(2 * 1.0 + 4 * 0.5 + 2 * (1.0 + 2 * 0.5))
    endpoint.behave(Manners())
    assert endpoint.counts().calls == 0


def test_a_thread_keeps_its_connection(endpoint: Endpoint) -> None:
    for _ in range(5):
        ask(endpoint.address, "bot", ["x"])
    assert endpoint.counts().connections <= 2, "one to ask, one to read the counts"


def test_two_hundred_calls_are_in_flight_at_once_from_threads(endpoint: Endpoint) -> None:
    endpoint.behave(Manners(delay_s=1.0))
    together = threading.Barrier(200)

    def call(number: int) -> list[bool]:
        together.wait()
        return ask(endpoint.address, "share 50 a", [number])

    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(call, range(200)))
    assert answers == [[rule_of("share 50 a")(number)] for number in range(200)]
    counts = endpoint.counts()
    assert counts.calls == counts.distinct == 200
    assert counts.most_at_once > 100


def test_two_hundred_calls_are_in_flight_at_once_on_an_event_loop(endpoint: Endpoint) -> None:
    endpoint.behave(Manners(delay_s=1.0))

    async def calls() -> list[list[int]]:
        asked = (ask_async(endpoint.address, "length", ["x" * n]) for n in range(200))
        return list(await asyncio.gather(*asked))

    assert asyncio.run(calls()) == [[n] for n in range(200)]
    assert endpoint.counts().most_at_once > 100


@pytest.mark.parametrize(
    ("manners", "error"),
    [
        (Manners(error=1.0), FailedError),
        (Manners(busy=1.0, retry_after_s=0.25), BusyError),
        (Manners(garbage=1.0), GarbageError),
        (Manners(drop=1.0), ConnectionError),
        (Manners(hang=1.0), TimeoutError),
    ],
)
def test_each_fault_is_an_error_of_its_kind(
    endpoint: Endpoint, manners: Manners, error: type[OSError]
) -> None:
    endpoint.behave(manners)
    with pytest.raises(error) as of_thread:
        ask(endpoint.address, "bot", ["x"], timeout_s=0.5)
    with pytest.raises(error) as of_loop:
        asyncio.run(ask_async(endpoint.address, "bot", ["y"], timeout_s=0.5))
    for raised in (of_thread, of_loop):
        assert getattr(raised.value, "retry_after", 0.25) == 0.25
    counts = endpoint.counts()
    assert (counts.calls, counts.answered, sum(counts.faults.values())) == (2, 0, 2)


def test_faults_are_the_same_in_every_run_and_come_to_an_end(endpoint: Endpoint) -> None:
    manners = Manners(error=0.3, drop=0.3, faults_in_a_row=3, seed=5)

    def faults(number: int) -> int:
        for failures in range(4):
            try:
                ask(endpoint.address, "bot", [number])
            except OSError:
                continue
            return failures
        raise AssertionError("after three faults there is an answer")

    endpoint.behave(manners)
    first = [faults(number) for number in range(40)]
    endpoint.behave(manners)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(faults, range(40))) == first
    assert {0, 1, 2, 3} == set(first)


def test_more_calls_than_the_limit_are_turned_away(endpoint: Endpoint) -> None:
    endpoint.behave(Manners(limit_per_s=5.0))
    began, turned_away = perf_counter(), 0
    for number in range(30):
        try:
            ask(endpoint.address, "bot", [number])
        except BusyError:
            turned_away += 1
    most = 5 + 5 * (perf_counter() - began) + 1
    counts = endpoint.counts()
    assert counts.answered <= most
    assert counts.faults == {"limited": turned_away}
    assert counts.answered + turned_away == 30


def test_an_endpoint_ends_with_its_block_even_while_a_call_hangs() -> None:
    with Endpoint(Manners(hang=1.0)) as endpoint, pytest.raises(TimeoutError):
        ask(endpoint.address, "bot", ["x"], timeout_s=0.2)
    with pytest.raises(ConnectionError):
        ask(endpoint.address, "bot", ["x"])
