"""The options of indices: what they are unless told, and what is refused."""

import pytest

from querymesh.errors import OptionError
from querymesh.index.store.configuration import MOST_BITS
from querymesh.index.tune.indexing import Indexing
from querymesh.index.tune.kinds import PAPER


def test_unless_told_states_are_looked_at_after_thousands_of_requests_and_follow_them():
    assert Indexing() == Indexing(
        bits=None,
        budget=None,
        hashes=None,
        adaptive=True,
        first=5_000,
        assessment="sria",
        threshold=0.01,
        error=0.005,
        schedule="continuous",
        window=60_000,
        every=100_000,
        memory=0.5,
        worth=0.05,
        steps=5,
        visits=True,
        migration="all",
        seed=0,
    )


def test_the_paper_s_numbers_are_those_of_its_section_9():
    assert (PAPER.threshold, PAPER.error) == (0.1, 0.05)
    assert (PAPER.window, PAPER.every) == (60_000, 100_000)
    assert (PAPER.worth, PAPER.memory) == (0.0, 0.0), "the paper forgets, and takes any saving"


@pytest.mark.parametrize(
    "allowed",
    [
        {"worth": 0.0, "memory": 0.0},
        {"worth": 0.999, "memory": 0.999},
        {"first": 1, "window": 1, "every": 1, "steps": 1},
        {"threshold": 0.2, "error": 0.2},
        {"threshold": 0.999, "error": 0.999},
        {"bits": 0, "budget": 0, "hashes": 0},
        {"bits": MOST_BITS},
    ],
)
def test_the_ends_of_what_is_allowed_are_allowed(allowed):
    assert Indexing(**allowed) == Indexing(**allowed)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"worth": 1.0}, r"Indexing\(worth=1\.0\): a share from 0 to below 1"),
        ({"worth": -0.01}, r"Indexing\(worth=-0\.01\): a share"),
        ({"memory": 1.0}, r"Indexing\(memory=1\.0\): a share"),
        ({"memory": -0.5}, r"Indexing\(memory=-0\.5\): a share"),
        ({"first": 0}, r"Indexing\(first=0\): give at least 1"),
        ({"every": 0}, r"Indexing\(every=0\): give at least 1"),
        ({"steps": 0}, r"Indexing\(steps=0\): give at least 1"),
        ({"error": 0.0}, "the error must lie above 0"),
        ({"error": -0.5}, "the error must lie above 0"),
        ({"error": 0.5, "threshold": 1.0}, "the threshold between it and 1"),
        ({"error": 0.5, "threshold": 0.49}, "the threshold between it and 1"),
        ({"bits": -1}, r"Indexing\(bits=-1\): a state has 0 to 20 bits"),
        ({"bits": MOST_BITS + 1}, r"Indexing\(bits=21\): a state has 0 to 20 bits"),
    ],
)
def test_what_lies_beyond_them_is_refused(wrong, said):
    with pytest.raises(OptionError, match=said):
        Indexing(**wrong)
