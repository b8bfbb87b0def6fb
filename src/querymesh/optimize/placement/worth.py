"""Is it worth it? A saving with its doubt, and how much learning a job can bear.

Never worse than plain Spark counts for more than the last few percent: another engine is taken only
where the *least* that it is likely to save, two standard errors and one unlucky tuple below what
the sample says, is more than a margin of plain Spark's time.

Learning costs time, too. It may cost a share of what it could save at most::

    nothing known     budget = 5 % of (dearest estimate of plain - floor) · rows / parallelism
    a sample, judged  saving certain, or nothing to save ──> done
                      saving likely, but in doubt        ──> twice the sample, within the budget
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from querymesh.arrays import Floats
from querymesh.errors import OptionError

MARGIN = 0.05
"""The share of plain Spark's time that must be saved for sure."""

ERRORS = 2.0
"""Standard errors that are taken off a saving before it counts."""

LEARNING_SHARE = 0.05
"""The share of what could be saved at most that learning may cost."""

FLOOR_US = 0.02
"""What a row costs however cheap its conditions are."""

MOST_SAMPLE_ROWS = 32_000
"""Rows, at most, of a sample; where more would be needed, a stream or the next run may tell."""


@dataclass(frozen=True)
class Job:
    """The job that a decision is for.

    Parameters
    ----------
    rows
        How many rows will be filtered, None if nobody knows: then the saving a row decides.
    parallelism
        How many tasks run at a time. Defaults to 1.
    other_us
        What a row costs beside its conditions, such as reading it. Defaults to 0.
    python_start_s
        What starting Python workers takes, if plain Spark would need none. Defaults to 0.
    learned_s
        What sampling, profiling and training have taken so far. It is told, and decides nothing:
        it is spent either way. Defaults to 0.
    """

    rows: float | None = None
    parallelism: int = 1
    other_us: float = 0.0
    python_start_s: float = 0.0
    learned_s: float = 0.0

    def __post_init__(self) -> None:
        if self.parallelism < 1:
            raise OptionError(f"parallelism is at least 1, not {self.parallelism}")
        if self.rows is not None and not self.rows >= 0:
            raise OptionError(f"a job has 0 rows or more, or None, not {self.rows}")

    def seconds(self, us: float) -> float:
        """How long the job takes if each row takes so many microseconds; NaN if nobody knows."""
        return math.nan if self.rows is None else us * self.rows / self.parallelism / 1e6

    def start_us(self) -> float:
        """The start of Python workers as microseconds for each row."""
        if self.rows is None or not self.python_start_s:
            return 0.0
        return self.python_start_s * 1e6 * self.parallelism / max(self.rows, 1.0)


@dataclass(frozen=True)
class Saving:
    """What a row saves over plain Spark: as the sample has it, and at the least, doubt taken off;
    `needed_us` is the margin that it must beat.

    `sampled_us` is the least that a sample of any size could show: where costs are not known well,
    more rows do not help.
    """

    mean_us: float
    least_us: float
    needed_us: float
    sampled_us: float = math.inf

    def or_less(self, other: Saving) -> Saving:
        """The saving, if it may as well be the other."""
        sampled_us = min(self.sampled_us, other.mean_us)
        return replace(self, least_us=min(self.least_us, other.least_us), sampled_us=sampled_us)

    @property
    def is_certain(self) -> bool:
        """Whether even the least saving beats the margin."""
        return self.least_us > self.needed_us

    @property
    def in_doubt(self) -> bool:
        """Whether the saving beats the margin, but might not, and a larger sample would tell."""
        return min(self.mean_us, self.sampled_us) > self.needed_us and not self.is_certain


def saving_of(
    plain_us: Floats, chosen_us: Floats, worst_us: float, job: Job, new_workers: bool
) -> Saving:
    """The saving of tuples that cost so much in plain Spark and so much otherwise.

    A small sample may lack what is rare, so one more tuple is counted in, that loses `worst_us`.
    `new_workers` says whether Python workers are started that plain Spark would not need.
    """
    rows = len(plain_us)
    saved = plain_us - chosen_us
    error = float(saved.std(ddof=1)) / math.sqrt(rows) if rows > 1 else 0.0
    mean = float(saved.mean())
    least = (rows * (mean - ERRORS * error) - max(worst_us, 0.0)) / (rows + 1)
    start = job.start_us() if new_workers else 0.0
    needed = MARGIN * (float(plain_us.mean()) + job.other_us)
    return Saving(mean - start, least - start, needed)


def worth_learning(
    plain_us: tuple[float, float],
    rows: float,
    parallelism: int = 1,
    *,
    floor_us: float = FLOOR_US,
    spent_s: float = 0.0,
) -> float:
    """The seconds that learning may still take, for a job whose conditions cost between the two
    figures a row in plain Spark; 0 where the job is too small or too cheap.

    Ask again when the figures are known better: the dearer one counts.

    >>> worth_learning((0.5, 10.02), 50_000_000, parallelism=5)
    5.0
    >>> worth_learning((0.01, 0.02), 50_000_000)
    0.0
    """
    least, most = plain_us
    if not 0 <= least <= most:
        raise OptionError(f"plain_us is a range from low to high, not {plain_us}")
    saved_s = max(0.0, most - floor_us) * rows / Job(rows, parallelism).parallelism / 1e6
    return max(0.0, LEARNING_SHARE * saved_s - spent_s)


def next_sample_rows(
    rows: int,
    *,
    in_doubt: bool,
    row_s: float,
    budget_s: float,
    most_rows: float = MOST_SAMPLE_ROWS,
) -> int:
    """How many rows the next sample should have, those of this one among them; 0 to stop here.

    It doubles where a saving is in doubt and the budget allows: only the added rows cost `row_s`
    seconds each, since no function is called twice on a row.

    >>> next_sample_rows(2000, in_doubt=True, row_s=1e-4, budget_s=0.5)
    4000
    >>> next_sample_rows(2000, in_doubt=True, row_s=1e-3, budget_s=0.5)
    0
    """
    doubled = int(min(2 * rows, most_rows))
    if not in_doubt or doubled <= rows or (doubled - rows) * row_s > budget_s:
        return 0
    return doubled
