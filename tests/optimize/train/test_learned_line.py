import logging

import meshes
from querymesh.optimize.train.learned_line import tell_join_learned, tell_learned


def test_a_training_leaves_one_line_in_the_log(caplog):
    with caplog.at_level(logging.INFO, "querymesh"):
        tell_learned(2000, 1.234, "it saves half")
        tell_learned(24, 0.5, "it saves half", calls=4800)
    assert caplog.messages == [
        "learned from 2,000 rows in 1.2 s: it saves half",
        "learned from 24 rows in 0.5 s (4,800 calls of Python functions): it saves half",
    ]


def test_a_join_is_told_in_one_line_for_all_streams(caplog):
    with caplog.at_level(logging.INFO, "querymesh"):
        tell_join_learned({"s": meshes.three_kinds(), "n": meshes.untrained()}, 2.0)
    (line,) = caplog.messages
    assert line.startswith("learned from 2,000 rows in 2.0 s: s: 3 kinds of tuples")
    assert "; n: nothing is known yet" in line
