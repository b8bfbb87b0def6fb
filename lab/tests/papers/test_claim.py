import math

import pytest

from querymesh_lab.papers.claim import Claim, Result, judge


def claim(paper_value, sense="more", neutral=1.0):
    return Claim("qm", "10a", "a claim", paper_value, sense=sense, neutral=neutral)


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(1.44, "exceeds"), (2.0, "exceeds"), (1.43, "direction"), (1.0, "contradicts"),
     (0.8, "contradicts"), (None, "not yet"), (math.nan, "contradicts")],
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
    row = Result(claim(1.44), 1.5, a_a=0.97, note="n", details={"rows": 3}).as_row("the command")
    promised = ["paper", "figure", "claim", "paper_value", "our_value", "unit", "verdict"]
    assert list(row)[: len(promised)] == promised
    assert row["verdict"] == "exceeds"
    assert row["details"] == {"rows": 3, "command": "the command"}
    assert not row["noisy"]


def test_a_value_nearer_to_even_than_the_control_is_noisy():
    assert Result(claim(1.44), 1.02, a_a=0.95).noisy
    assert not Result(claim(1.44), 1.02, a_a=0.99).noisy
    assert Result(claim(0.978, "at least"), 0.98, a_a=1.01).noisy
    assert not Result(claim(1.44), None, a_a=0.5).noisy
