"""Which rows are true, which false, and which the costly function is asked about."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Floats, Ints
from querymesh.query.costly.proxy.audit import Audit
from querymesh.query.costly.proxy.calibration import Thresholds


@dataclass(frozen=True, eq=False)
class Split:
    """Some rows, as the proxy parts them."""

    says_true: Bools
    """Of these it is sure that they are true, and so with `says_false`; of the rest of nothing."""
    says_false: Bools
    audited: Bools
    """Clear rows that are asked all the same."""

    @property
    def known(self) -> pa.BooleanArray:
        """The answers without a call, NULL where the function is to be asked."""
        return pa.array(self.says_true, pa.bool_(), mask=self._to_ask())

    @property
    def to_ask(self) -> Ints:
        """The rows that the function is to be asked about."""
        return np.flatnonzero(self._to_ask())

    def answers(self, asked: pa.BooleanArray) -> pa.BooleanArray:
        """The answers of all rows, given those of the rows to ask, in their order."""
        return pc.replace_with_mask(self.known, pa.array(self._to_ask()), asked)

    def audit(self, asked: pa.BooleanArray, failed: Collection[int] = ()) -> Audit:
        """What is to be reported, given the answers of the rows to ask; NULL is not true.

        Of these, by number, some `failed`: they had no answer, which says nothing of the proxy.
        """
        answer = np.zeros(len(self.audited), dtype=np.bool_)
        answer[self.to_ask] = np.asarray(pc.fill_null(asked, False))
        answered = np.ones(len(answer), dtype=np.bool_)
        answered[self.to_ask[np.fromiter(failed, dtype=np.int64)]] = False
        doubtful = ~(self.says_true | self.says_false)
        audited_true = self.audited & answered & self.says_true
        audited_false = self.audited & answered & self.says_false
        counted = (
            doubtful, doubtful & answer,
            self.says_true, audited_true, audited_true & ~answer,
            self.says_false, audited_false, audited_false & answer,
        )  # fmt: skip
        return Audit(*(int(np.count_nonzero(each)) for each in counted))

    def _to_ask(self) -> Bools:
        return np.asarray(self.audited | ~(self.says_true | self.says_false))


def decide(thresholds: Thresholds, scores: Floats, complete: Bools) -> tuple[Bools, Bools]:
    """Which rows are true and which are false, given scores of the complete ones.

    A row with a NULL argument is neither, and so is one whose score is no number.
    """
    says_true, says_false = np.zeros_like(complete), np.zeros_like(complete)
    says_true[complete] = thresholds.is_true(scores)
    says_false[complete] = thresholds.is_false(scores)
    return says_true, says_false


def complete_rows(args: Sequence[pa.Array], n: int) -> Bools:
    """The rows without a NULL argument."""
    complete = np.ones(n, dtype=np.bool_)
    for arg in args:
        if arg.null_count:
            complete &= np.asarray(pc.is_valid(arg))
    return complete
