"""Patterns by what they begin with: dearer forms must cost more."""

import pytest

from querymesh.cost.regex_cost import alternatives, pattern_cost


def test_forms_are_ranked_as_java_was_seen_to_rank_them():
    ranked = ["^/index", "index", "(?i)index", r"\d+x", "(one|two|three|four)", r"(\w+)@x", ".*x"]
    costs = [pattern_cost(pattern).us(200) for pattern in ranked]
    assert costs == sorted(costs)
    assert len(set(costs)) == len(costs)


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("a|b", ["a", "b"]),
        (r"a\|b", [r"a\|b"]),
        ("(a|b)c", ["(a|b)c"]),
        ("[a|b]", ["[a|b]"]),
        (r"[\]|]|x", [r"[\]|]", "x"]),
        ("", [""]),
    ],
)
def test_alternatives_are_those_outside_of_groups_and_classes(pattern, parts):
    assert alternatives(pattern) == parts


def test_each_alternative_costs():
    two, four = (pattern_cost(pattern).us(100) for pattern in ("(aa|bb)", "aa|bb|cc|dd"))
    assert four == pytest.approx(2 * two)
    assert pattern_cost("(?:aa|bb)").us(100) == pytest.approx(two)


def test_a_longer_text_is_found_faster():
    three, five, ten = (pattern_cost("abcdefghij"[:letters]).us(100) for letters in (3, 5, 10))
    assert three > five > ten
    assert pattern_cost("abcdefgh[0-9]").us(100) == pattern_cost("abcdefgh").us(100)
    assert pattern_cost(r"\.php\?").us(100) == pattern_cost("xphpx").us(100)
    assert pattern_cost("abcd+").us(100) == pattern_cost("abc").us(100), "the last is not of it"
    assert pattern_cost("(?i)abcdefgh").us(100) > three


def test_an_anchored_pattern_does_not_grow_with_the_text():
    assert pattern_cost("^(a|b)").us(1_000) == 0
    assert pattern_cost(r"\Aabc").us(1_000) == 0
    assert pattern_cost("^.*abc").us(1_000) > 0


def test_a_wild_beginning_grows_with_the_square_and_an_inner_one_is_unsure():
    wild = pattern_cost(".*passwd")
    assert wild.us(400) > 3.5 * wild.us(200)
    assert pattern_cost("a.*b.*c").how_sure < 0.5 < pattern_cost("abc").how_sure


@pytest.mark.parametrize("pattern", ["(", "[", "\\", "(?i", "|", "()", "(?=a)b", "a{", "*"])
def test_a_pattern_that_is_odd_or_wrong_has_a_price(pattern):
    assert pattern_cost(pattern).us(10) >= 0
