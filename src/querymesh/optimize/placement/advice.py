"""Would it help? What a sample says of a filter before it runs, as data; `report/` writes it out.

::

    plain Spark ──by order──> ──by another implementation──> ──by kinds of rows──> what could be
       µs a row                                                                     reached
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from querymesh.explained import Explained
from querymesh.optimize.placement.decide import PLAIN, Decision
from querymesh.optimize.placement.worth import Job


class Verdict(StrEnum):
    """Whether it would help; unknown where nothing could be sampled."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Gain:
    """One way to save time: `us` microseconds a row, by what, and what is to be said of it."""

    by: str
    us: float
    note: str = ""


@dataclass(frozen=True)
class ConditionFacts:
    """One condition as the sample has it, in microseconds an evaluation.

    `catalyst_us` is infinite for a Python function, `python_us` for what only Spark can evaluate.
    Of a Python function, `reach` is the share of rows on which it is called, and `distinct` are the
    different values it reads in the `sampled` rows; None of all others, and where that cannot be
    seen.
    """

    name: str
    pass_rate: float
    catalyst_us: float
    python_us: float
    reach: float = math.nan
    sampled: int = 0
    distinct: int | None = None

    @property
    def rows_per_value(self) -> float:
        """How many sampled rows have the same values; NaN where nobody knows."""
        return self.sampled / self.distinct if self.distinct else math.nan


@dataclass(frozen=True)
class Advice(Explained):
    """Whether `where` would help with a filter, and what there is to gain.

    - `verdict`, `why`: yes or no, and the reason; "unknown" where nothing could be sampled
    - `engine`: what `where` would choose: "plain", "native", "fabric" or "sandwich"
    - `plain_us`, `expected_us`: microseconds a row, for the conditions alone, in plain Spark and on
      that engine; NaN where nothing was sampled
    - `gains`: what could be saved by each way: order, another implementation, kinds of rows, and
      remembering repeated values. The first three add up; `where` does the last whatever it chooses
    - `conditions`: what each costs and lets through
    - `left_to_spark`: conditions that Spark evaluates by itself, while it scans
    - `learning_s`, `sample_rows`, `calls`: what learning takes, from how many rows, with how many
      calls of Python functions
    - `job`: how many rows it is for, and how many tasks run at once
    - `decision`: the engines that were compared; None where nothing was sampled
    """

    verdict: Verdict
    why: str
    engine: str = PLAIN
    plain_us: float = math.nan
    expected_us: float = math.nan
    gains: tuple[Gain, ...] = ()
    conditions: tuple[ConditionFacts, ...] = ()
    left_to_spark: tuple[str, ...] = ()
    learning_s: float = 0.0
    sample_rows: int = 0
    calls: int = 0
    job: Job = field(default_factory=Job)
    decision: Decision | None = None

    @property
    def helps(self) -> bool:
        """Whether the answer is yes."""
        return self.verdict is Verdict.YES

    @property
    def saved_s(self) -> float:
        """Seconds of this job that are expected to be saved, learning not yet taken off."""
        return self.job.seconds(self.plain_us - self.expected_us)

    @property
    def pays_from_rows(self) -> float:
        """How many rows a job must have for learning to pay for itself; NaN where it never does."""
        decision = self.decision
        if decision is None or decision.chosen == PLAIN:
            return math.nan
        saved_us = decision.plain_us - decision.expected_us
        return self.learning_s * self.job.parallelism * 1e6 / saved_us

    def __repr__(self) -> str:
        figures = ""
        if not math.isnan(self.plain_us):
            figures = f", plain Spark {self.plain_us:.3g} µs a row, here {self.expected_us:.3g}"
        return f"<Advice: {self.verdict.value}, engine {self.engine}{figures}>"

    def figures(self) -> dict[str, object]:
        """All of it as plain data, for JSON; null where a figure is not known."""
        return {
            "verdict": self.verdict.value,
            "why": self.why,
            "engine": self.engine,
            "rows": self.job.rows,
            "tasks": self.job.parallelism,
            "plain": self._both(self.plain_us),
            "expected": self._both(self.expected_us),
            "gains": {gain.by: {**self._both(gain.us), "note": gain.note} for gain in self.gains},
            "learning": {
                "seconds": _known(self.learning_s),
                "sampleRows": self.sample_rows,
                "calls": self.calls,
                "paysFromRows": _known(self.pays_from_rows),
            },
            "conditions": [
                {
                    "name": each.name,
                    "passes": _known(each.pass_rate),
                    "catalystMicros": _known(each.catalyst_us),
                    "pythonMicros": _known(each.python_us),
                    "rowsPerValue": _known(each.rows_per_value),
                }
                for each in self.conditions
            ],
            "leftToSpark": list(self.left_to_spark),
        }

    def _both(self, us: float) -> dict[str, float | None]:
        return {"microsPerRow": _known(us), "seconds": _known(self.job.seconds(us))}


REMEMBERING = "remembering repeated values"


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
