"""Estimates for the next round from those before, OM § 4.3: decayed means over the last d rounds.

    estimate = Σ F(R - r) · G(r) / Σ G(r)     r = 0 ... d - 1,  G(r) = e^(-a·r),  R the last round

The paper sums to d and so over d + 1 rounds; its text and Algorithm 2 keep d, as here. It gives
neither a nor d. `stats.decay` forgets in the same way but never altogether: here what is older than
d rounds counts nothing, so that a = 0 is the plain mean of d rounds.

What was never observed is not known. A value can be assumed for it, and `assumptions` says which
were, in words.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import overload

import numpy as np
import numpy.typing as npt

from querymesh.arrays import Ints
from querymesh.errors import QueryMeshError, TrainingError

DEFAULT_ROUNDS = 10
DEFAULT_DECAY = 0.5
"""The round before counts 0.6 of the last one, the tenth 0.01."""


@dataclass
class RoundMean:
    """The decayed mean of the last `rounds` observations.

    >>> rate = RoundMean(rounds=2, decay=math.log(2))
    >>> for observed in (900.0, 100.0, 400.0):
    ...     rate.observe(observed)
    >>> rate.mean
    300.0
    """

    rounds: int = DEFAULT_ROUNDS
    decay: float = DEFAULT_DECAY
    _last: deque[float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise QueryMeshError(f"a mean is over 1 round at least, not {self.rounds}")
        if not (math.isfinite(self.decay) and self.decay >= 0):
            raise QueryMeshError(f"decay must be a finite number from 0 on, not {self.decay}")
        self._last = deque(maxlen=self.rounds)

    def observe(self, value: float) -> None:
        """Add what a round has shown."""
        if not (math.isfinite(value) and value >= 0):
            raise TrainingError(f"a rate or selectivity is finite and from 0 on, not {value}")
        self._last.append(value)

    @property
    def observations(self) -> int:
        """How many rounds this is the mean of."""
        return len(self._last)

    @property
    def mean(self) -> float:
        """The estimate for the next round; NaN before the first."""
        if not self._last:
            return math.nan
        weights = np.exp(-self.decay * np.arange(len(self._last)))
        newest_first = np.fromiter(reversed(self._last), np.float64)
        mean = float(newest_first @ weights / weights.sum())
        return min(max(mean, min(self._last)), max(self._last))  # but for rounding it is


class RoundEstimates:
    """Decayed means by name, such as the arrival rates of streams.

    `what` says in errors what they are. `assumed` are values for names not observed yet.
    """

    def __init__(
        self,
        what: str,
        assumed: Mapping[str, float] | None = None,
        rounds: int = DEFAULT_ROUNDS,
        decay: float = DEFAULT_DECAY,
    ) -> None:
        RoundMean(rounds, decay)  # which says at once what is wrong with them
        self._what = what
        self._assumed = dict(assumed or {})
        self._rounds, self._decay = rounds, decay
        self._means: dict[str, RoundMean] = {}
        for name, value in self._assumed.items():
            if not (math.isfinite(value) and value >= 0):
                raise TrainingError(
                    f"the {what} assumed for {name} must be finite and from 0 on, not {value}"
                )

    def observe(self, name: str, value: float | None) -> None:
        """Add what a round has shown of a name; None if nothing, as of a join without tuples."""
        if value is not None:
            mean = self._means.setdefault(name, RoundMean(self._rounds, self._decay))
            mean.observe(value)

    @overload
    def get(self, name: str) -> float | None: ...
    @overload
    def get(self, name: str, otherwise: float) -> float: ...
    def get(self, name: str, otherwise: float | None = None) -> float | None:
        """The estimate for the next round if any has shown it, else this."""
        return self._means[name].mean if name in self._means else otherwise

    def __getitem__(self, name: str) -> float:
        """The estimate for the next round, else what was assumed."""
        if name in self._means:
            return self._means[name].mean
        if name in self._assumed:
            return self._assumed[name]
        raise TrainingError(
            f"the {self._what} of {name} is not known: no round has shown it, and no value was "
            f"assumed. Pass assumed={{{name!r}: ...}}, or observe a round first"
        )

    @property
    def assumptions(self) -> list[str]:
        """What is still assumed rather than observed, a line each."""
        return [
            f"{self._what} of {name}: not observed yet, assumed to be {value:g}"
            for name, value in self._assumed.items()
            if name not in self._means
        ]


def round_numbers(timestamps_s: npt.ArrayLike, window_s: float) -> Ints:
    """The round that reads each tuple, from 1 on (§ 3.1): round j reads those of ((j-1)·W, j·W].

    >>> round_numbers([1, 20, 25, 40, 50], window_s=20).tolist()
    [1, 1, 2, 2, 3]
    """
    if not (math.isfinite(window_s) and window_s > 0):
        raise QueryMeshError(f"a window lasts longer than 0 seconds, not {window_s}")
    times = np.asarray(timestamps_s, np.float64)
    return np.maximum(np.ceil(times / window_s), 1).astype(np.int64)
