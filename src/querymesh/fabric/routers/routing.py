"""How the Eddy policies decide: the options of `eddy` and `cbr`.

The defaults are for users. `PAPER` is what the CBR paper ran with (its Table 2, and § 4 where the
table is silent): selectivity alone, one operator profiled at a time, single attributes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from querymesh.errors import OptionError
from querymesh.options import check_at_least

CHOICES = ("least", "lottery")
TRIALS = ("cost", "calls")


@dataclass(frozen=True)
class Routing:
    """Options of the policies `eddy` and `cbr`.

    Deciding:

    - `by_cost`: divide what an operator drops by what it costs; else selectivity alone counts.
    - `choice`: "least" goes to the best operator, "lottery" to each with a chance inverse to its
      selectivity, as TelegraphCQ's Eddy does (CBR § 4.2); the lottery is for `eddy` only.
    - `chunk`: tuples decided on the same estimates. Fewer follow the data sooner and cost more; 1
      is tuple by tuple.
    - `one_route_per_chunk`: send a whole chunk to one operator after the other, decided for it as a
      whole (QM § 6.2's batching).
    - `split_if_cheaper`: let tuples leave the rest of their chunk, by their content, only where
      that saves more time than one more ruster takes; needs `by_cost`. Between probes of windows
      there are no rusters, and it costs nothing.
    - `by_context`: estimate selectivities apart for tuples that have been through the same
      operators before (by content only at probes of windows), as is needed where operators depend
      on each other; else each operator has one.
    - `memory`: the weight of the former estimate when a tuple's outcome is added, CBR's 0.95.

    Learning, of `cbr`:

    - `probability`: the share of the tuples that profile an operator, P of CBR's Table 2.
    - `sample`: the tuples by which an operator is profiled, |R| of Table 2.
    - `partitions`: how many an attribute's values are cut into, d of Table 2.
    - `threshold`: the gain ratio (or share of variance) a classifier attribute must exceed.
    - `evidence`: how many standard deviations beyond chance it must be; the attribute with most is
      then the best. 0 goes by the gain ratio alone.
    - `trial_rows`: the tuples a new classifier attribute is tried on.
    - `trial_by`: what a trial is measured by: "cost", what the operators and the routing cost, or
      routing "calls".
    - `trial_noise`: a trial has failed if tuples cost more by so many standard errors.
    - `prune`: leave out attributes and operators that cannot matter (§ 4.4).
    - `attribute_sets`: try sets of two attributes as well (§ 3).
    - `at_once`: operators profiled at the same time (§ 5).
    - `budget`: the share of the tuples that all of these may take together.
    - `all_at_first`: profile all operators at the same time as long as nothing is known.
    - `tune`: adapt `probability`, `sample` and `partitions` while running (§ 8).
    - `keep_pairs`: go on using an operator's classifier attribute while it is profiled again.

    `seed` makes random choices repeatable.
    """

    by_cost: bool = True
    choice: str = "least"
    chunk: int = 4000
    one_route_per_chunk: bool = False
    split_if_cheaper: bool = True
    by_context: bool = True
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
        for name, allowed in (("choice", CHOICES), ("trial_by", TRIALS)):
            if getattr(self, name) not in allowed:
                given = getattr(self, name)
                raise OptionError(f"{name} is one of {', '.join(allowed)}, not {given!r}")
        check_at_least(self, ("chunk", "sample", "trial_rows", "at_once"), 1)
        check_at_least(self, ("partitions",), 2)
        check_at_least(self, ("trial_noise", "evidence"), 0)
        if not 0 < self.budget <= 1:
            raise OptionError(
                f"budget is a share of the tuples, above 0 and at most 1, not {self.budget}"
            )
        for name in ("probability", "memory"):
            if not 0 < getattr(self, name) < 1:
                raise OptionError(f"{name} lies between 0 and 1, not at {getattr(self, name)}")
        if not 0 <= self.threshold < math.inf:
            raise OptionError(f"threshold is a gain ratio from 0 on, not {self.threshold}")


PAPER = Routing(
    by_cost=False,
    chunk=1000,
    split_if_cheaper=False,
    by_context=False,
    threshold=0.04,
    evidence=0.0,
    trial_by="calls",
    trial_noise=0.0,
    prune=False,
    all_at_first=False,
    tune=False,
    keep_pairs=False,
)
"""As the CBR paper has it; routing calls stand for its time: they are the same on any machine."""

BATCHED = replace(PAPER, chunk=100, one_route_per_chunk=True)
"""Chunks of 100 tuples that travel together, as Query Mesh's paper compares itself with."""
