"""A proxy in one process: it learns from the first answers, decides, and is watched.

::

    rows ─> learned? ─no─> the function is asked about all, and its answers are kept to learn from
               │yes
            clear rows ─> decided, a share of them asked all the same ─> the guarantee still holds?
            doubtful   ─> asked                                            no: all are asked again
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.query.costly.answers import Answers, AnswersByRow
from querymesh.query.costly.distinct import taken
from querymesh.query.costly.proxy.audit import Audit
from querymesh.query.costly.proxy.fitted import FittedProxy, fit_proxy, proxy_from_json
from querymesh.query.costly.proxy.options import Proxy
from querymesh.query.costly.proxy.watch import Watch

Exactly = Callable[[Sequence[pa.Array], int], Answers]
"""The answers of the function itself."""


@dataclass
class ProxyInUse:
    """What one process knows of a function's proxy.

    `learns` is whether it learns from the rows that come here: on a stream. Of a batch the driver
    learns it from a sample, or nobody does. `why_not` says why all rows are asked.
    """

    options: Proxy
    learns: bool = False
    fitted: FittedProxy | None = None
    why_not: str | None = None
    audit: Audit = field(default_factory=Audit)
    """What it did and what was found, so far."""
    _seen: list[tuple[list[pa.Array], pa.Array]] = field(default_factory=list)
    _seen_rows: int = 0

    def __post_init__(self) -> None:
        self._watch = Watch(self.options)

    def begin(self, known: Mapping[str, Any] | str | None, *, learns: bool) -> None:
        """Begin in a task with what was learned before, or why nothing was."""
        self.learns = learns
        if isinstance(known, str):
            self.why_not = known
        elif known is not None:
            self.fitted = proxy_from_json(known, self.options)

    @property
    def known(self) -> Mapping[str, Any] | str | None:
        """What was learned, to travel to tasks."""
        return self.why_not if self.fitted is None else self.fitted.to_json()

    def describe(self, found: Audit) -> str:
        """What it decides and guarantees, and what was found, in a line for `explain`."""
        if self.fitted is not None:
            return self.fitted.describe(found)
        if self.why_not is not None:
            return self.why_not
        text = "proxy (approximate): each worker learns one from its first rows"
        return f"{text}; {found.describe()}" if found.rows else text

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to learn."""
        return self.fitted is not None or self.why_not is not None

    def end_learning(self) -> None:
        """There are no more rows to learn from."""
        if not self.is_settled:
            self.why_not = (
                f"proxy: off, all rows are asked: only {self._seen_rows:,} of the sampled rows "
                f"came to it, and it learns from {self.options.sample_rows:,}"
            )
            self._seen.clear()
        self.learns = False

    def answers(self, exactly: Exactly, args: Sequence[pa.Array], n: int) -> Answers:
        """The answers of n rows; those of clear ones without a call."""
        found = Answers(pa.nulls(0, pa.bool_()))
        while self.learns and not self.is_settled and n:
            some = min(n, self.options.sample_rows - self._seen_rows)
            learned = exactly([arg.slice(0, some) for arg in args], some)
            self._learn_from(args, learned)
            found = found.followed_by(learned)
            args, n = [arg.slice(some) for arg in args], n - some
        return found.followed_by(self._decided(exactly, args, n)) if n else found

    def _decided(self, exactly: Exactly, args: Sequence[pa.Array], n: int) -> Answers:
        if self.fitted is None or self.fitted.fallen_back is not None:
            return exactly(args, n)
        split = self.fitted.split(args, n)
        rows = split.to_ask
        by_row = AnswersByRow(pa.bool_(), n)
        asked = pa.nulls(0, pa.bool_())
        failed: list[int] = []
        if len(rows):
            found = exactly([taken(arg, rows) for arg in args], len(rows))
            by_row.put_all(rows, found)
            asked, failed = found.values, [*found.failed, *found.unasked]
        others = np.setdiff1d(np.arange(n, dtype=np.int64), rows, assume_unique=True)
        by_row.put(others, taken(split.known, others))
        self._audited(split.audit(asked, failed))
        return by_row.answers()

    def _audited(self, audit: Audit) -> None:
        self.audit = self.audit.plus(audit)
        problem = self._watch.add(audit)
        if problem is not None and self.fitted is not None:
            self.fitted = self.fitted.asking_everything(problem)

    def _learn_from(self, args: Sequence[pa.Array], found: Answers) -> None:
        """Keep answers until there are as many as are learned from."""
        answered = [at for at in range(len(found)) if at not in found.failed]
        rows = np.array([at for at in answered if at not in found.unasked], dtype=np.int64)
        self._seen.append(([taken(arg, rows) for arg in args], taken(found.values, rows)))
        self._seen_rows += len(rows)
        if self._seen_rows >= self.options.sample_rows:
            self.learn()

    def learn(self) -> None:
        """Learn from what was seen."""
        seen = zip(*(args for args, _ in self._seen), strict=True)
        columns = [pa.concat_arrays(parts) for parts in seen]
        answers = pa.concat_arrays([answers for _, answers in self._seen])
        fitted = fit_proxy(self.options, columns, answers)
        self._seen.clear()
        if isinstance(fitted, str):
            self.why_not = fitted
        else:
            self.fitted = fitted
