import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles import profile_of, profiles_with_kinds, random_profiles, three_classes
from querymesh.cost.route_time import Overheads
from querymesh.optimize.train import judge
from querymesh.optimize.train.folds import JUDGES, Fold
from querymesh.optimize.train.judge import train_until_accurate
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query

OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)
QUERY = query("SELECT * FROM t")


class Source:
    """A source of three classes that remembers what was asked of it."""

    def __init__(self, most=10**9):
        self.most = most
        self.asked = []

    def __call__(self, rows, seed):
        self.asked.append((rows, seed))
        return three_classes(min(rows, self.most), seed)


def trained(take, **training):
    return train_until_accurate(QUERY, take, OVERHEADS, Training(**training))


@pytest.mark.parametrize("by", JUDGES)
def test_a_sample_is_doubled_until_it_is_accurate(by):
    source = Source()
    mesh = trained(source, sample_rows=60, accuracy=0.97, judge=by, seed=4)
    assert mesh.accuracy >= 0.97
    assert [rows for rows, _ in source.asked] == [60 * 2**k for k in range(len(source.asked))]
    assert len({seed for _, seed in source.asked}) == len(source.asked)
    assert "0.97 was asked for" in mesh.found_by
    assert len(mesh.routes) == 3 or mesh.sample_rows < 500


def test_a_sample_is_doubled_while_it_is_in_doubt_whether_a_mesh_pays(monkeypatch):
    verdicts = iter([True, True, False])
    real = judge.train_judged
    monkeypatch.setattr(
        judge, "train_judged",
        lambda *args, **how: replace(real(*args, **how), in_doubt=next(verdicts)),
    )  # fmt: skip
    source = Source()
    mesh = train_until_accurate(QUERY, source, OVERHEADS, Training(sample_rows=60), doublings=5)
    assert [rows for rows, _ in source.asked] == [60, 120, 240]
    assert mesh.sample_rows == 240


@pytest.mark.parametrize(
    ("doublings", "most", "asked"), [(0, 900, [60]), (1, 900, [60, 120]), (9, 100, [60, 120])]
)
def test_doubt_has_its_limits(monkeypatch, doublings, most, asked):
    real = judge.train_judged
    monkeypatch.setattr(
        judge, "train_judged", lambda *args, **how: replace(real(*args, **how), in_doubt=True)
    )
    source = Source(most)
    train_until_accurate(QUERY, source, OVERHEADS, Training(sample_rows=60), doublings=doublings)
    assert [rows for rows, _ in source.asked] == asked


def test_an_accuracy_never_reached_says_so_and_goes_on_with_the_best(caplog):
    source = Source()
    with caplog.at_level(logging.WARNING, logger="querymesh"):
        mesh = trained(source, sample_rows=100, accuracy=0.99999, most_sample_rows=900)
    assert [rows for rows, _ in source.asked] == [100, 200, 400, 800, 900]
    assert "accuracy 0.99999 was asked for and not reached" in caplog.text
    assert "most_sample_rows=900" in mesh.why
    assert "not reached" in mesh.found_by
    alone = [
        train_mesh(
            QUERY, three_classes(*asked), OVERHEADS, Training(sample_rows=100, accuracy=0.99999)
        )
        for asked in source.asked
    ]
    assert mesh.accuracy == max(one.accuracy for one in alone)


def test_a_source_with_no_more_rows_is_not_asked_again(caplog):
    source = Source(most=150)
    mesh = trained(source, sample_rows=100, accuracy=0.99999)
    assert [rows for rows, _ in source.asked] == [100, 200]
    assert "all 150 rows of the source were taken" in mesh.why


def test_without_an_accuracy_the_first_sample_will_do():
    source = Source()
    mesh = trained(source, sample_rows=300)
    assert len(source.asked) == 1
    assert mesh.accuracy is None


def test_where_nothing_is_searched_nothing_is_sampled_again():
    mesh = trained(lambda rows, seed: profile_of(np.ones((rows, 1))), accuracy=0.9)
    assert mesh.routes == ((1,),)
    single = train_until_accurate(
        QUERY, Source(), OVERHEADS, Training(sample_rows=100, accuracy=0.9), one_route=True
    )
    assert single.is_single


def test_an_accuracy_that_cannot_be_measured_is_not_reached(caplog):
    source = Source()
    mesh = trained(source, sample_rows=1, accuracy=0.5, most_sample_rows=1)
    assert "the best sample, of 1 row, is too small to measure it" in caplog.text
    assert "not reached" in mesh.why
    mesh = trained(source, sample_rows=1, accuracy=0.01, judge="holdout", most_sample_rows=400)
    assert [rows for rows, _ in source.asked[1:3]] == [1, 2]
    assert mesh.accuracy >= 0.01


def test_a_judge_that_keeps_nothing_back_is_doubled_and_warned_about(caplog):
    def lenient(rows, holdout, folds, rng):
        return [Fold(np.arange(rows), np.arange(0))]

    source = Source()
    mesh = trained(source, sample_rows=100, accuracy=0.9, judge=lenient, most_sample_rows=400)
    assert [rows for rows, _ in source.asked] == [100, 200, 400]
    assert mesh.sample_rows == 400
    assert "is too small to measure it" in mesh.found_by


def test_an_accuracy_is_cross_validated_unless_told_otherwise():
    assert Training().judged_by == "holdout"
    assert Training(accuracy=0.9, holdout=0.0).judged_by == "cross-validation"
    assert Training(accuracy=0.9, judge="holdout").judged_by == "holdout"
    profile = three_classes(300, 1)
    asked, crossed = (
        train_mesh(QUERY, profile, OVERHEADS, Training(accuracy=0.9, judge=judge))
        for judge in (None, "cross-validation")
    )
    assert asked == crossed


@pytest.mark.parametrize("judge", ["cross-validation", "bootstrap"])
def test_other_judges_accept_what_pays_and_refuse_what_is_chance(judge):
    mesh = train_mesh(QUERY, three_classes(), OVERHEADS, Training(judge=judge))
    assert len(mesh.routes) == 3
    assert 0.9 < mesh.accuracy <= 1
    for seed in range(5):
        uniform = three_classes(600, seed, opposite=False)
        assert train_mesh(QUERY, uniform, OVERHEADS, Training(judge=judge)).is_single


@pytest.mark.parametrize("judge", JUDGES)
@given(profile=st.one_of(random_profiles(most_rows=25), profiles_with_kinds()))
@settings(max_examples=25, deadline=None)
def test_whatever_the_judge_a_mesh_never_costs_more_than_the_best_single_route(judge, profile):
    mesh = train_mesh(QUERY, profile, OVERHEADS, Training(judge=judge, folds=3))
    assert mesh.expected_us <= mesh.single_us + 1e-9
    assert mesh.accuracy is None or 0 <= mesh.accuracy <= 1
