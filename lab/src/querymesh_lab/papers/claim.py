"""What a paper claims, what came out here, and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

Sense = Literal["more", "less", "at least", "at most"]
Verdict = Literal["exceeds", "direction", "contradicts", "not yet"]


@dataclass(frozen=True)
class Claim:
    """One claim of a figure.

    "more" and "less" say to which side of `neutral` the paper's value lies: a rate of 1.44 × the
    rival's is more than 1. "at least" and "at most" are bounds, kept or not. `paper_value` is None
    where the paper draws a trend and prints no number. `whose` is "project" for a target of ours.
    """

    paper: str
    figure: str
    claim: str
    paper_value: float | None
    unit: str = "×"
    sense: Sense = "more"
    neutral: float = 1.0
    whose: Literal["paper", "project"] = "paper"


@dataclass(frozen=True)
class Result:
    """A claim with our value; None where the rival is not there yet.

    `details` are what stands behind it. `a_a`, where given, is the ratio of one contender to
    itself: a value nearer to `neutral` than that is `noisy`.
    """

    claim: Claim
    our_value: float | None
    a_a: float | None = None
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """Whether the paper's claim holds here."""
        return judge(self.claim, self.our_value)

    @property
    def noisy(self) -> bool:
        """Whether the value could be the machine's noise."""
        if self.a_a is None or self.our_value is None:
            return False
        compared = self.claim.neutral
        if self.claim.sense in ("at least", "at most") and self.claim.paper_value:
            compared = self.claim.paper_value
        if self.claim.unit == "%":
            return abs(self.our_value - compared) < 100 * abs(self.a_a - 1)
        return abs(self.our_value / compared - 1) < abs(self.a_a - 1)

    def as_row(self, command: str) -> dict[str, Any]:
        """The line as `--json` writes it; the command says how to print it again."""
        claim = self.claim
        return {
            "paper": claim.paper,
            "figure": claim.figure,
            "claim": claim.claim,
            "paper_value": claim.paper_value,
            "our_value": self.our_value,
            "unit": claim.unit,
            "verdict": self.verdict,
            "whose": claim.whose,
            "a_a": self.a_a,
            "noisy": self.noisy,
            "note": self.note,
            "details": {**self.details, "command": command},
        }


def judge(claim: Claim, ours: float | None) -> Verdict:
    """`exceeds` at the paper's size or beyond, `direction` at less, `contradicts` otherwise.

    A bound is kept (`exceeds`) or not (`contradicts`). Where the paper prints no number, the same
    direction is all that can be said.

    >>> rate = Claim("qm", "10a", "output rate, QM over SP", 1.44)
    >>> judge(rate, 1.5), judge(rate, 1.2), judge(rate, 0.9), judge(rate, None)
    ('exceeds', 'direction', 'contradicts', 'not yet')
    """
    if ours is None:
        return "not yet"
    if math.isnan(ours):
        return "contradicts"
    sign = 1.0 if claim.sense in ("more", "at least") else -1.0
    paper = claim.paper_value
    if paper is not None and sign * (ours - paper) >= 0:
        return "exceeds"
    if claim.sense in ("at least", "at most"):
        return "contradicts"
    return "direction" if sign * (ours - claim.neutral) > 0 else "contradicts"
