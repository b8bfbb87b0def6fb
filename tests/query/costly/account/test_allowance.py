"""The account of a job: rate and budget hold, whoever asks."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from querymesh.query.costly.account.allowance import (
    AHEAD_S,
    Ask,
    AtEnd,
    Granted,
    JobAllowance,
    Later,
    Slots,
    Spent,
)
from querymesh.query.costly.account.price import PARTS, Budget


def granted(answer: object) -> tuple[float, ...]:
    assert isinstance(answer, Granted)
    return answer.delays_s


def test_without_rate_and_budget_everything_is_granted_at_once() -> None:
    session = JobAllowance().session()
    assert session.ask(Ask("f", (5, 5, 5))) == Granted((0.0, 0.0, 0.0))


def test_what_a_budget_cannot_pay_for_in_full_is_not_granted() -> None:
    session = JobAllowance(Budget(1.0)).session()
    third = PARTS // 3 + 1
    assert len(granted(session.ask(Ask("f", (third,) * 5)))) == 2
    assert isinstance(session.ask(Ask("f", (third,))), Later)  # some may be given back
    assert len(granted(session.ask(Ask("f", (PARTS // 4,))))) == 1


def test_the_end_is_told_once_nothing_can_come_back() -> None:
    account = JobAllowance(Budget(1.0))
    one, other = account.session(), account.session()
    granted(one.ask(Ask("f", (PARTS * 6 // 10,))))
    assert isinstance(other.ask(Ask("g", (PARTS // 2,))), Later)
    one.ask(Ask("f", calls=1, spent=PARTS * 6 // 10))
    end = other.ask(Ask("g", (PARTS // 2,)))
    assert end == AtEnd(PARTS * 4 // 10, PARTS, {"f": Spent(1, PARTS * 6 // 10)})
    assert len(granted(other.ask(Ask("g", (PARTS * 4 // 10,))))) == 1  # to the last of it


def test_what_is_given_back_can_be_spent_by_others() -> None:
    account = JobAllowance(Budget(1.0))
    one, other = account.session(), account.session()
    granted(one.ask(Ask("f", (PARTS,))))
    assert isinstance(other.ask(Ask("f", (PARTS,))), Later)
    one.ask(Ask("f", back=PARTS))
    assert len(granted(other.ask(Ask("f", (PARTS,))))) == 1
    assert account.spent() == {}


def test_what_a_worker_reserved_that_vanished_counts_as_spent() -> None:
    account = JobAllowance(Budget(1.0))
    one, other = account.session(), account.session()
    granted(one.ask(Ask("f", (PARTS // 2, PARTS // 4))))
    one.ask(Ask("f", calls=1, spent=PARTS // 2))
    one.close()
    one.close()
    assert account.spent() == {"f": Spent(1, PARTS * 3 // 4)}
    end = other.ask(Ask("f", (PARTS // 2,)))
    assert isinstance(end, AtEnd)
    assert end.left == PARTS // 4


def test_nobody_can_give_back_more_than_was_reserved() -> None:
    account = JobAllowance(Budget(1.0))
    session = account.session()
    granted(session.ask(Ask("f", (PARTS,))))
    session.ask(Ask("f", calls=1, spent=PARTS, back=PARTS))
    session.ask(Ask("f", back=PARTS))
    assert isinstance(session.ask(Ask("f", (1,))), AtEnd)


def test_the_error_says_what_was_spent_on_what_and_what_to_do() -> None:
    end = AtEnd(PARTS // 10, PARTS, {"f": Spent(3, PARTS // 2), "g": Spent(1, PARTS * 4 // 10)})
    text = str(end.error("f", "Answers are remembered."))
    assert "the budget of 1.00 cannot pay for the next call of f: 0.90 is spent" in text
    assert "(0.50 on 3 calls of f, 0.40 on 1 calls of g)" in text
    assert "Answers are remembered." in text
    assert 'then="keep"' in text


def test_a_rate_is_of_one_function_and_of_all_who_ask() -> None:
    account = JobAllowance(rates={"f": 10.0}, clock=lambda: 100.0)
    one, other = account.session(), account.session()
    assert granted(one.ask(Ask("f", (0, 0)))) == (0.0, 0.1)
    assert granted(other.ask(Ask("f", (0,)))) == (0.2,)
    assert granted(other.ask(Ask("g", (0, 0)))) == (0.0, 0.0)


def test_no_worker_takes_the_slots_of_a_long_time() -> None:
    slots = Slots(rate=10.0)
    assert len(slots.take(now=0.0, most=1000)) == 10 * AHEAD_S
    assert Slots(rate=0.1).take(now=0.0, most=1000) == (0.0,)


@given(
    rate=st.floats(0.01, 1000.0),
    asked=st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(1, 100)), max_size=30),
)
def test_slots_are_never_closer_than_the_rate(rate: float, asked: list[tuple[float, int]]) -> None:
    slots, now, times = Slots(rate), 0.0, []
    for later, most in asked:
        now += later
        times += [now + delay for delay in slots.take(now, most)]
    gaps = [after - before for before, after in pairwise(times)]
    assert all(gap > 1 / rate - 1e-6 for gap in gaps)


Step = tuple[int, str, int]


@given(
    amount=st.integers(0, 200),
    steps=st.lists(
        st.tuples(
            st.integers(0, 2), st.sampled_from(["ask", "spend", "back", "die"]), st.integers(1, 40)
        ),
        max_size=60,
    ),
)
def test_a_budget_is_never_exceeded_and_ends_within_one_call(
    amount: int, steps: list[Step]
) -> None:
    account = JobAllowance(Budget(amount / PARTS))
    sessions = [account.session() for _ in range(3)]
    held = [0, 0, 0]
    made = 0  # what callers really spent, at most
    for who, what, price in steps:
        if what == "ask":
            answer = sessions[who].ask(Ask("f", (price,)))
            if isinstance(answer, Granted):
                held[who] += price
            elif isinstance(answer, AtEnd):
                assert made + price > amount
            else:
                assert made + sum(held) + price > amount >= made + price
        elif what == "die":
            made, held[who] = made + held[who], 0
            sessions[who].close()
            sessions[who] = account.session()
        else:
            some = min(price, held[who])
            held[who] -= some
            made += some if what == "spend" else 0
            spent, back = (some, 0) if what == "spend" else (0, some)
            sessions[who].ask(Ask("f", calls=1, spent=spent, back=back))
        assert made + sum(held) <= amount
        assert sum(each.money for each in account.spent().values()) == made
