"""What a paper claims, what came out here, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Sense = Literal["more", "less", "at least", "at most"]
Verdict = Literal["exceeds", "overshoots", "direction", "undecided", "contradicts", "not yet"]

Margin = Callable[[float], float]
"""How near to a mark a value is no different from it."""

OVERSHOOT = 3.0
"""From so many times the paper's effect on, the two are not the same experiment."""


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

    @property
    def is_bound(self) -> bool:
        """Whether the claim is a bound, which is kept or not."""
        return self.sense in ("at least", "at most")

    def beyond(self, value: float, mark: float) -> float:
        """How far a value lies from a mark to the side that is claimed."""
        return (value - mark) * (1.0 if self.sense in ("more", "at least") else -1.0)


@dataclass(frozen=True)
class Result:
    """A claim with our value; None where the rival is not there yet.

    `a_a`, where given, is the ratio of one contender to itself: every value that is a time, or a
    ratio of times, has one. A count needs none, but the mean of counts over drawn streams has
    `half_interval`, half its 95 % confidence interval, in the unit of the claim. `fitted` says
    what was chosen with the paper's number in view. `limit` is what nobody can do better than, such
    as Content-Knows. `details` are what stands behind it all.
    """

    claim: Claim
    our_value: float | None
    a_a: float | None = None
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    half_interval: float | None = None
    fitted: str = ""
    limit: float | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether the paper's claim holds here."""
        return judge(self.claim, self.our_value, self.margin)

    def margin(self, mark: float) -> float:
        """How near to a mark a value is no different from it: the A/A control, or the interval.

        >>> Result(Claim("qm", "10a", "rate", 1.44), 1.5, a_a=0.95).margin(2.0)
        0.1
        """
        found = self.half_interval or 0.0
        if self.a_a is None:
            return found
        size = 100.0 if self.claim.unit == "%" else abs(mark)
        return max(found, round(size * abs(self.a_a - 1), 9))

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
            "sense": claim.sense,
            "a_a": self.a_a,
            "half_interval": self.half_interval,
            "fitted": self.fitted,
            "limit": self.limit,
            "note": self.note,
            "details": {**self.details, "command": command},
        }


def judge(claim: Claim, ours: float | None, margin: Margin = lambda mark: 0.0) -> Verdict:
    """The verdict on our value; `margin` says how far from a mark is not yet beyond it.

    `exceeds` at the paper's size and beyond the margin, `overshoots` at `OVERSHOOT` times its
    effect, `direction` at less or where the paper prints no number, `undecided` where the value is
    no different from none, `contradicts` on the other side. A bound is kept (`exceeds`), broken
    (`contradicts`), or the value is no different from it (`undecided`).

    >>> rate = Claim("qm", "10a", "output rate, QM over SP", 1.44)
    >>> [judge(rate, ours) for ours in (1.5, 1.2, 0.9, 4.0, None)]
    ['exceeds', 'direction', 'contradicts', 'overshoots', 'not yet']
    >>> Result(rate, 1.04, a_a=0.95).verdict, Result(rate, 1.5, a_a=0.95).verdict
    ('undecided', 'direction')
    """
    if ours is None:
        return "not yet"
    if math.isnan(ours):
        return "contradicts"
    paper = claim.paper_value
    mark = claim.neutral if not claim.is_bound or paper is None else paper
    gained, allowed = claim.beyond(ours, mark), margin(mark)
    if allowed and abs(gained) <= allowed:
        return "undecided"
    if claim.is_bound:
        return "exceeds" if gained >= 0 else "contradicts"
    if gained <= 0:
        return "contradicts"
    if paper is None or claim.beyond(ours, paper) < margin(paper):
        return "direction"
    if _effect(claim, ours) > OVERSHOOT * _effect(claim, paper):
        return "overshoots"
    return "exceeds"


def _effect(claim: Claim, value: float) -> float:
    """The size of an effect: of a ratio its logarithm, else how far it is from neutral."""
    if claim.unit == "×" and value > 0 and claim.neutral > 0:
        return abs(math.log(value / claim.neutral))
    return abs(value - claim.neutral)
