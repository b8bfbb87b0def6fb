import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from querymesh.index.tune.assessment import (
    ASSESSMENTS,
    Cdia,
    Csria,
    Dia,
    Sria,
    parents,
    pattern_number,
)
from tuners import TABLE_2

SHARES = {pattern: percent / 100 for pattern, percent in TABLE_2.items()}
THRESHOLD, ERROR = 0.05, 0.001

PATTERN = st.sets(st.integers(0, 3)).map(lambda attributes: tuple(sorted(attributes)))
RUNS = st.lists(st.tuples(PATTERN, st.integers(1, 25)), min_size=1, max_size=60)
ERRORS = st.sampled_from([0.02, 0.05, 0.09, 0.1])
COMPACT = st.sampled_from(["csria", "cdia-random", "cdia-highest"])
SETTINGS = settings(max_examples=60, deadline=None)


def interleaved(frequencies, requests):
    order = [
        pattern for pattern, share in frequencies.items() for _ in range(round(share * requests))
    ]
    random.Random(0).shuffle(order)
    return order


def seen(assessment, patterns):
    for pattern in patterns:
        assessment.see(pattern)
    return assessment


def after(assessment, runs):
    for pattern, count in runs:
        assessment.see(pattern, count)
    return assessment


def true_frequencies(runs):
    counts = Counter()
    for pattern, count in runs:
        counts[pattern] += count
    return {pattern: count / counts.total() for pattern, count in counts.items()}


def provides(pattern, other):
    return set(pattern) < set(other)


def test_patterns_are_numbered_as_in_the_paper():
    assert pattern_number((0,), 3) == 4
    assert pattern_number((1, 2), 3) == 3
    assert pattern_number((), 3) == 0


def test_parents_have_one_attribute_less():
    assert parents((0, 2, 3)) == [(0, 2), (0, 3), (2, 3)]
    assert parents(()) == []


@pytest.mark.parametrize("kind", [Sria, Dia])
def test_the_full_tables_are_exact(kind):
    assessment = seen(kind(), interleaved(SHARES, 1000))
    assert assessment.result() == SHARES
    assert (assessment.entries, assessment.requests) == (7, 1000)


@pytest.mark.parametrize("requests", [1000, 5000])
def test_table_2_loses_two_patterns_in_csria(requests):
    result = seen(Csria(THRESHOLD, ERROR), interleaved(SHARES, requests)).result()
    assert result.keys() == SHARES.keys() - {(0,), (0, 1)}


def test_figure_7_combines_two_rare_patterns():
    table = interleaved(SHARES, 5000)
    results = [seen(Cdia(THRESHOLD, ERROR, "random", seed), table).result() for seed in range(8)]
    kept = {pattern: share for pattern, share in SHARES.items() if pattern != (0, 1)}
    first = pytest.approx(kept | {(0,): 0.08})
    # The other choice leaves 4 % at (0,), which go to the top and, less than θ, are left out.
    second = pytest.approx({p: f for p, f in kept.items() if p != (0,)} | {(1,): 0.14})
    assert first in results
    assert all(result in (first, second) for result in results)


def test_the_highest_count_takes_the_other_parent_of_figure_7():
    result = seen(Cdia(THRESHOLD, ERROR, "highest"), interleaved(SHARES, 5000)).result()
    assert result[(1,)] == pytest.approx(0.14)
    assert (0,) not in result


def test_a_rare_leaf_is_counted_for_its_parent_at_the_end_of_a_segment():
    assessment = Cdia(0.5, 0.1)
    after(assessment, [((0, 1), 1), ((1,), 9), ((1,), 9)])
    assert assessment.entries == 2
    assessment.see((1,))
    assert assessment.entries == 1
    assert assessment.result() == {(1,): 1.0}


def test_a_parent_is_made_where_none_is_kept():
    assessment = after(Cdia(0.5, 0.1), [((0, 1), 1), ((2,), 19)])
    assert assessment.entries == 2
    assert sum(entry.count for entry in assessment._kept.values()) == 20
    assert (0,) in assessment._kept


def test_a_pattern_above_one_that_is_kept_stays():
    assessment = after(Cdia(0.5, 0.1), [((0,), 1), ((0, 1), 29)])
    assert assessment.entries == 2


@SETTINGS
@given(RUNS, ERRORS, COMPACT)
def test_every_frequent_pattern_is_found(runs, error, name):
    result = after(ASSESSMENTS[name](0.1001, error, 3), runs).result()
    for pattern, frequency in true_frequencies(runs).items():
        assert frequency < 0.1001 or pattern in result


@SETTINGS
@given(RUNS, ERRORS)
def test_csria_counts_are_at_most_the_error_too_low_and_never_too_high(runs, error):
    assessment = after(Csria(0.15, error), runs)
    truth = true_frequencies(runs)
    for pattern, frequency in assessment.result().items():
        assert truth[pattern] - error - 1e-9 <= frequency <= truth[pattern] + 1e-9
        assert truth[pattern] >= 0.15 - error - 1e-9


@SETTINGS
@given(RUNS, ERRORS, st.sampled_from(["random", "highest"]))
def test_cdia_counts_what_a_pattern_stands_for(runs, error, combine):
    assessment = after(Cdia(0.15, error, combine, 1), runs)
    truth, result = true_frequencies(runs), assessment.result()
    assert sum(entry.count for entry in assessment._kept.values()) == assessment.requests
    for pattern, frequency in result.items():
        own = truth.get(pattern, 0.0)
        others = sum(
            share
            for other, share in truth.items()
            if provides(pattern, other) and other not in result
        )
        found = sum(provides(pattern, other) for other in result)
        assert own - error - 1e-9 <= frequency <= own + others + found * error + 1e-9


@SETTINGS
@given(RUNS, st.sampled_from(sorted(ASSESSMENTS)), ERRORS)
def test_many_at_once_are_as_one_after_the_other(runs, name, error):
    at_once, single = ASSESSMENTS[name](0.2, error, 5), ASSESSMENTS[name](0.2, error, 5)
    for pattern, count in runs:
        at_once.see(pattern, count)
        for _ in range(count):
            single.see(pattern)
        assert at_once.entries == single.entries
        assert at_once.requests == single.requests
    assert at_once.result() == single.result()
    assert at_once.result() == at_once.result()


def test_csria_keeps_no_more_than_lossy_counting_may():
    chance = random.Random(2)
    assessment, full = Csria(0.2, 0.05), Sria()
    most = 0
    for number in range(1, 4001):
        pattern = tuple(at for at in range(9) if chance.random() < 0.5)
        assessment.see(pattern)
        full.see(pattern)
        segments = math.ceil(number / 20)
        assert assessment.entries <= 20 * sum(1 / segment for segment in range(1, segments + 1))
        most = max(most, assessment.entries)
    assert most < full.entries / 5


@pytest.mark.parametrize("name", ASSESSMENTS)
def test_after_a_reset_nothing_is_known(name):
    assessment = ASSESSMENTS[name](0.1, 0.05, 0)
    assessment.see((0, 1), 50)
    assessment.reset()
    assert (assessment.requests, assessment.entries, assessment.result()) == (0, 0, {})
    assessment.see((1,), 3)
    assert assessment.result() == {(1,): 1.0}


@pytest.mark.parametrize(("threshold", "error"), [(0.1, 0.1), (0.1, 0.0), (1.5, 0.1)])
def test_an_error_that_would_lose_patterns_is_refused(threshold, error):
    with pytest.raises(ValueError, match="error < threshold"):
        Csria(threshold, error)


def test_csria_finds_a_pattern_whose_first_requests_were_dropped():
    a, b, c, d = (0,), (1,), (2,), (3,)
    counted = seen(Csria(0.5, 0.25), [a, b, c, d, a, a, a, b])
    assert counted.result() == {a: 3 / 8}, "half of all requests, one of them dropped"


def test_requests_of_no_number_leave_no_pattern():
    for name in ASSESSMENTS:
        assessment = ASSESSMENTS[name](0.5, 0.1, 0)
        assessment.see((0,), 0)
        assert (assessment.entries, assessment.requests) == (0, 0)


def test_a_pattern_of_exactly_the_threshold_is_found():
    counted = after(Csria(0.1, 0.05), [((0,), 3), ((1,), 27)])
    assert counted.result() == {(0,): 0.1, (1,): 0.9}
    assert after(Csria(1.0, 0.5), [((0,), 8)]).result() == {(0,): 1.0}, "all is a threshold too"


def test_a_segment_is_no_shorter_than_the_error_allows():
    """1 / 0.3 is 3.3: a segment has four requests."""
    counted = seen(Csria(0.5, 0.3), [(0,), (1,), (2,)])
    assert counted.entries == 3
    counted.see((3,))
    assert counted.entries == 0


def test_what_a_parent_may_have_missed_is_one_less_than_the_segments():
    made = after(Cdia(0.5, 0.1), [((0, 1), 1), ((2,), 19)])._kept
    assert {pattern: (each.count, each.missed) for pattern, each in made.items()} == {
        (0,): (1, 1),
        (2,): (19, 0),
    }


@pytest.mark.parametrize(("count", "found"), [(8, {(0,): 0.4}), (7, {})])
def test_what_a_parent_may_have_missed_counts_when_it_is_made_for_the_result(count, found):
    """Of 20 requests, two segments, half must be reached: 8 and the 2 that may be missing do."""
    counted = after(Cdia(0.5, 0.1), [((0, 1), count), ((2,), 20 - count)])
    assert counted.result() == {(2,): 1 - count / 20} | found


def test_requests_that_specify_nothing_are_found_where_they_are_frequent():
    assert after(Cdia(0.5, 0.1), [((), 6), ((0,), 4)]).result() == {(): 1.0}
    assert after(Cdia(0.5, 0.1), [((), 5), ((0,), 5)]).result() == {(): 0.5, (0,): 0.5}


def test_a_rare_pattern_stays_above_any_one_that_it_would_help_and_above_no_other():
    kept = after(Cdia(0.5, 0.1), [((0,), 1), ((0, 1), 14), ((2, 3), 15)])._kept
    assert set(kept) == {(0,), (0, 1), (2, 3)}
    kept = after(Cdia(0.5, 0.1), [((1,), 1), ((0, 2), 19)])._kept
    assert set(kept) == {(), (0, 2)}
    kept = after(Cdia(0.5, 0.1), [((1, 2), 1), ((1,), 9), ((0, 1), 10)])._kept
    assert set(kept) == {(1,), (0, 1)}, "nor above one that helps it"
