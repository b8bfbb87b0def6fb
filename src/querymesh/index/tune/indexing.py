"""How the states of a join are indexed: the kinds of index, and their options."""

from __future__ import annotations

from dataclasses import dataclass

from querymesh.errors import OptionError
from querymesh.index.store.configuration import MOST_BITS
from querymesh.index.tune.assessment import ASSESSMENTS
from querymesh.index.tune.migration import MIGRATIONS
from querymesh.index.tune.schedule import SCHEDULES

INDEXES = {
    "hash": "a hash index for each access pattern",
    "bitmap": "one bit-address index, chosen once",
    "amri": "one bit-address index that follows the workload",
    "auto": "whichever of hash and amri costs less, by what this machine takes for each",
}


@dataclass(frozen=True)
class Indexing:
    """Options of the indices of a join's states.

    - `bits`: the bits of each state's bit-address index; None for as many as its partitions have
      rows for.
    - `budget`: bits for all states together, divided where they save most.
    - `hashes`: of hash indices, how many a state has, for its most frequent access patterns; None
      for one for each pattern.
    - `adaptive`: whether these follow the workload; else they are chosen once.
    - `first`: search requests of a state after which its index is chosen for the first time, if
      `steps` are over as well.

    Of `amri` and of adaptive hash indices:

    - `assessment`: how access patterns are counted (AMRI § 5): "sria", "csria", "dia",
      "cdia-random", "cdia-highest".
    - `threshold`: θ, the frequency from which a pattern matters. The paper has .1; a pattern of one
      attribute, rare as it is, may cost more than all others.
    - `error`: ε, by which the count of a pattern may be off. The paper has .05.
    - `schedule`: when states are assessed (§ 7): "continuous", "periodic", "triggered", "hybrid",
      "never".
    - `window`: search requests that an assessment lasts.
    - `every`: search requests between two looks at how many requests each state gets.
    - `steps`: micro-batches (in a batch job, Arrow batches) that an assessment lasts at least: the
      tuples of one go much the same routes.
    - `memory`: the weight that earlier counts have beside the newest: stored rows are searched for
      as long as they are in the window, and routes may change more often.
    - `worth`: the share of its cost that another configuration must save to be taken.
    - `visits`: count what it takes to come to a bucket, which the paper's eq. 1 leaves out.
    - `migration`: what happens to rows stored already (§ 8): "nothing", "all", "partial".

    `seed` makes random choices repeatable.
    """

    bits: int | None = None
    budget: int | None = None
    hashes: int | None = None
    adaptive: bool = True
    first: int = 5_000
    assessment: str = "sria"
    threshold: float = 0.01
    error: float = 0.005
    schedule: str = "continuous"
    window: int = 60_000
    every: int = 100_000
    memory: float = 0.5
    worth: float = 0.05
    steps: int = 5
    visits: bool = True
    migration: str = "all"
    seed: int = 0

    def __post_init__(self) -> None:
        _known("assessment", self.assessment, list(ASSESSMENTS))
        _known("schedule", self.schedule, list(SCHEDULES))
        _known("migration", self.migration, list(MIGRATIONS))
        for name in ("worth", "memory"):
            if not 0 <= getattr(self, name) < 1:
                given = getattr(self, name)
                raise OptionError(f"Indexing({name}={given}): a share from 0 to below 1")
        for name in ("first", "window", "every", "steps"):
            if getattr(self, name) < 1:
                raise OptionError(f"Indexing({name}={getattr(self, name)}): give at least 1")
        if not 0 < self.error < 1 or not self.error <= self.threshold < 1:
            raise OptionError(
                f"Indexing(threshold={self.threshold}, error={self.error}): the error must lie "
                "above 0, and the threshold between it and 1"
            )
        if self.bits is not None and not 0 <= self.bits <= MOST_BITS:
            raise OptionError(f"Indexing(bits={self.bits}): a state has 0 to {MOST_BITS} bits")
        if self.budget is not None and self.budget < 0:
            raise OptionError(f"Indexing(budget={self.budget}): give 0 bits or more")
        if self.hashes is not None and self.hashes < 0:
            raise OptionError(f"Indexing(hashes={self.hashes}): give 0 indices or more")


def _known(name: str, given: str, names: list[str]) -> None:
    if given not in names:
        raise OptionError(f"Indexing({name}={given!r}): there are {', '.join(names)}")
