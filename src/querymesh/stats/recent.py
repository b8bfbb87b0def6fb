"""The profile of a running stream: a bounded sample in which every new row replaces an old one.

Which one is left to chance, so a row's hope of being there halves with every `most_rows` · ln 2 new
ones: a reservoir with exponential decay (Aggarwal, "On biased reservoir sampling in the presence of
stream evolution", VLDB 2006). What is in it is a plain profile, and a mesh is trained on it as on
any other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats
from querymesh.stats.profile import Profile


class RecentProfile:
    """At most `most_rows` profiled rows, the newest for certain and the older the rarer."""

    def __init__(self, most_rows: int, seed: int = 0) -> None:
        self._most_rows = most_rows
        self._rng = np.random.default_rng(seed)
        self._profile: Profile | None = None
        self.added = 0

    @property
    def rows(self) -> int:
        """How many rows there are now."""
        return self._profile.rows if self._profile is not None else 0

    def add(self, new: Profile) -> None:
        """Take in profiled rows; costs are left as they are."""
        self.added += new.rows
        if new.rows > self._most_rows:
            new = new.take(np.sort(self._rng.permutation(new.rows)[: self._most_rows]))
        old = self._profile
        if old is None:
            self._profile = new
            return
        stay = min(old.rows, self._most_rows - new.rows)
        if stay < old.rows:
            old = old.take(np.sort(self._rng.permutation(old.rows)[:stay]))
        self._profile = replace(
            old,
            sample=pa.concat_tables([old.sample, new.sample]).combine_chunks(),
            outcomes=np.concatenate([old.outcomes, new.outcomes]),
        )

    def without_columns(self, names: Collection[str]) -> None:
        """Leave these columns out of the rows that are there: new ones come without."""
        if self._profile is not None:
            sample = self._profile.sample
            kept = sample.select([name for name in sample.column_names if name not in names])
            self._profile = replace(self._profile, sample=kept)

    def forget(self) -> None:
        """Drop all rows: they tell of data that comes no more."""
        self._profile = None
        self.added = 0

    def with_costs(self, drop_us: Floats, pass_us: Floats) -> Profile:
        """The profile, with these costs; there must be rows."""
        if self._profile is None:
            raise ValueError("no rows have been profiled yet")
        return replace(self._profile, drop_us=drop_us, pass_us=pass_us)
