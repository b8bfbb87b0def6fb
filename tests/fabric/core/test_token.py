import pytest

from querymesh.fabric.core.token import OUTPUT, RouteToken, token_of


def test_a_token_is_popped_operator_by_operator_and_ends_at_the_output():
    token = RouteToken((3, 2, 1))
    visited = []
    while token.top != OUTPUT:
        visited.append(token.top)
        token = token.pop()
    assert visited == [3, 2, 1]
    assert str(token) == "<>"


def test_the_uncertain_token_of_the_paper_is_written_and_updated_as_printed():
    """QM § 5.4: <2, 3|1, 4>; once 2 is done and 3 is selected, <1, 4>."""
    token = token_of(((2,), (3, 1), (4,)))
    assert str(token) == "<2, 3|1, 4>"
    assert (token.choices, token.top) == ((), 2)
    at_the_choice = token.pop()
    assert at_the_choice.choices == (3, 1)
    assert str(at_the_choice.choose(3).pop()) == "<1, 4>"
    assert str(at_the_choice.choose(1).pop()) == "<3, 4>"


def test_three_choices_stay_uncertain_until_one_is_left():
    """QM § 5.4: of <3|1|4>, 3 selected leaves <1|4>."""
    token = RouteToken(((3, 1, 4),)).choose(3).pop()
    assert str(token) == "<1|4>"
    assert str(token.choose(4).pop()) == "<1>"


def test_an_open_choice_has_no_next_operator_and_only_its_own_can_be_chosen():
    token = RouteToken(((3, 1), 4))
    with pytest.raises(LookupError, match=r"<3\|1, 4> leaves open"):
        _ = token.top
    with pytest.raises(LookupError, match="4 is not among the choices"):
        token.choose(4)
