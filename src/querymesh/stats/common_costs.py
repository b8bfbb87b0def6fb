"""Costs of operators that do the same work, taken together.

Probes of several states run the same code, a microsecond or less at a time. What a sample says of
each alone is mostly noise, and an order chosen by it is chosen by chance. Operators that are alike
therefore share one price, of a tuple and of each of its matches::

    cost of a tuple with f matches on average  =  price * (1 + f)

One whose own measurement is more than twice that, or less than half, does something else (it
compares texts, or searches a range) and keeps what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from querymesh.stats.profile import Profile

MOST_RATIO = 2.0
"""Costs that differ by more than this factor are not of the same work."""


def with_common_costs(profile: Profile, alike: Sequence[int]) -> Profile:
    """The profile with a common price for these operators, given by index from 1."""
    at = np.array(alike, dtype=np.int64) - 1
    if len(at) < 2 or profile.rows == 0:
        return profile
    work = 1 + profile.outcomes[:, at].mean(axis=0)
    measured = (profile.drop_us[at] + profile.pass_us[at]) / 2
    common = float(np.median(measured / work)) * work
    same = (measured <= MOST_RATIO * common) & (measured >= common / MOST_RATIO)
    drop_us, pass_us = profile.drop_us.copy(), profile.pass_us.copy()
    for costs in (drop_us, pass_us):
        costs[at] = np.where(same, common, costs[at])
    return replace(profile, drop_us=drop_us, pass_us=pass_us)
