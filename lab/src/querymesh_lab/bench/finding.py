"""One line of a benchmark: a claim, its target, the measured value and what stands behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from querymesh_lab.bench.measure import Timing

Direction = Literal["at least", "at most", "report"]


@dataclass(frozen=True)
class Finding:
    """A measured value beside its target. `report` has no target: whatever comes out, is said.

    `timed` values are ratios of times, to be trusted as far as the A/A control in `details` allows.
    """

    case: str
    claim: str
    value: float
    unit: str
    direction: Direction = "report"
    limit: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    timed: bool = False

    @property
    def met(self) -> bool:
        """Whether the value is on the right side of its target."""
        if self.limit is None or self.direction == "report":
            return True
        return (
            self.value >= self.limit if self.direction == "at least" else self.value <= self.limit
        )

    @property
    def target(self) -> str:
        """The target as people read it."""
        if self.limit is None or self.direction == "report":
            return "-"
        return f"{'≥' if self.direction == 'at least' else '≤'} {self.limit:g} {self.unit}"

    @property
    def noisy(self) -> bool:
        """Whether the A/A control is further from 1 than a timed value is from its target."""
        control = self.details.get("a_a")
        if not self.timed or control is None or not self.limit:
            return False
        return abs(self.value / self.limit - 1) < abs(float(control) - 1)

    def as_row(self, command: str) -> dict[str, Any]:
        """The line as `--json` writes it; the command says how to print it again."""
        return {
            "case": self.case,
            "claim": self.claim,
            "target": self.target,
            "value": self.value,
            "unit": self.unit,
            "met": self.met,
            "details": {**self.details, "noisy": self.noisy, "command": command},
        }


def timing_details(timing: Timing) -> dict[str, Any]:
    """What belongs beside every ratio: the control, the rounds, the median times."""
    return {
        "a_a": round(timing.a_a, 4),
        "rounds": timing.rounds,
        "median_seconds": {k: round(v, 4) for k, v in timing.median_seconds().items()},
    }
