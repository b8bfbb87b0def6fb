"""Which of the clear rows are asked all the same, and a record of what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools
from querymesh.query.costly.distinct import keys_of
from querymesh.text_model.hashing import mixed


@dataclass(frozen=True)
class Audit:
    """What a proxy did with some rows, and what asking found; reports of tasks are added up.

    `asked` rows were doubtful, and `passed` of them passed. The proxy called `clear_true` rows
    true; `audited_true` of these were asked, and `wrong_true` were not. So with what is false.
    """

    asked: int = 0
    passed: int = 0
    clear_true: int = 0
    audited_true: int = 0
    wrong_true: int = 0
    clear_false: int = 0
    audited_false: int = 0
    wrong_false: int = 0

    def plus(self, other: Audit) -> Audit:
        """What this and another report count together."""
        return Audit(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Audit)))

    def minus(self, other: Audit) -> Audit:
        """What was counted since another report."""
        return Audit(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(Audit)))

    @property
    def rows(self) -> int:
        """All of them."""
        return self.asked + self.clear_true + self.clear_false

    @property
    def saved(self) -> int:
        """Rows about which the function was not asked."""
        return self.clear_true + self.clear_false - self.audited_true - self.audited_false

    def describe(self) -> str:
        """What was audited, in a few words.

        >>> Audit(asked=100, clear_true=900, audited_true=20, wrong_true=1).describe()
        '880 of 1,000 rows decided without a call, 20 of 900 clear ones audited, 1 wrong'
        """
        audited = self.audited_true + self.audited_false
        clear = self.clear_true + self.clear_false
        wrong = self.wrong_true + self.wrong_false
        return (
            f"{self.saved:,} of {self.rows:,} rows decided without a call, "
            f"{audited:,} of {clear:,} clear ones audited, {wrong:,} wrong"
        )


def is_audited(args: Sequence[pa.Array], n: int, share: float, seed: int) -> Bools:
    """Which rows are audited: by a hash of the input, so that it is the same whenever it comes.

    A row that Spark evaluates twice, or that a task tries again, has one answer.
    """
    if share <= 0.0 or n == 0:
        return np.zeros(n, dtype=np.bool_)
    keys = np.frombuffer(b"".join(keys_of(args)), dtype="<u8").reshape(n, -1)[:, 0]
    uniform = mixed(keys.astype(np.uint64), 1 + seed).astype(np.float64) / 2.0**64
    return np.asarray(uniform < share)
