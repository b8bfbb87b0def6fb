"""How far Content-Learns goes: the bounds of what it tunes, and of the time it spends."""

from __future__ import annotations

LEAST_PROBABILITY = 0.005
MOST_SAMPLE = 600
MOST_PARTITIONS = 96
PATIENCE = 10
"""A turn ends after so many times as long as it should take: hardly a tuple gets there."""

LEARNING_SHARE = 0.05
"""Where trials go by cost, finding attributes may take so much of what operators and routing take:
between two turns it rests until it has earned its time."""

LONGEST_REST = 64
"""A rest is at most so many times as long as a sample takes: what changes is found in the end.

Where operators cost next to nothing that is many tuples, but a short time: earning takes 20 times
what an evaluation took."""

COMPARABLE = 1.25
"""Tuples before and in a trial are not compared if a probed window has grown by more: those that
came later find more, whatever their order. What was found then stays."""

CLEAR = 3.0
"""An operator whose merit is that many times better, or worse, than all others' keeps its place."""

KEPT_EVENTS = 500
STORED_EVENTS = 100
"""The last events, so many of which are stored with the state."""

MOST_AT_ONCE, EARNING_ROWS = 1 << 20, 256
"""Tuples that are decided on one by one before it is asked whether a turn is over, at most; and in
a rest that its work may end."""
