"""A proxy that has learned: what it decides, what it guarantees, and how it travels to tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools
from querymesh.query.costly.proxy.audit import Audit, is_audited
from querymesh.query.costly.proxy.calibration import Thresholds, calibrate, fewest_passing
from querymesh.query.costly.proxy.decision import Split, complete_rows, decide
from querymesh.query.costly.proxy.model import Model, fit_model, model_from_json
from querymesh.query.costly.proxy.options import Proxy

LEAST_SHARE = 0.05
"""Where fewer rows than this share are clear, the model costs more than it saves."""


@dataclass(frozen=True, eq=False)
class FittedProxy:
    """A cheap model with thresholds, in front of a costly function."""

    options: Proxy
    model: Model
    thresholds: Thresholds
    clear_share: float
    """Of the sampled rows held out, the share that is decided without a call."""
    sample_rows: int
    """So many answers it was learned from."""
    fallen_back: str | None = None
    """Why all rows are asked now; None while it decides."""

    def split(self, args: Sequence[pa.Array], n: int) -> Split:
        """Which of n rows are known without a call, and which are to be asked."""
        none = np.zeros(n, dtype=np.bool_)
        if self.fallen_back is not None or n == 0:
            return Split(none, none, none)
        complete = complete_rows(args, n)
        read = [_of(arg, complete) for arg in args]
        scores = self.model.scores(read, int(np.count_nonzero(complete)))
        says_true, says_false = decide(self.thresholds, scores, complete)
        clear = says_true | says_false
        audited = none
        if clear.any():
            audited = np.zeros(n, dtype=np.bool_)
            count = int(np.count_nonzero(clear))
            of_clear = [_of(arg, clear) for arg in args]
            audited[clear] = is_audited(of_clear, count, self.options.audit, self.options.seed)
        return Split(says_true, says_false, audited)

    def asking_everything(self, why: str) -> FittedProxy:
        """The proxy that decides nothing any more."""
        return replace(self, fallen_back=why)

    def describe(self, audit: Audit | None = None) -> str:
        """What it decides and guarantees, in a line for `explain`."""
        found = "" if audit is None or not audit.rows else f"; {audit.describe()}"
        if self.fallen_back is not None:
            return f"proxy: fell back, all rows are asked: {self.fallen_back}"
        options, at = self.options, self.thresholds
        parts = [f"true above {at.hi:.3f}"] if at.hi > -math.inf else ["true if not false"]
        parts = parts if at.hi < math.inf else []
        parts += [f"false below {at.lo:.3f}"] if at.lo > -math.inf else []
        audited = "not audited" if options.audit == 0.0 else f"{options.audit:.1%} of them audited"
        return (
            f"proxy (approximate): about {self.clear_share:.0%} of rows decided without a call "
            f"({', '.join(parts)}), {audited}; recall ≥ {options.recall:.1%} and precision ≥ "
            f"{options.precision:.1%} with {options.confidence:.0%} confidence, from "
            f"{self.sample_rows:,} answers{found}"
        )

    def to_json(self) -> dict[str, Any]:
        """The proxy as plain values, without its options, which travel with the function."""
        ends = (self.thresholds.lo, self.thresholds.hi)
        lo, hi = (None if math.isinf(end) else end for end in ends)
        return {
            "model": self.model.to_json(),
            "lo": lo,
            "hi": hi,
            "all_true": self.thresholds.hi == -math.inf,
            "clear_share": self.clear_share,
            "sample_rows": self.sample_rows,
            "fallen_back": self.fallen_back,
        }


def fit_proxy(options: Proxy, args: Sequence[pa.Array], answers: pa.Array) -> FittedProxy | str:
    """The proxy of a function whose answers of sampled rows are given; or why there is none.

    Rows must be drawn at random from what is to be decided. A NULL answer counts as false.
    """
    if not args:
        return "proxy: off, the function has no arguments to learn from"
    complete = complete_rows(args, len(answers))
    answer = np.asarray(pc.fill_null(answers, False), dtype=np.bool_)[complete]
    read = [_of(arg, complete) for arg in args]
    order = np.random.default_rng(options.seed).permutation(len(answer))
    learned, held_out = order[: len(order) // 2], order[len(order) // 2 :]
    passing = int(np.count_nonzero(answer[held_out]))
    if passing < fewest_passing(options):
        return (
            f"proxy: off, all rows are asked: {passing} of {len(held_out)} sampled rows held out "
            f"pass, and {fewest_passing(options)} must for this guarantee{_remedy(options, answer)}"
        )
    model = fit_model(options.features, _taken(read, learned), answer[learned])
    scores = model.scores(_taken(read, held_out), len(held_out))
    thresholds = calibrate(options, scores, answer[held_out])
    is_clear = thresholds.is_true(scores) | thresholds.is_false(scores)
    clear_share = float(is_clear.mean()) * float(complete.mean())
    if clear_share < LEAST_SHARE:
        return (
            f"proxy: off, all rows are asked: the model would decide {clear_share:.1%} of them; "
            "give it features= that tell more, or allow less recall or precision"
        )
    return FittedProxy(options, model, thresholds, clear_share, len(answers))


def proxy_from_json(content: object, options: Proxy) -> FittedProxy:
    """The proxy that was saved; a ValueError says what is wrong with it."""
    if not isinstance(content, Mapping):
        raise ValueError(f"a proxy is an object, not {content!r}")
    lo, hi = content.get("lo"), content.get("hi")
    for name, end in (("lo", lo), ("hi", hi)):
        if end is not None and not _is_finite(end):
            raise ValueError(f"'{name}' must be a finite number or null, not {end!r}")
    if not isinstance(content.get("all_true"), bool):
        raise ValueError(f"'all_true' must be true or false, not {content.get('all_true')!r}")
    share: Any = content.get("clear_share")
    rows, fallen = content.get("sample_rows"), content.get("fallen_back")
    if not _is_finite(share) or not 0 <= share <= 1:
        raise ValueError(f"'clear_share' must be a share, not {share!r}")
    if type(rows) is not int or rows < 0:
        raise ValueError(f"'sample_rows' must be a number of rows, not {rows!r}")
    if fallen is not None and not isinstance(fallen, str):
        raise ValueError(f"'fallen_back' must be a text or null, not {fallen!r}")
    open_end = -math.inf if content["all_true"] else math.inf
    thresholds = Thresholds(
        -math.inf if lo is None else float(lo), open_end if hi is None else float(hi)
    )
    model = model_from_json(content.get("model"), options.features)
    return FittedProxy(options, model, thresholds, float(share), rows, fallen)


def _remedy(options: Proxy, answer: Bools) -> str:
    """How large a sample would have enough rows that pass."""
    share = float(answer.mean()) if len(answer) else 0.0
    if share == 0.0:
        return ": none of the sample passes"
    enough = math.ceil(2.5 * fewest_passing(options) / share)
    return f": set sample_rows to {enough:,} or more"


def _of(arg: pa.Array, rows: Bools) -> pa.Array:
    return arg if rows.all() else arg.filter(pa.array(rows))


def _taken(args: Sequence[pa.Array], rows: Any) -> list[pa.Array]:
    return [arg.take(pa.array(rows)) for arg in args]


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
