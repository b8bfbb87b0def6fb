"""Policy `chart`: join orders by output rate and memory, weighed against each other (OM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from querymesh.cost.utility import Weights
from querymesh.optimize.chart.chart_planner import ChartPlanner
from querymesh.optimize.chart.charting import Charting, checked_weights, weights_from
from querymesh.options import check_kind
from querymesh.policies.planned import BUDGET, SAMPLE_ROWS, Planned
from querymesh.query.join import JoinQuery


@dataclass(frozen=True, kw_only=True)
class Chart(Planned):
    """Plans joins of windowed streams by charts worked out beforehand (OM § 4.4).

    Options, beside `sample_rows`, `budget` and `seed` of all planning policies:

    - `weights`: what a high output rate and what little memory are worth, such as (0.4, 0.6)
    - `charting`: every choice of OM § 4 at once; `weights` go before it
    """

    name: ClassVar[str] = "chart"
    own_options: ClassVar[tuple[str, ...]] = ("weights",)

    weights: Weights | Sequence[float] | None = None
    charting: Charting = field(default_factory=Charting)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_kind("charting", self.charting, Charting, "querymesh.policies")
        if self.weights is not None:
            chosen = replace(self.charting, weights=checked_weights(self.weights))
            object.__setattr__(self, "charting", chosen)

    @classmethod
    def paper(
        cls,
        *,
        weights: Weights | Sequence[float] | None = None,
        sample_rows: int = SAMPLE_ROWS,
        budget: float = BUDGET,
        seed: int = 0,
    ) -> Self:
        """With OM's own settings: ten partitions of each dimension, § 4.1's model as printed."""
        charting = Charting(k=10, model="paper")
        return cls(
            charting=charting, weights=weights, sample_rows=sample_rows, budget=budget, seed=seed
        )

    @classmethod
    def read_own(cls, own: Mapping[str, str]) -> dict[str, Any]:
        """The weights, from text such as 0.4,0.6."""
        return {name: weights_from(text) for name, text in own.items()}

    def planner(
        self, join: JoinQuery, *, at_once: bool, sizes: dict[str, int] | None
    ) -> ChartPlanner:
        """A planner that builds its charts when it has seen enough rounds; a sample is one, and all
        there is to be observed before the run."""
        return ChartPlanner(join, replace(self.charting, settle=1) if at_once else self.charting)
