"""How the Eddy policies decide: `policy="eddy"` and `policy="cbr"`.

The defaults are for users. `PAPER` is what the CBR paper ran with (its Table 2, and § 4 where the
table is silent): selectivity alone, one operator profiled at a time, single attributes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from querymesh.errors import QueryMeshError

CHOICES = ("least", "lottery")
TRIALS = ("cost", "calls")


@dataclass(frozen=True)
class Routing:
    """Settings of the policies `eddy` and `cbr`.

    Deciding:

    - `by_cost`: what an operator drops is divided by what it costs; else selectivity alone counts
    - `choice`: "least" goes to the best operator, "lottery" to each with a chance inverse to its
      selectivity, as TelegraphCQ's Eddy does (CBR § 4.2); the lottery is for `eddy` only
    - `chunk`: tuples that are decided on the same estimates: fewer follow the data sooner and cost
      more; 1 is tuple by tuple
    - `together`: a whole chunk takes one way, decided for it as a whole (QM § 6.2's batching)
    - `apart`: tuples leave the rest of their chunk, by their content, only where that saves more
      time than one more ruster takes; needs `by_cost`
    - `by_place`: what an operator passes is known apart for tuples that have been through the same
      operators before (by content only at probes of windows); else one number is for all. Needed
      where operators depend on each other
    - `memory`: the weight of what was known when a tuple's outcome is added, CBR's 0.95

    Learning, of `cbr`:

    - `probability`, `sample`, `partitions`: P, |R| and d of CBR's Table 2
    - `threshold`: the gain ratio (or share of variance) a classifier attribute must exceed
    - `evidence`: how many standard deviations beyond chance it must be; the attribute with most is
      then the best. 0 goes by the gain ratio alone
    - `trial_rows`, `trial_by`: how many tuples a new pair is tried on, and what its rate is
      measured by: "cost", what the operators and the routing cost, or routing "calls"
    - `trial_noise`: a trial has failed if the rate is worse by so many standard errors
    - `prune`: leave out attributes and operators that cannot matter (§ 4.4)
    - `attribute_sets`: try sets of two attributes as well (§ 3)
    - `at_once`: operators profiled at the same time (§ 5), as long as they take no more than the
      share `budget` of the tuples together, each of them `probability`
    - `all_at_first`: all operators at the same time, as long as nothing is known
    - `tune`: adapt P, |R| and d while running (§ 8)
    - `keep_pairs`: go on using an operator's pair while it is profiled again
    """

    by_cost: bool = True
    choice: str = "least"
    chunk: int = 4000
    together: bool = False
    apart: bool = True
    by_place: bool = True
    memory: float = 0.95
    probability: float = 0.06
    sample: int = 150
    partitions: int = 24
    threshold: float = 0.0
    evidence: float = 2.0
    trial_rows: int = 500
    trial_by: str = "cost"
    trial_noise: float = 1.0
    prune: bool = True
    attribute_sets: bool = False
    at_once: int = 1
    budget: float = 0.2
    all_at_first: bool = True
    tune: bool = False
    keep_pairs: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.choice not in CHOICES:
            raise QueryMeshError(f"choice is one of {', '.join(CHOICES)}, not {self.choice!r}")
        if self.trial_by not in TRIALS:
            raise QueryMeshError(f"trial_by is one of {', '.join(TRIALS)}, not {self.trial_by!r}")
        for name in ("chunk", "sample", "trial_rows", "at_once"):
            if getattr(self, name) < 1:
                raise QueryMeshError(f"{name} is at least 1, not {getattr(self, name)}")
        if self.partitions < 2:
            raise QueryMeshError(f"partitions is at least 2, not {self.partitions}")
        if not 0 < self.budget <= 1:
            raise QueryMeshError(
                f"budget is a share of the tuples, above 0 and at most 1, not {self.budget}"
            )
        for name in ("probability", "memory"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise QueryMeshError(f"{name} lies between 0 and 1, not at {value}")
        for name in ("trial_noise", "evidence"):
            if not 0 <= getattr(self, name) < math.inf:
                raise QueryMeshError(f"{name} is at least 0, not {getattr(self, name)}")
        if not 0 <= self.threshold < math.inf:
            raise QueryMeshError(f"threshold is a gain ratio from 0 on, not {self.threshold}")


PAPER = Routing(
    by_cost=False,
    chunk=1000,
    apart=False,
    by_place=False,
    threshold=0.04,
    evidence=0.0,
    trial_by="calls",
    trial_noise=0.0,
    prune=False,
    all_at_first=False,
    tune=False,
    keep_pairs=False,
)
"""As the CBR paper has it; routing calls stand for its time, which no machine changes."""

BATCHED = replace(PAPER, chunk=100, together=True)
"""Chunks of 100 tuples that travel together, as Query Mesh's paper compares itself with."""
