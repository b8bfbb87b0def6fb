"""Whether the guarantee still holds: a test that may be looked at after every batch, for ever.

Of the rows that a proxy called false, each is audited with the chance a; a lost one that is found
stands for 1 / a of them. With what is kept (rows that passed when asked, and those called true but
for the wrong ones), recall is at least r if and only if the mean of

    Z = r · lost / a  -  (1 - r) · kept

is not above 0, and so with precision, where Z = wrong / a - (1 - p) · passed. Then a bet on Z,

    M = Π over rows of (1 + λ Z),    λ from 0 to where 1 + λ Z might be below 0

does not grow in the mean: it is a nonnegative supermartingale, and by Ville's inequality exceeds
1 / δ at any time with a chance of δ at most (Waudby-Smith and Ramdas, "Estimating means of bounded
random variables by betting", JRSS B 2024). If the guarantee is broken, it grows exponentially. λ is
fixed, so that M depends on counts alone: tasks add them up, in any order. What λ is best depends on
how wrong it has become: M is a mixture over several, and over several beginnings, of weight
1 / (k (k + 1)), so that what was right for long does not hide what is wrong now.

Two such tests share δ: the chance of a false alarm, over a stream of any length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from querymesh.query.costly.proxy.audit import Audit
from querymesh.query.costly.proxy.options import Proxy

FALSE_ALARM = 0.001
"""δ, of recall and precision together."""

TIMES_WORSE = (1.5, 2.0, 3.0, 5.0, 9.0, 17.0)
"""Bets are made on the share of errors being so many times what is allowed."""

MOST_STARTS = 48
"""Beginnings that are remembered; where there are more, the least likely one is forgotten, which
only lowers M."""

ROWS_BETWEEN_STARTS = 2000


@dataclass
class Watch:
    """Adds up what audits found, and says when the guarantee no longer holds."""

    options: Proxy
    total: Audit = field(default_factory=Audit)
    problem: str | None = None
    """Which guarantee no longer holds, once there is evidence."""
    _starts: list[tuple[float, Audit]] = field(default_factory=list)
    """The beginnings: the logarithm of the weight, and all that was before."""
    _started: int = 0

    def add(self, audit: Audit) -> str | None:
        """Take in a report; returns the problem, if there is one."""
        last = self._starts[-1][1].rows if self._starts else -math.inf
        if self.total.rows - last >= ROWS_BETWEEN_STARTS:
            self._started += 1
            log_weight = -math.log(self._started * (self._started + 1))
            self._starts.append((log_weight, self.total))
        self.total = self.total.plus(audit)
        if self.problem is None and self.options.audit > 0.0:
            self.problem = self._tested()
        return self.problem

    def _tested(self) -> str | None:
        enough = math.log(2.0 / FALSE_ALARM)
        after = [(weight, self.total.minus(before)) for weight, before in self._starts]
        recall = [weight + _log_mean(_recall_bets(self.options, each)) for weight, each in after]
        precision = [
            weight + _log_mean(_precision_bets(self.options, each)) for weight, each in after
        ]
        if _log_sum(recall) >= enough:
            return f"recall is no longer {self.options.recall:.0%}: {self.total.describe()}"
        if _log_sum(precision) >= enough:
            return f"precision is no longer {self.options.precision:.0%}: {self.total.describe()}"
        if len(self._starts) > MOST_STARTS:
            likely = [max(pair) for pair in zip(recall, precision, strict=True)]
            del self._starts[likely.index(min(likely[:-1]))]
        return None


def _recall_bets(options: Proxy, audit: Audit) -> list[float]:
    """log M of each λ for recall."""
    allowed, share = 1.0 - options.recall, options.audit
    if allowed == 0.0 or audit.clear_false == 0:
        return [0.0]
    kept = audit.passed + audit.clear_true - audit.wrong_true
    return [
        kept * math.log1p(-bet * allowed)
        + audit.wrong_true * math.log1p(bet * allowed * (1.0 / share - 1.0))
        + audit.wrong_false * math.log1p(bet * options.recall / share)
        for bet in _bets(share / options.recall, allowed)
    ]


def _precision_bets(options: Proxy, audit: Audit) -> list[float]:
    """log M of each λ for precision."""
    allowed, share = 1.0 - options.precision, options.audit
    if allowed == 0.0 or audit.clear_true == 0:
        return [0.0]
    right = audit.passed + audit.clear_true - audit.wrong_true
    return [
        right * math.log1p(-bet * allowed)
        + audit.wrong_true * math.log1p(bet * (1.0 / share - allowed))
        for bet in _bets(share, allowed)
    ]


def _bets(unit: float, allowed: float) -> list[float]:
    """The λ for which an error found multiplies M by about so much; at most half of what one has
    is at stake on a row."""
    return [min((times - 1.0) * unit, 0.5 / allowed) for times in TIMES_WORSE]


def _log_sum(logs: list[float]) -> float:
    largest = max(logs)
    return largest + math.log(math.fsum(math.exp(each - largest) for each in logs))


def _log_mean(logs: list[float]) -> float:
    return _log_sum(logs) - math.log(len(logs))
