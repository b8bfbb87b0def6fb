"""How policy "chart" chooses: what `qm.run(..., weights=..., charting=...)` means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real

from querymesh.cost.plan_tree import PlanTree
from querymesh.cost.utility import (
    DEFAULT_WEIGHTS,
    Costs,
    Statistics,
    Weights,
    plan_costs,
    sustained_costs,
)
from querymesh.errors import OptionError, did_you_mean
from querymesh.optimize.chart.chart import MOST_REGIONS, checked_count
from querymesh.stats.histogram import DEFAULT_THRESHOLD
from querymesh.stats.round_estimates import DEFAULT_DECAY, DEFAULT_ROUNDS, RoundMean

MODELS: Mapping[str, Callable[[PlanTree, Statistics], Costs]] = {
    "sustained": sustained_costs,
    "paper": plan_costs,
}

EXAMPLE = "such as weights=(0.4, 0.6)"


@dataclass(frozen=True)
class Charting:
    """Settings of the policy `chart` (OM).

    - `weights`: w_r and w_m, what a high output rate and what little memory are worth (§ 3.2)
    - `k`: partitions of each dimension of a chart; the paper has 10, and finds that from 40 on more
      of them help no more (§ 5.2), so 40 here
    - `adaptive`: split regions only along the borders between plans; `k` are then the partitions of
      the finest
    - `rounds`, `decay`: d and a of § 4.3, over how many rounds rates and selectivities are averaged
      and how fast they forget
    - `threshold`: by which part of itself a join selectivity must be off to be estimated anew
    - `most_regions`: regions that a chart holds in memory; of a chart with more, those visited
    - `settle`: rounds that are only observed, before charts are built
    - `head_room`: a chart reaches from 0 to so many times the highest rate seen when it is built
    - `model`: "sustained", or "paper" for § 4.1 as printed, where a join's results are by the
      second of work and not of time
    - `patience`: rounds that rates must stay beyond a chart, or in its lowest corner, until it is
      built again for where they are
    """

    weights: Weights | Sequence[float] = field(default=DEFAULT_WEIGHTS)
    k: int = 40
    adaptive: bool = False
    rounds: int = DEFAULT_ROUNDS
    decay: float = DEFAULT_DECAY
    threshold: float = DEFAULT_THRESHOLD
    most_regions: int = MOST_REGIONS
    settle: int = 2
    head_room: float = 2.0
    model: str = "sustained"
    patience: int = 3

    def __post_init__(self) -> None:
        checked_weights(self.weights)
        checked_count("k, the partitions of a dimension,", self.k)
        for name in ("most_regions", "settle", "patience", "rounds"):
            checked_count(f"Charting: {name}", getattr(self, name))
        RoundMean(self.rounds, self.decay)
        if self.model not in MODELS:
            raise OptionError(
                f"Charting(model={self.model!r}): {did_you_mean(str(self.model), MODELS)}"
            )
        if not (math.isfinite(self.threshold) and self.threshold >= 0):
            raise OptionError(
                f"Charting(threshold={self.threshold}): give a finite number from 0 on"
            )
        if not (math.isfinite(self.head_room) and self.head_room > 1):
            raise OptionError(
                f"Charting(head_room={self.head_room}): a chart must reach further than what was "
                "seen, so give more than 1"
            )

    @property
    def w(self) -> Weights:
        """The weights as `Weights`, however they were given."""
        return checked_weights(self.weights)


def checked_weights(given: object) -> Weights:
    """Weights from `Weights` or two numbers.

    >>> checked_weights((0.4, 0.6))
    Weights(rate=0.4, memory=0.6)
    """
    if isinstance(given, Weights):
        return given
    two = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    if len(two) != 2 or not all(isinstance(w, Real) and not isinstance(w, bool) for w in two):
        raise OptionError(
            "weights are two numbers, what a high output rate and what little memory are worth, "
            f"{EXAMPLE}, not {given!r}"
        )
    return Weights(float(two[0]), float(two[1]))


def weights_from(text: str) -> Weights:
    """Weights from text, as the command line has them.

    >>> weights_from("0.4, 0.6")
    Weights(rate=0.4, memory=0.6)
    """
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError as problem:
        raise OptionError(
            f"weights are two numbers with a comma between them, as 0.4,0.6, not {text!r}"
        ) from problem
    return checked_weights(numbers)
