"""Routing by content beside the paper's own procedure, written down tuple by tuple (CBR § 4)."""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eddies import NEVER, ONE_BY_ONE, column_of, content, run, stream, watched
from querymesh.fabric.routers.estimates import Pair

VALUES = 8
"""So few whole numbers have partitions of their own, so the plain Eddy can go by the value."""


class PlainContent:
    """Routing by content as CBR § 4.2 has it, with S and W updated by § 4.1's note 3."""

    def __init__(self, operators, attribute_of=()):
        self.w = dict.fromkeys(operators, 0.5)
        self.attribute_of = dict(attribute_of)
        self.s = {}

    def expected(self, op, row):
        if op not in self.attribute_of:
            return self.w[op]
        return self.s[op].get(row[self.attribute_of[op]], self.s[op]["unseen"])

    def way(self, row, outcome, first=None):
        ahead, way = set(self.w), []
        while ahead:
            sigma = {op: self.expected(op, row) for op in sorted(ahead)}
            chosen = first if first in ahead else min(sigma, key=sigma.__getitem__)
            ahead.remove(chosen)
            way.append(chosen)
            if chosen in self.attribute_of:
                before = self.expected(chosen, row)
                partition = row[self.attribute_of[chosen]]
                self.s[chosen][partition] = before * 0.95 + outcome[chosen] * (1 - 0.95)
            self.w[chosen] = self.w[chosen] * 0.95 + outcome[chosen] * (1 - 0.95)
            if not outcome[chosen]:
                break
        return way


@st.composite
def worlds(draw, most=80):
    """Outcomes that two attributes have some influence on, by one seed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    operators, rows = draw(st.integers(2, 4)), draw(st.integers(1, most))
    a, b = rng.integers(0, VALUES, rows), rng.integers(0, 3, rows)
    by_a, by_b = rng.random((VALUES, operators)), rng.random((3, operators))
    passes = np.where(rng.random(operators) < 0.5, by_a[a], by_b[b])
    outcomes = rng.random((rows, operators)) < passes
    return stream(outcomes, a=a, b=b), outcomes, a.tolist(), b.tolist()


def rows_of(outcomes, a, b):
    for row, x, y in zip(outcomes.tolist(), a, b, strict=True):
        yield {"a": x, "b": y}, dict(enumerate(row, 1))


@given(worlds(), st.data())
@settings(max_examples=30, deadline=None)
def test_with_given_pairs_it_decides_tuple_by_tuple_as_the_paper_says(world, data):
    batch, outcomes, a, b = world
    operators = range(1, outcomes.shape[1] + 1)
    router = content(batch, NEVER, "a", "b")
    chosen = data.draw(st.dictionaries(st.sampled_from(operators), st.sampled_from("ab")))
    plain = PlainContent(operators, chosen)
    for index, name in chosen.items():
        start = data.draw(st.integers(0, 64)) / 64
        router.estimates.pairs[index] = Pair((name,), 24, np.full(25, start), 0.5)
        plain.s[index] = {"unseen": start}
    ways = watched(router)
    run(batch, router)
    wanted = [plain.way(row, outcome) for row, outcome in rows_of(outcomes, a, b)]
    assert [ways[i] for i in range(len(wanted))] == wanted
    for index, selectivity in router.estimates.overall.items():
        assert selectivity == pytest.approx(plain.w[index])
    for index, column in plain.s.items():
        for value in range(VALUES if chosen[index] == "a" else 3):
            known = column.get(value, column["unseen"])
            assert column_of(router, index, value) == pytest.approx(known)


def entropy(shares):
    return -sum(p * math.log2(p) for p in shares if p > 0)


def plain_gain_ratio(values, passed):
    """CBR eq. 2 to 5, of lists."""
    groups = defaultdict(list)
    for value, verdict in zip(values, passed, strict=True):
        groups[value].append(verdict)
    share = sum(passed) / len(passed)
    left = 0.0
    for group in groups.values():
        of_group = sum(group) / len(group)
        left += len(group) / len(passed) * entropy([of_group, 1 - of_group])
    split = entropy([len(group) / len(passed) for group in groups.values()])
    return (entropy([share, 1 - share]) - left) / split if split else 0.0


class PlainContentLearns(PlainContent):
    """All of Content-Learns, CBR § 4.1 and 4.2, in lists; the rate is counted in routing calls."""

    def __init__(self, operators, routing, seed):
        super().__init__(operators)
        self.routing = routing
        self.rng = np.random.default_rng(seed)
        self.turn = -1
        self.notes = []
        self.profile_next()

    def profile_next(self):
        self.turn = (self.turn + 1) % len(self.w)
        self.target = sorted(self.w)[self.turn]
        self.attribute_of.pop(self.target, None)
        self.sample, self.profiling = [], True
        self.calls = self.tuples = 0

    def evaluate(self):
        passed = [verdict for _, verdict in self.sample]
        gains = {n: plain_gain_ratio([r[n] for r, _ in self.sample], passed) for n in "ab"}
        best = max(gains, key=gains.__getitem__)
        assume(abs(gains["a"] - gains["b"]) > 1e-9 or gains["a"] == gains["b"] == 0)
        assume(abs(gains[best] - self.routing.threshold) > 1e-9)
        self.without = self.calls / self.tuples if self.tuples else math.inf
        if gains[best] <= self.routing.threshold:
            self.notes.append((self.target, "none", ()))
            self.profile_next()
            return
        self.attribute_of[self.target] = best
        column = {"unseen": self.w[self.target]}
        for value in {row[best] for row, _ in self.sample}:
            of_value = [verdict for row, verdict in self.sample if row[best] == value]
            column[value] = sum(of_value) / len(of_value)
        self.s[self.target] = column
        self.profiling, self.calls, self.tuples = False, 0, 0

    def judge(self):
        kept = self.calls / self.tuples < self.without
        name = self.attribute_of[self.target]
        self.notes.append((self.target, "kept" if kept else "dropped", (name,)))
        if not kept:
            del self.attribute_of[self.target]
        self.profile_next()

    def route(self, row, outcome):
        if not self.profiling and self.tuples >= self.routing.trial_rows:
            self.judge()
        elif self.profiling and len(self.sample) >= self.routing.sample:
            self.evaluate()
        sampled = (
            self.profiling
            and len(self.sample) < self.routing.sample
            and self.rng.random() < self.routing.probability
        )
        way = self.way(row, outcome, self.target if sampled else None)
        if sampled:
            self.sample.append((row, outcome[self.target]))
        else:
            self.tuples += 1
            self.calls += len(way)
        return way


@given(worlds(most=400), st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_tuple_by_tuple_it_is_the_papers_content_learns(world, seed):
    batch, outcomes, a, b = world
    routing = replace(ONE_BY_ONE, probability=0.4, sample=20, trial_rows=15)
    router = content(batch, routing, "a", "b", seed=seed)
    plain = PlainContentLearns(range(1, outcomes.shape[1] + 1), routing, seed)
    wanted = [plain.route(row, outcome) for row, outcome in rows_of(outcomes, a, b)]
    ways = watched(router)
    run(batch, router)
    noted = [(e.operator, e.decision, e.attributes) for e in router.learning.events]
    assert noted == plain.notes
    assert [ways[i] for i in range(len(wanted))] == wanted
    assert {k: p.attributes for k, p in router.estimates.pairs.items()} == {
        k: (name,) for k, name in plain.attribute_of.items()
    }
    for index, selectivity in router.estimates.overall.items():
        assert selectivity == pytest.approx(plain.w[index])
    for index, name in plain.attribute_of.items():
        for value in range(VALUES if name == "a" else 3):
            known = plain.expected(index, {name: value})
            assert column_of(router, index, value) == pytest.approx(known)
