"""A comparison of ways to run one query, measured so that a noisy machine cannot decide it.

The contenders run in turn, round by round (A B C A′, A B C A′, …). What counts is the ratio within
a round, and of the rounds the median; A′ is the first contender once more, and the ratio of A′ to A
is what this machine makes of no difference at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to run the query: its time in each round, its evaluations, and what came out.

    `evaluations` counts the rows operators were run on; None where the engine does not tell.
    `fingerprint` is the same for equal multisets of result rows.
    """

    name: str
    how: str
    seconds: tuple[float, ...]
    rows_out: int
    fingerprint: str
    evaluations: int | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Contenders over the same `rows`. The first is the one the others are measured against.

    `evaluations_of` says what the contenders' evaluations count.
    """

    rows: int
    contenders: tuple[Contender, ...]
    control_seconds: tuple[float, ...]
    evaluations_of: str = "all operators"

    @property
    def first(self) -> Contender:
        """The contender all ratios refer to."""
        return self.contenders[0]

    def ratio(self, contender: Contender) -> float:
        """How many times longer than the first it took: the median over the rounds."""
        return median_ratio(contender.seconds, self.first.seconds)

    @property
    def control(self) -> float:
        """The first contender against itself. Ratios nearer to 1 than this one say nothing."""
        return median_ratio(self.control_seconds, self.first.seconds)

    @property
    def same_results(self) -> bool:
        """Whether all contenders gave the same multiset of rows."""
        return len({(c.rows_out, c.fingerprint) for c in self.contenders}) == 1

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON has them."""
        return {
            "rows": self.rows,
            "rounds": len(self.first.seconds),
            "same_results": self.same_results,
            "control_ratio": self.control,
            "evaluations_of": self.evaluations_of,
            "contenders": [
                {
                    "name": c.name,
                    "how": c.how,
                    "median_seconds": median(c.seconds),
                    "ratio_to_first": self.ratio(c),
                    "evaluations": c.evaluations,
                    "evaluations_per_row": per_row(c.evaluations, self.rows),
                    "rows_out": c.rows_out,
                }
                for c in self.contenders
            ],
        }


def median_ratio(above: Iterable[float], below: Iterable[float]) -> float:
    """The median of the ratios of two series, pair by pair."""
    return median(a / b for a, b in zip(above, below, strict=True))


def per_row(evaluations: int | None, rows: int) -> float | None:
    """Evaluations a row, where they are known."""
    return None if evaluations is None or not rows else evaluations / rows
