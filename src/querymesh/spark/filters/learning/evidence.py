"""What a decision was made by."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from querymesh.optimize.placement.costs import Costs
from querymesh.stats.profile import Profile


@dataclass(frozen=True)
class Evidence:
    """What a decision was made by: the profile, what operators cost on it, and the whole sample,
    with the columns that Catalyst computed."""

    profile: Profile
    costs: Costs
    sample: pa.Table
