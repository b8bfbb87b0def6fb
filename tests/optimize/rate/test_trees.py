import math

import pytest

from querymesh.errors import QueryError
from querymesh.optimize.rate.stream_query import JoinPredicate, RateQuery, Selection
from querymesh.optimize.rate.trees import (
    Join,
    Project,
    Select,
    Source,
    expected_total,
    sources,
    text,
    window_s,
    with_assumed_rates,
)

A, B, C = Source("A", 10, 100), Source("B", 20, 50, window_s=5), Source("C", 5, 1000, window_s=8)


def test_a_tree_is_written_as_in_the_paper():
    tree = Project(Select(Join(Join(A, Select(B, 0.5)), C), 0.1, name="σ2"))
    assert text(tree) == "π(σ2((A ⋈ σ(B)) ⋈ C))"
    assert text(Join(A, Join(B, C))) == "A ⋈ (B ⋈ C)"


def test_a_tree_knows_its_streams_and_the_shortest_of_their_windows():
    tree = Join(Project(A), Select(Join(B, C), 0.5))
    assert [source.name for source in sources(tree)] == ["A", "B", "C"]
    assert window_s(tree) == window_s(B) == 5
    assert window_s(A) == math.inf


def test_the_expected_total_is_sizes_times_selectivities():
    tree = Join(Select(A, 0.5), Project(Join(B, C, 0.01)), 0.2)
    assert expected_total(tree) == pytest.approx(100 * 0.5 * 50 * 1000 * 0.01 * 0.2)


def test_nothing_of_an_endless_stream_is_nothing():
    assert expected_total(Join(Source("S", 1), A, 0.5)) == math.inf
    assert expected_total(Select(Source("S", 1), 0.0)) == 0


def test_a_stream_ends_when_its_rows_have_come():
    assert A.end_s == 10
    assert Source("S", 1).end_s == math.inf


def test_an_unknown_rate_is_an_error_until_one_is_assumed():
    unknown = Source("D", size=7)
    with pytest.raises(QueryError, match=r"rate of stream D is not known.*with_assumed_rates"):
        unknown.end_s  # noqa: B018
    streams, notes = with_assumed_rates([A, unknown, B])
    assert [stream.rate for stream in streams] == [10, 15, 20]
    assert streams[1].size == 7
    assert notes == (
        "the rate of stream D is not known: assumed 15 rows a second, the mean of the known rates",
    )


def test_if_no_rate_is_known_all_are_one():
    streams, notes = with_assumed_rates([Source("A"), Source("B")])
    assert [stream.rate for stream in streams] == [1, 1]
    assert len(notes) == 2
    assert "no rate is known" in notes[0]
    assert with_assumed_rates([A, B]) == ((A, B), ())


@pytest.mark.parametrize("rate", [0, -1, math.nan, math.inf])
def test_a_rate_is_above_zero(rate):
    with pytest.raises(QueryError, match=f"stream A has {rate} rows a second"):
        Source("A", rate)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Source("A", 1, size=-1),
        lambda: Source("A", 1, window_s=-1),
        lambda: Source("A", 1, row_bytes=math.nan),
        lambda: Select(A, 1.5),
        lambda: Select(A, 0.5, cost_s=-1),
        lambda: Project(A, cost_s=-1),
        lambda: Join(A, B, -0.5),
        lambda: JoinPredicate("A", "B", 7),
        lambda: JoinPredicate("A", "B", 0.1, handling_s=-1),
        lambda: Selection("A", 0.1, cost_s=-1),
        lambda: RateQuery(()),
        lambda: RateQuery((A, A)),
    ],
)
def test_what_has_no_meaning_is_refused_when_it_is_built(build):
    with pytest.raises(QueryError):
        build()


def test_an_unknown_stream_is_named():
    with pytest.raises(QueryError, match=r"there is no stream X.*Known: A, B"):
        RateQuery((A, B), (JoinPredicate("A", "X", 0.1),))
    with pytest.raises(QueryError, match="there is no stream X"):
        RateQuery((A, B), (), (Selection("X", 0.1),))
