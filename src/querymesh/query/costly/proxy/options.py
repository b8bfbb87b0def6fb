"""The options of a proxy: how right its results must be, and how sure of that one must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from querymesh.errors import OptionError
from querymesh.options import check_integer, check_number, check_share

FEWEST_ROWS = 100


@dataclass(frozen=True)
class Proxy:
    """A cheap model that decides the clear rows of a costly predicate; the rest is asked.

    - `recall`: of the rows that the predicate would pass, at least this share passes
    - `precision`: of the rows that pass, the predicate would pass at least this share
    - `confidence`: that both hold, over the sample that the model was learned from
    - `features`: a function from the arrays of arguments to a matrix of floats with a row for each
      row, such as embeddings; None for pieces of texts and scaled numbers
    - `sample_rows`: how many answers it is learned from, a random half of which sets the thresholds
    - `audit`: this share of the clear rows is asked all the same, to notice when it no longer holds
    - `seed`: of the halves, and of which rows are audited

    A recall of 1.0 leaves it to the predicate to refuse a row, a precision of 1.0 to pass one.
    """

    recall: float = 0.95
    precision: float = 0.95
    confidence: float = 0.95
    features: Callable[..., Any] | None = None
    sample_rows: int = 1000
    audit: float = 0.02
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("recall", "precision", "confidence", "audit"):
            check_number(f"proxy: {name}", getattr(self, name))
        check_share("proxy: recall", self.recall)
        check_share("proxy: precision", self.precision)
        if self.recall == 1.0 and self.precision == 1.0:
            raise OptionError(
                "proxy: with a recall and a precision of 1.0 every row is asked: "
                "leave proxy= out, or allow one of them to be less"
            )
        if not 0 < self.confidence < 1:
            raise OptionError(
                f"proxy: confidence lies between 0 and 1, as 0.95, not {self.confidence}"
            )
        if not 0 <= self.audit <= 1:
            raise OptionError(f"proxy: audit is a share from 0 to 1, not {self.audit}")
        if self.features is not None and not callable(self.features):
            raise OptionError(
                "proxy: features is a function from arrays to a matrix of floats, "
                f"not {type(self.features).__name__}"
            )
        check_integer("proxy: sample_rows", self.sample_rows, least=FEWEST_ROWS)
        check_integer("proxy: seed", self.seed, least=0)


def proxy_of(name: str, given: Proxy | None) -> Proxy | None:
    """What was given as `proxy=`."""
    if given is None or isinstance(given, Proxy):
        return given
    raise OptionError(f"predicate {name}: proxy is a querymesh.Proxy, not {type(given).__name__}")
