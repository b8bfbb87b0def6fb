"""The generators keep their word: what they designed is what the predicates find."""

import re

import numpy as np
import pytest

from querymesh.stats.profile import Profile
from querymesh_lab.bench.data import lines, messages
from querymesh_lab.bench.data.classed import OPPOSITE, UNIFORM
from querymesh_lab.bench.filters import correlated
from querymesh_lab.bench.limits import limits

ROWS = 3000


def profile_of(data, cost_us):
    names = tuple(f"p{k}" for k in range(data.passes.shape[1]))
    after = (frozenset(),) * len(names)
    return Profile(
        data.table, names, after, data.passes.astype(float), *[np.asarray(cost_us, float)] * 2
    )


@pytest.mark.parametrize("rates", [OPPOSITE, UNIFORM], ids=["opposite", "uniform"])
@pytest.mark.parametrize("make", [messages.messages, lines.lines], ids=["messages", "lines"])
def test_pass_rates_by_class_are_as_designed(make, rates):
    data = make(ROWS, rates)
    for label, wanted in enumerate(rates):
        own = data.passes[data.classes == label]
        assert own.mean(axis=0) == pytest.approx(wanted, abs=0.06)
        assert len(own) == pytest.approx(ROWS / len(rates), rel=0.15)


@pytest.mark.parametrize("k", range(4))
def test_each_message_predicate_comes_to_the_designed_verdict(k):
    data = messages.messages(ROWS, OPPOSITE)
    predicate = messages.PREDICATES[k]
    values = data.table.column(predicate.columns[0]).to_pylist()
    assert [predicate.fn(value) for value in values] == data.passes[:, k].tolist()


@pytest.mark.parametrize("k", range(4))
def test_each_expression_comes_to_the_designed_verdict(k):
    data = lines.lines(ROWS, OPPOSITE)
    found = [
        re.search(lines.PATTERNS[k][1], line) is not None
        for line in data.table.column("line").to_pylist()
    ]
    assert found == data.passes[:, k].tolist()


def test_the_channel_tells_the_class_and_the_region_does_not():
    data = messages.messages(ROWS, OPPOSITE)
    channels = np.array(data.table.column("channel").to_pylist())
    regions = np.array(data.table.column("region").to_pylist())
    assert all(len(set(data.classes[channels == c])) == 1 for c in set(channels))
    assert all(len(set(data.classes[regions == r])) == 3 for r in set(regions))


def test_a_seed_gives_the_same_rows():
    assert messages.messages(50, OPPOSITE, 3).table == messages.messages(50, OPPOSITE, 3).table
    assert messages.messages(50, OPPOSITE, 3).table != messages.messages(50, OPPOSITE, 4).table


def test_no_rows_are_no_problem():
    assert messages.messages(0, OPPOSITE).rows == 0
    assert lines.lines(0, OPPOSITE).rows == 0


@pytest.mark.parametrize("name", correlated.DESIGNS)
def test_correlated_conditions_hold_where_designed(name):
    data = correlated.DESIGNS[name](ROWS)
    for k in range(data.passes.shape[1]):
        column = data.table.column(f"x{k + 1}").combine_chunks()
        assert correlated.holds(column).tolist() == data.passes[:, k].tolist()


def test_marginals_mislead_even_who_knows_the_classes():
    data = correlated.marginals(20_000)
    profile = profile_of(data, [1] * 6)
    found = limits(profile, data.classes)
    ignorant = correlated.by_class_marginals(profile, data.classes)
    assert ignorant > 1.15 * found.oracle.evaluations
    assert found.single.evaluations > 1.3 * found.oracle.evaluations


def test_the_pooled_decision_is_wrong_for_both_halves():
    data = correlated.pooled(20_000)
    found = limits(profile_of(data, [1, 1, 1, 1]), data.classes)
    assert found.single_route[0] == 3
    assert [route[0] for route in found.oracle_routes] == [1, 2]
    assert found.single.evaluations > 1.2 * found.oracle.evaluations


def test_opposite_selectivities_leave_room_above_the_best_single_order():
    data = messages.messages(ROWS, OPPOSITE)
    found = limits(profile_of(data, [2, 25, 30, 50]), data.classes)
    assert found.single.us > 1.5 * found.oracle.us


def test_uniform_data_leaves_none():
    data = messages.messages(20_000, UNIFORM)
    found = limits(profile_of(data, [2, 25, 30, 50]), data.classes)
    assert found.single.us == pytest.approx(found.oracle.us, rel=0.02)
