import math

import pytest

from querymesh_lab.papers.claim import Claim, Result, judge


def claim(paper_value, sense="more", neutral=1.0):
    return Claim("qm", "10a", "a claim", paper_value, sense=sense, neutral=neutral)


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(1.44, "exceeds"), (2.0, "exceeds"), (1.43, "direction"), (1.0, "contradicts"),
     (0.8, "contradicts"), (None, "not yet"), (math.nan, "contradicts"), (2.98, "exceeds"),
     (3.0, "overshoots")],
)  # fmt: skip
def test_a_gain_is_judged_against_the_papers_and_against_none(ours, verdict):
    assert judge(claim(1.44), ours) == verdict


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(0.5, "exceeds"), (0.69, "exceeds"), (0.9, "direction"), (1.0, "contradicts"),
     (1.4, "contradicts")],
)  # fmt: skip
def test_a_ratio_the_other_way_round_is_judged_the_other_way_round(ours, verdict):
    assert judge(claim(0.69, "less"), ours) == verdict


@pytest.mark.parametrize(
    ("sense", "ours", "verdict"),
    [("at least", 0.978, "exceeds"), ("at least", 1.2, "exceeds"),
     ("at least", 0.97, "contradicts"), ("at most", 0.9, "exceeds"),
     ("at most", 0.978, "exceeds"), ("at most", 1.0, "contradicts")],
)  # fmt: skip
def test_a_bound_is_kept_or_not(sense, ours, verdict):
    assert judge(claim(0.978, sense), ours) == verdict


def test_where_the_paper_prints_no_number_the_direction_is_all_there_is_to_say():
    assert judge(claim(None), 5.0) == "direction"
    assert judge(claim(None), 0.5) == "contradicts"
    assert judge(claim(None, neutral=0.0), 0.5) == "direction"


def test_a_row_has_the_fields_that_were_promised_and_names_its_command():
    result = Result(claim(1.44), 1.5, a_a=0.99, note="n", details={"rows": 3}, fitted="the matches")
    row = result.as_row("the command")
    promised = ["paper", "figure", "claim", "paper_value", "our_value", "unit", "verdict"]
    assert list(row)[: len(promised)] == promised
    assert row["verdict"] == "exceeds"
    assert row["details"] == {"rows": 3, "command": "the command"}
    assert row["fitted"] == "the matches"


@pytest.mark.parametrize(
    ("ours", "a_a", "verdict"),
    [(1.02, 0.95, "undecided"), (0.98, 1.05, "undecided"), (1.02, 0.99, "direction"),
     (0.9, 1.05, "contradicts"), (1.5, 0.95, "direction"), (1.55, 0.95, "exceeds")],
)  # fmt: skip
def test_a_time_must_be_further_from_even_and_from_the_papers_than_the_control(ours, a_a, verdict):
    assert Result(claim(1.44), ours, a_a=a_a).verdict == verdict


@pytest.mark.parametrize(
    ("sense", "ours", "verdict"),
    [("at least", 0.98, "undecided"), ("at least", 0.97, "undecided"), ("at least", 1.0, "exceeds"),
     ("at most", 1.0, "contradicts"), ("at most", 0.97, "undecided")],
)  # fmt: skip
def test_a_time_no_further_from_a_bound_than_the_control_is_undecided(sense, ours, verdict):
    assert Result(claim(0.978, sense), ours, a_a=1.01).verdict == verdict


def test_the_control_of_percentages_is_in_points():
    saved = Claim("cbr", "6", "less time", 20.0, "%", "more", 0.0)
    assert [Result(saved, ours, a_a=1.05).verdict for ours in (4.0, -4.0, 6.0, 24.0, 26.0)] == [
        "undecided", "undecided", "direction", "direction", "exceeds",
    ]  # fmt: skip


def test_a_count_needs_no_control_and_a_mean_of_counts_has_its_interval():
    saved = Claim("cbr", "6", "fewer calls", 20.0, "%", "more", 0.0)
    assert Result(saved, 20.1).verdict == "exceeds"
    assert Result(saved, 20.1, half_interval=0.5).verdict == "direction"
    assert Result(saved, 0.4, half_interval=0.5).verdict == "undecided"
    assert Result(saved, 20.6, half_interval=0.5).verdict == "exceeds"


def test_a_percentage_overshoots_by_its_size_and_a_bound_never_does():
    saved = Claim("cbr", "6", "fewer calls", 20.0, "%", "more", 0.0)
    assert (judge(saved, 60.0), judge(saved, 61.0)) == ("exceeds", "overshoots")
    assert judge(claim(0.978, "at least"), 50.0) == "exceeds"
    assert judge(claim(0.5, "less"), 0.1) == "overshoots"
