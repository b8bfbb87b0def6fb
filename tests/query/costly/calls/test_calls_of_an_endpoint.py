"""Functions that ask a real HTTP endpoint, which fails as such endpoints do."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from calls import pieces_of, results_of
from querymesh.query.costly.account.allowance import JobAllowance, Spent
from querymesh.query.costly.account.permits import Permits
from querymesh.query.costly.account.price import PARTS, Budget, Price
from querymesh.query.costly.calling import Calling
from querymesh.query.costly.pieces import Unanswered
from querymesh_lab.bench.costly.client import BusyError, GarbageError, ask, ask_async
from querymesh_lab.bench.costly.endpoint import Endpoint
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.costly.questions import rule_of

QUESTION = "share 50 calls"
TRUTH = rule_of(QUESTION)
LONG_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(server: Endpoint) -> Endpoint:
    server.behave(Manners())
    return server


def asking(endpoint: Endpoint, *, is_async: bool = False) -> Callable[[int], Any]:
    """A function of one value that asks the endpoint."""
    address = endpoint.address

    def call(value: int) -> Any:
        return ask(address, QUESTION, [str(value)], LONG_S)[0]

    async def awaited(value: int) -> Any:
        return (await ask_async(address, QUESTION, [str(value)], LONG_S))[0]

    return awaited if is_async else call


def right(rows: int) -> list[list[bool]]:
    """What the endpoint answers about each value."""
    return [[TRUTH(str(at))] for at in range(rows)]


@pytest.mark.parametrize("is_async", [False, True])
def test_nothing_is_lost_where_calls_fail_in_all_ways(endpoint: Endpoint, is_async: bool) -> None:
    endpoint.behave(
        Manners(error=0.1, busy=0.05, garbage=0.05, drop=0.05, hang=0.02, retry_after_s=0.05)
    )
    calling = Calling(batch=1, concurrency=24, retries=10, timeout_s=2.0)
    account = JobAllowance(Budget(1000))
    permits = Permits("f", Price(per_call=1), account.session())
    pieces = pieces_of(asking(endpoint, is_async=is_async), 400, calling, allowance=permits)
    seen = endpoint.counts()
    assert results_of(pieces) == right(400)
    assert sum(piece.calls for piece in pieces) == seen.calls == 400 + sum(seen.faults.values())
    assert set(seen.faults) == {"error", "busy", "garbage", "drop", "hang"}
    # The client's errors do not tell their status: but for those that do, all count as paid.
    assert account.spent() == {"f": Spent(seen.calls, sum(piece.money for piece in pieces))}


@pytest.mark.parametrize("is_async", [False, True])
def test_what_never_answers_takes_its_time_limit_and_no_more(
    endpoint: Endpoint, is_async: bool
) -> None:
    endpoint.behave(Manners(hang=1.0))
    calling = Calling(batch=1, concurrency=5, timeout_s=0.2)
    pieces = pieces_of(asking(endpoint, is_async=is_async), 10, calling)
    assert all(isinstance(each, TimeoutError) for each in results_of(pieces))
    endpoint.behave(Manners())
    pieces = pieces_of(asking(endpoint, is_async=is_async), 10, calling)
    assert results_of(pieces) == right(10)


def test_what_is_slow_is_not_cut_off_within_its_time(endpoint: Endpoint) -> None:
    endpoint.behave(Manners(delay_s=0.1))
    pieces = pieces_of(asking(endpoint), 20, Calling(batch=1, concurrency=10, timeout_s=LONG_S))
    assert results_of(pieces) == right(20)
    assert endpoint.counts().most_at_once <= 10


def test_garbage_is_a_failure_of_its_piece_and_can_stop_the_rest(endpoint: Endpoint) -> None:
    endpoint.behave(Manners(garbage=0.2))
    calling = Calling(batch=1, retries=3, retry_on=(BusyError,))
    pieces = pieces_of(asking(endpoint), 50, calling)
    garbage = [each for each in results_of(pieces) if isinstance(each, GarbageError)]
    assert len(garbage) == endpoint.counts().faults["garbage"] > 0
    endpoint.behave(Manners(garbage=0.2))
    pieces = pieces_of(asking(endpoint), 50, calling, stop_at_failure=True)
    assert isinstance(pieces[-1].result, Unanswered)
    assert endpoint.counts().faults["garbage"] == 1


def test_an_endpoint_that_is_not_there_costs_nothing(endpoint: Endpoint) -> None:
    with Endpoint() as gone:
        fn = asking(gone)
    permits = Permits("f", Price(per_call=1), JobAllowance(Budget(1)).session())
    calling = Calling(batch=1, concurrency=2, retries=1)
    pieces = pieces_of(fn, 4, calling, allowance=permits)
    assert all(isinstance(each, ConnectionError) for each in results_of(pieces))
    assert permits.spent == Spent(8, 0)
    pieces = pieces_of(asking(endpoint), 4, calling, allowance=permits)
    assert [each for each in results_of(pieces) if each == [True] or each == [False]]
    assert permits.spent.money == PARTS  # the one that it is there for


def test_a_rate_that_an_endpoint_grants_is_never_refused_by_it(endpoint: Endpoint) -> None:
    endpoint.behave(Manners(limit_per_s=100.0))
    account = JobAllowance(rates={"f": 100.0})
    permits = Permits("f", None, account.session())
    calling = Calling(batch=1, concurrency=16, rate_limit=100.0)
    assert results_of(pieces_of(asking(endpoint), 180, calling, allowance=permits)) == right(180)
    assert endpoint.counts().faults == {}


def test_without_a_rate_a_refusal_is_waited_for(endpoint: Endpoint) -> None:
    endpoint.behave(Manners(limit_per_s=100.0, retry_after_s=0.3))
    calling = Calling(batch=1, concurrency=16, retries=10)
    pieces = pieces_of(asking(endpoint), 180, calling)
    seen = endpoint.counts()
    assert results_of(pieces) == right(180)
    assert seen.faults["limited"] > 0
    assert seen.calls < 2 * 180  # all calls waited, not only those that were refused


def test_errors_of_urllib_are_understood(endpoint: Endpoint) -> None:
    endpoint.behave(Manners(busy=0.5, retry_after_s=0.01, faults_in_a_row=3))

    def call(value: int) -> Any:
        body = json.dumps({"question": QUESTION, "inputs": [str(value)]}).encode()
        with urlopen(Request(f"http://{endpoint.address}/ask", body), timeout=LONG_S) as answer:
            return json.loads(answer.read())["answers"][0]

    permits = Permits("f", Price(per_call=1), JobAllowance(Budget(20)).session())
    pieces = pieces_of(call, 20, Calling(batch=1, retries=3), allowance=permits)
    assert results_of(pieces) == right(20)
    assert permits.spent == Spent(endpoint.counts().calls, 20 * PARTS)  # a 429 costs nothing
    endpoint.behave(Manners(busy=1.0))
    (piece,) = pieces_of(call, 1, Calling(retries=1))
    assert isinstance(results_of([piece])[0], HTTPError)
    assert piece.calls == 2
