"""Leave for calls is asked for ahead, given back, and never used late."""

import itertools
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from calls import pieces_of, results_of
from querymesh.errors import SetupError
from querymesh.query.costly.account import permits as module
from querymesh.query.costly.account.allowance import (
    GRACE_S,
    Allowance,
    Answer,
    Ask,
    AtEnd,
    Granted,
    JobAllowance,
    Later,
    Spent,
)
from querymesh.query.costly.account.permits import MOST_AHEAD, Permit, Permits
from querymesh.query.costly.account.price import PARTS, Budget, Price
from querymesh.query.costly.calling import Calling
from querymesh.query.costly.pieces import Unanswered


@dataclass
class Noted:
    """An account that notes what it is asked."""

    inner: Allowance
    questions: list[Ask] = field(default_factory=list)

    def ask(self, question: Ask) -> Answer:
        self.questions.append(question)
        return self.inner.ask(question)


class Clock:
    """Stands for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def taken(permits: Permits, money: int = 0, ahead: int = 1000) -> Permit:
    permit = permits.take(money, lambda count: [money] * min(count, ahead))
    assert isinstance(permit, Permit)
    return permit


def test_a_function_without_an_account_may_do_all_and_is_counted() -> None:
    permits = Permits("f", Price(per_row=1))
    permit = permits.take(permits.price_of([], 3, 1), lambda count: [])
    assert isinstance(permit, Permit)
    permits.made(permit, 1, is_paid=True)
    assert permits.spent == Spent(1, 3 * PARTS)
    assert Permits("f").price_of([], 3, 1) == 0


def test_more_is_asked_for_each_time_as_long_as_it_is_used_soon(clock: Clock) -> None:
    noted = Noted(JobAllowance().session())
    permits = Permits("f", None, noted)
    for _ in range(1000):
        taken(permits)
    asked = [len(question.prices) for question in noted.questions]
    assert asked[:8] == [1, 1, 2, 4, 8, 16, 32, 64]
    assert max(asked) == MOST_AHEAD
    before = len(asked)
    for _ in range(MOST_AHEAD * 3):
        taken(permits)
        clock.now += 1.0
    asked = [len(question.prices) for question in noted.questions][before:]
    assert asked[:3] == [64, 32, 16]


def test_no_more_is_asked_for_than_there_are_calls() -> None:
    noted = Noted(JobAllowance().session())
    permits = Permits("f", None, noted)
    for _ in range(10):
        taken(permits, ahead=2)
    assert max(len(question.prices) for question in noted.questions) == 3


def test_a_slot_is_not_used_late_and_its_money_is(clock: Clock) -> None:
    account = JobAllowance(Budget(10.0), {"f": 10.0}, clock=clock.monotonic)
    noted = Noted(account.session())
    permits = Permits("f", Price(per_row=1), noted)
    taken(permits, PARTS)
    permit = taken(permits, PARTS)
    assert permit.wait_s == pytest.approx(0.1)
    assert not permit.is_over
    clock.now += 0.1 + GRACE_S + 0.01
    assert permit.is_over
    permits.unused(permit)
    fresh = taken(permits, PARTS)
    assert noted.questions[-1].back == PARTS
    assert not fresh.is_over


def test_fewer_slots_are_asked_for_where_some_were_too_many(clock: Clock) -> None:
    noted = Noted(JobAllowance(rates={"f": 1000.0}, clock=clock.monotonic).session())
    permits = Permits("f", None, noted)
    for _ in range(40):
        taken(permits)
    assert len(noted.questions[-1].prices) > 8
    clock.now += 5.0  # all that is at hand is over
    taken(permits)
    assert len(noted.questions[-1].prices) == 1


def test_a_dearer_call_than_the_money_at_hand_asks_anew() -> None:
    account = JobAllowance(Budget(100.0))
    permits = Permits("f", Price(per_row=1), account.session())
    for _ in range(4):
        taken(permits, 1)
    permit = taken(permits, 50 * PARTS)
    assert permit.money == 50 * PARTS
    permits.made(permit, 1, is_paid=True)
    permits.flush()
    assert account.spent() == {"f": Spent(1, 50 * PARTS)}


def test_what_is_refused_is_free_again_for_the_next_call() -> None:
    account = JobAllowance(Budget(1.0))
    permits = Permits("f", Price(per_row=1), account.session())
    for _ in range(5):
        permits.made(taken(permits, PARTS), 1, is_paid=False)
    permits.made(taken(permits, PARTS), 1, is_paid=True)
    assert isinstance(permits.take(1, lambda count: []), AtEnd)
    assert permits.spent == Spent(6, PARTS)


def test_who_must_wait_asks_more_and_more_seldom(clock: Clock) -> None:
    account = JobAllowance(Budget(1.0))
    account.session().ask(Ask("f", (PARTS,)))  # somebody's call
    noted = Noted(account.session())
    permits = Permits("f", Price(per_row=1), noted)
    for _ in range(100):
        answer = permits.take(PARTS, lambda count: [])
        assert isinstance(answer, Later)
        clock.now += 0.01
    assert 4 <= len(noted.questions) <= 7


def test_the_end_is_not_asked_for_again() -> None:
    noted = Noted(JobAllowance(Budget(1.0)).session())
    permits = Permits("f", Price(per_row=1), noted)
    for _ in range(5):
        assert isinstance(permits.take(PARTS + 1, lambda count: []), AtEnd)
    assert len(noted.questions) == 1
    taken(permits, PARTS)  # a cheaper call may still be


def test_a_driver_that_is_gone_at_the_end_loses_no_answer() -> None:
    class Gone:
        def ask(self, question: Ask) -> Answer:
            if not question.prices:
                raise SetupError("gone")
            return Granted((0.0,) * len(question.prices))

    pieces = pieces_of(int, 3, Calling(batch=1), allowance=Permits("f", None, Gone()))
    assert results_of(pieces) == [[0], [1], [2]]


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("is_async", [False, True])
def test_pieces_that_the_budget_cannot_pay_for_are_not_called(
    concurrency: int, is_async: bool
) -> None:
    called: list[int] = []

    async def awaited(value: int) -> int:
        called.append(value)
        return value

    def call(value: int) -> int:
        called.append(value)
        return value

    account = JobAllowance(Budget(0.7))
    permits = Permits("f", Price(per_row=0.1), account.session())
    fn: Any = awaited if is_async else call
    pieces = pieces_of(fn, 100, Calling(batch=1, concurrency=concurrency), allowance=permits)
    assert sorted(called) == list(range(7))
    assert [piece.result for piece in pieces[:7]] == [[at] for at in range(7)]
    assert all(isinstance(piece.result, Unanswered) for piece in pieces[7:])
    ends = [piece.result.end for piece in pieces[7:] if piece.result.end is not None]
    assert ends[0].left == 0
    assert sum(piece.money for piece in pieces) == 7 * PARTS // 10
    assert account.spent() == {"f": Spent(7, 7 * PARTS // 10)}
    again = pieces_of(fn, 3, Calling(batch=1), allowance=permits)
    assert all(isinstance(piece.result, Unanswered) for piece in again)


def test_a_function_of_single_values_is_a_call_for_each_row() -> None:
    permits = Permits("f", Price(per_call=0.1), JobAllowance(Budget(1.0)).session())
    pieces = pieces_of(int, 30, Calling(), by_row=True, allowance=permits)
    assert sum(piece.calls for piece in pieces) == 10
    permits = Permits("f", Price(per_call=0.1), JobAllowance(Budget(1.0)).session())
    pieces = pieces_of(int, 30, Calling(batch=3), by_row=True, allowance=permits)
    assert sum(piece.calls for piece in pieces) == 9


def test_retries_are_paid_for_unless_they_were_refused() -> None:
    class RefusedError(Exception):
        status = 429

    class LostError(Exception):
        pass

    for error, spent in ((RefusedError(), 1), (LostError(), 3)):
        failures = itertools.count()

        def call(value: int, failures: Any = failures, error: Exception = error) -> int:
            if next(failures) < 2:
                raise error
            return value

        account = JobAllowance(Budget(1.0))
        permits = Permits("f", Price(per_row=0.1), account.session())
        calling = Calling(retries=2, retry_on=(Exception,))
        (piece,) = pieces_of(call, 1, calling, allowance=permits)
        assert (piece.result, piece.calls, piece.money) == ([0], 3, spent * PARTS // 10)
        assert account.spent() == {"f": Spent(3, spent * PARTS // 10)}


def test_a_retry_that_the_budget_cannot_pay_for_is_the_end() -> None:
    def call(value: int) -> int:
        raise ValueError

    permits = Permits("f", Price(per_row=0.6), JobAllowance(Budget(1.0)).session())
    calling = Calling(retries=5, retry_on=(ValueError,))
    (piece,) = pieces_of(call, 1, calling, allowance=permits)
    assert isinstance(piece.result, Unanswered)
    assert piece.calls == 1


def test_what_is_under_way_when_a_batch_fails_counts_as_paid() -> None:
    def call(value: int) -> int:
        raise KeyboardInterrupt

    account = JobAllowance(Budget(1.0))
    permits = Permits("f", Price(per_row=0.1), account.session())
    with pytest.raises(KeyboardInterrupt):
        pieces_of(call, 5, Calling(batch=1), allowance=permits)
    assert account.spent() == {"f": Spent(1, PARTS // 10)}
    account.session().ask(Ask("f", (9 * PARTS // 10,)))  # all else is free
    assert account.spent() == {"f": Spent(1, PARTS // 10)}


def test_calls_of_many_threads_keep_to_their_slots() -> None:
    rate, began, lock = 200.0, [], threading.Lock()

    def call(value: int) -> int:
        with lock:
            began.append(time.monotonic())
        return value

    account = JobAllowance(rates={"f": rate})
    started = time.monotonic()
    permits = Permits("f", None, account.session())
    pieces = pieces_of(call, 60, Calling(1, 8, rate_limit=rate), allowance=permits)
    assert len(pieces) == len(began) == 60
    # The i-th call begins no sooner than the i-th slot, however late the machine is.
    assert all(at - started >= i / rate - 1e-6 for i, at in enumerate(sorted(began)))


def test_prices_are_of_the_rows_of_a_piece() -> None:
    permits = Permits("f", Price(per_token=0.1, tokens=lambda value: value))
    pieces = pieces_of(int, 4, Calling(batch=2), allowance=permits)
    assert [piece.money for piece in pieces] == [PARTS // 10, 5 * PARTS // 10]
