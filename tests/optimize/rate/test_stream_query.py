import pytest

from querymesh.cost.plan_tree import Project, Select, Source
from querymesh.errors import QueryError
from querymesh.optimize.rate.stream_query import (
    JoinPredicate,
    Projection,
    RateQuery,
    Selection,
    with_assumed_rates,
)

A, B = Source("A", 10, 100), Source("B", 20, 50, window_s=5)


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


@pytest.mark.parametrize(
    "build",
    [
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


def test_steps_are_free_if_nothing_else_is_said_and_stand_on_top_of_a_plan():
    assert Selection("A", 0.5).above(A) == Select(A, 0.5, 0.0, "σ")
    assert Projection("A").above(A) == Project(A, 0.0, "π")
    assert Projection(cost_s=0.1, name="π2").above(A) == Project(A, 0.1, "π2")


def test_an_unknown_stream_is_named():
    with pytest.raises(QueryError, match=r"there is no stream X.*Known: A, B"):
        RateQuery((A, B), (JoinPredicate("A", "X", 0.1),))
    with pytest.raises(QueryError, match="there is no stream X"):
        RateQuery((A, B), (), (Selection("X", 0.1),))
