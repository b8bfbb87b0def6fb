"""How many errors in a sample still show that errors are rare: exact, by the binomial law."""

from __future__ import annotations

import math


def chance_of_at_most(errors: int, trials: int, rate: float) -> float:
    """The chance of so few errors, each trial being one with the given chance.

    >>> round(chance_of_at_most(0, 72, 0.05), 4)
    0.0249
    """
    if rate <= 0.0 or errors >= trials:
        return 1.0
    if rate >= 1.0:
        return 0.0
    log_hit, log_miss = math.log(rate), math.log1p(-rate)
    return math.fsum(
        math.exp(
            math.lgamma(trials + 1) - math.lgamma(each + 1) - math.lgamma(trials - each + 1)
            + each * log_hit + (trials - each) * log_miss
        )
        for each in range(errors + 1)
    )  # fmt: skip


def errors_allowed(right: int, rate: float, risk: float, of_all: int | None = None) -> int:
    """The most errors that show, up to the risk, that their rate is below the given one; -1: none.

    There are so many others beside the errors; or so many trials in all, errors among them.

    >>> errors_allowed(0, 0.05, 0.025, of_all=71), errors_allowed(0, 0.05, 0.025, of_all=72)
    (-1, 0)
    """
    errors = -1
    while True:
        trials = right + errors + 1 if of_all is None else of_all
        if chance_of_at_most(errors + 1, trials, rate) > risk:
            return errors
        errors += 1


def fewest_right(rate: float, risk: float) -> int:
    """So many trials without an error show, up to the risk, that errors are rarer than the rate.

    >>> fewest_right(0.05, 0.025)
    72
    """
    return math.ceil(math.log(risk) / math.log1p(-rate)) if rate < 1.0 else 1
