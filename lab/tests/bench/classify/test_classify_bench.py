"""What is measured of telling kinds apart, on small data."""

import io

import numpy as np
import pytest
from rich.console import Console

from querymesh.errors import OptionError
from querymesh_lab.bench.classify import classify_bench, following
from querymesh_lab.bench.classify.by_sums import Weak, by_sums
from querymesh_lab.bench.classify.kinds_by_sums import oracle


@pytest.fixture(scope="module")
def rows():
    return classify_bench.run_classify(True, None, lambda _: None)


def details(rows, claim):
    (found,) = [row["details"] for row in rows if claim == row["claim"].split(", mean")[0]]
    return found


def test_folding_lists_fewer_values_and_costs_fresh_ticks_no_more(rows):
    before, after = details(rows, "as searched"), details(rows, "folded")
    assert after["leaves"] <= before["leaves"]
    assert after["listed values"] < before["listed values"]
    assert after["fresh µs"] < 1.02 * before["fresh µs"] < before["single µs"]
    assert after["predicate calls a row"] < 1.02 * before["predicate calls a row"]


def test_naive_bayes_beats_the_tree_where_many_columns_say_a_little(rows):
    tree, bayes = (details(rows, f"6 numbers, 2,000 rows, {k}") for k in ("tree", "naive-bayes"))
    assert bayes["evaluations a row"] < 0.95 * tree["evaluations a row"]
    assert bayes["oracle"] < bayes["evaluations a row"] < tree["single"]
    assert bayes["leaves"] == 3 < tree["leaves"]


def test_following_loses_evaluations_where_runs_are_short(rows):
    each, one_in_64 = (details(rows, f"tree, runs of 16, one in {n}") for n in (1, 64))
    assert (each["lost"], each["saved µs"]) == (0.0, 0.0)
    assert one_in_64["evaluations a row"] > 1.05 * each["evaluations a row"]
    assert one_in_64["pays below µs"] == one_in_64["saved µs"] / one_in_64["lost"]


def test_runs_hold_tuples_of_one_kind():
    _, kind = by_sums(Weak(2), 3000, 0, 1.0)
    mixed, in_runs = (kind[following.in_runs(kind, mean)] for mean in (1, 16))
    assert (mixed == kind).all()
    assert np.mean(np.diff(in_runs) != 0) < 0.1 < 0.5 < np.mean(np.diff(mixed) != 0)


def test_who_knows_the_kinds_evaluates_little_more_than_one_operator_a_tuple():
    profile, kind = by_sums(Weak(4, numbers=False), 3000, 0, 1.0)
    assert 1.0 < oracle(profile, kind) / 3000 < 1.3


def test_every_case_has_a_table_and_an_unknown_one_is_refused(rows):
    out = io.StringIO()
    classify_bench.print_rows(rows, Console(file=out, width=200))
    assert all(case in out.getvalue() for case in classify_bench.CASES)
    with pytest.raises(OptionError, match="has no case 'fold': choose folding"):
        classify_bench.run_classify(True, ["fold"], lambda _: None)
