import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.fabric.routers.estimates import UNKNOWN, Estimates, Pair, updated

HERE = 0b110
"""Some visit context; none matters where nothing is kept by context."""


def one_by_one(before, outcomes, memory=0.95):
    for passed in outcomes:
        before = before * memory + passed * (1 - memory)
    return before


def test_a_tuple_counts_a_twentieth():
    assert updated(0.40, 1, 1, 0.95) == pytest.approx(0.43)
    assert updated(0.40, 1, 0, 0.95) == pytest.approx(0.38)


@given(st.floats(0, 1), st.booleans(), st.floats(0.01, 0.99))
def test_of_one_tuple_the_batch_form_is_the_papers_rule(before, passed, memory):
    assert updated(before, 1, passed, memory) == pytest.approx(
        before * memory + passed * (1 - memory)
    )


@given(st.floats(0, 1), st.integers(1, 400), st.booleans())
def test_of_tuples_that_all_do_the_same_the_batch_form_is_one_by_one(before, tuples, passed):
    assert updated(before, tuples, tuples * passed, 0.95) == pytest.approx(
        one_by_one(before, [passed] * tuples)
    )


@given(st.floats(0, 1), st.integers(1, 60), st.integers(2, 6), st.integers(0, 5))
def test_of_outcomes_spread_evenly_the_batch_form_is_nearly_one_by_one(before, rounds, of, phase):
    outcomes = [(i + phase) % of == 0 for i in range(rounds * of)]
    found = updated(before, len(outcomes), sum(outcomes), 0.95)
    assert found == pytest.approx(one_by_one(before, outcomes), abs=0.05 * of)


@given(st.integers(2, 80), st.floats(0, 1), st.integers(0, 2**32))
def test_in_whatever_order_outcomes_came_the_batch_form_is_right_on_average(tuples, share, seed):
    rng = random.Random(seed)
    outcomes = [rng.random() < share for _ in range(tuples)]
    orders = [one_by_one(0.3, rng.sample(outcomes, tuples)) for _ in range(300)]
    spread = 7 * np.std(orders) / math.sqrt(300) + 1e-9
    assert updated(0.3, tuples, sum(outcomes), 0.95) == pytest.approx(np.mean(orders), abs=spread)


def test_what_nobody_has_seen_passes_a_half():
    known = Estimates(0.95)
    assert known.selectivity(1) == UNKNOWN == 0.5
    known.add(1, HERE, 1, 1, 0.0)
    assert known.selectivity(1) == pytest.approx(0.525)
    known.add(2, HERE, 0, 0, 0.0)
    assert 2 not in known.overall, "no tuple says nothing"


def test_many_tuples_at_once_are_believed_at_once():
    known = Estimates(0.95)
    known.add(1, HERE, 400, 100, 0.0)
    assert known.selectivity(1) == pytest.approx(0.25)
    known.add(2, HERE, 2, 0, 0.0)
    assert known.selectivity(2) > 0.4, "but two are not"


def test_a_column_of_s_is_what_the_profile_saw_and_w_where_it_saw_nothing():
    known = Estimates(0.95, overall={3: 0.4})
    column = known.column_of(3, np.array([4, 0, 5, 0]), np.array([1.0, 0.0, 5.0, 0.0]))
    assert column.tolist() == [0.25, 0.4, 1.0, 0.4]
    unknown = known.column_of(9, np.array([0, 2]), np.array([0.0, 3.0]))
    assert unknown.tolist() == [UNKNOWN, 1.5], "more than one where tuples multiply"


def test_s_is_updated_where_tuples_were_and_nowhere_else():
    pair = Pair(("a",), 3, np.array([0.4, 0.4, 0.4, 0.4]), 0.3)
    known = Estimates(0.95, pairs={1: pair})
    known.add_content(1, HERE, np.array([1, 0, 1, 50]), np.array([1, 0, 0, 50]))
    kept = 0.95**50
    assert pair.selectivity == pytest.approx([0.43, 0.4, 0.38, 0.4 * kept + 1 - kept])
    known.add_content(2, HERE, np.array([1]), np.array([1]))
    assert list(known.pairs) == [1], "an operator without a pair has no column"


def test_a_cost_is_a_mean_and_that_of_the_others_where_it_is_not_known():
    known = Estimates(0.95)
    assert known.cost(1) == 1.0
    known.add(1, HERE, 100, 50, 100e-6)
    known.add(1, HERE, 300, 50, 900e-6)
    assert known.cost(1) == pytest.approx(2.5)
    known.add(2, HERE, 10, 5, 100e-6)
    assert known.cost(3) == pytest.approx((2.5 + 10) / 2)
    known.add(4, HERE, 10, 5, 0.0)
    assert known.cost(4) > 0


def test_what_a_visit_takes_by_itself_is_no_tuples_cost():
    known = Estimates(0.95, visit_us=50.0)
    known.add(1, HERE, 100, 50, 150e-6)
    assert known.cost(1) == pytest.approx(1.0)
    known.add(2, HERE, 10, 5, 40e-6)
    assert known.cost(2) == pytest.approx(0.05 * 4), "a twentieth at least is the tuples'"


def test_a_declared_cost_is_not_measured():
    known = Estimates(0.95, declared_us={1: 700.0})
    known.add(1, HERE, 100, 50, 100e-6)
    assert known.cost(1) == 700.0


probabilities = st.floats(0, 1)
sets = st.lists(st.sampled_from(["a", "b", "Ä & b"]), min_size=1, max_size=2).map(tuple)
pairs = st.builds(
    Pair, sets, st.integers(2, 30), st.lists(probabilities, max_size=5).map(np.array),
    probabilities, st.booleans(),
)  # fmt: skip
by_operator = lambda values: st.dictionaries(st.integers(1, 5), values, max_size=4)  # noqa: E731
known_things = st.builds(
    Estimates, st.just(0.95), by_operator(probabilities), by_operator(st.floats(0, 1e6)),
    by_operator(st.integers(0, 2**60)), by_operator(pairs),
)  # fmt: skip


@given(known_things)
def test_what_is_known_is_the_same_to_the_last_bit_after_json(known):
    again = Estimates.from_json(0.95, json.loads(json.dumps(known.to_json())))
    assert again.to_json() == known.to_json()
    assert (again.overall, again.cost_us, again.seen) == (known.overall, known.cost_us, known.seen)
    for index, pair in known.pairs.items():
        assert again.pairs[index].selectivity.tolist() == pair.selectivity.tolist()


def test_taking_over_forgets_what_was_known_before():
    one = Estimates(0.95, {1: 0.1}, {1: 3.0}, {1: 9}, {})
    mine = one.overall
    one.take_over(Estimates(0.95, {2: 0.2}, {2: 4.0}, {2: 8}, {}))
    assert one.overall == {2: 0.2}
    assert one.cost_us == {2: 4.0}
    assert one.seen == {2: 8}
    assert one.overall is mine, "others may hold it"


ELSEWHERE = 0b10


def tenth_elsewhere_and_half_here():
    known = Estimates(0.95, keeps_contexts=True)
    known.add(1, ELSEWHERE, 1000, 100, 0.0)
    known.add(1, HERE, 1000, 500, 0.0)
    return known


def test_few_tuples_that_do_otherwise_forget_nothing_and_many_do():
    known = tenth_elsewhere_and_half_here()
    known.add(1, HERE, 10, 10, 0.0)
    assert known.selectivity_at(1, HERE) > 0.65, "clearly more than a tenth"
    assert known.selectivity_at(1, ELSEWHERE) < 0.15
    known.add(1, HERE, 1000, 650, 0.0)
    assert known.selectivity_at(1, ELSEWHERE) == pytest.approx(0.65, abs=0.01), "as here"


def test_a_small_change_is_none_however_many_tuples_show_it():
    known = tenth_elsewhere_and_half_here()
    known.add(1, HERE, 10_000, 5_900, 0.0)
    assert known.selectivity_at(1, ELSEWHERE) < 0.2


def test_a_cost_follows_within_some_thousand_tuples_however_many_were_seen():
    known = Estimates(0.95)
    known.add(1, HERE, 1_000_000, 0, 1.0)
    assert known.cost(1) == pytest.approx(1.0)
    known.add(1, HERE, 5_000, 0, 15e-3)
    assert known.cost(1) == pytest.approx(2.0), "as much as 5,000 tuples before"


def test_one_sampled_tuple_is_enough_for_a_column():
    known = Estimates(0.95, overall={3: 0.4})
    assert known.column_of(3, np.array([1, 0]), np.array([1.0, 0.0])).tolist() == [1.0, 0.4]


@pytest.mark.parametrize("is_probe", [True, False])
@pytest.mark.parametrize("keeps_contexts", [True, False])
def test_columns_by_context_are_kept_of_probes_where_contexts_are_asked_for(
    is_probe, keeps_contexts
):
    pair = Pair(("a",), 1, np.array([0.4, 0.4]), 0.3)
    known = Estimates(0.95, pairs={1: pair}, keeps_contexts=keeps_contexts)
    if is_probe:
        known.sizes[1] = 100
    known.add_content(1, HERE, np.array([50, 0]), np.array([50, 0]))
    assert (HERE in pair.by_context.numbers) == (is_probe and keeps_contexts)
    assert pair.selectivity[0] > 0.9, "overall in any case"
