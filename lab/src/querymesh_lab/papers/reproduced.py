"""What running a figure again gives: rows, and drawings of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.real_folder import skipped
from querymesh_lab.papers.claim import Claim, Result

Drawing = Callable[[], dict[str, str]]
"""Makes SVG texts by the names of their files."""


@dataclass
class Reproduced:
    """The rows of some figures, and how to draw them: drawing needs an extra, so it comes last."""

    results: list[Result] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)

    def add(self, other: Reproduced) -> None:
        """Put another figure's rows and drawings after these."""
        self.results += other.results
        self.drawings += other.drawings


Figures = Mapping[str, Callable[[Bench], Reproduced]]
"""The figures of a paper by name, each with what runs it."""


def without_data(bench: Bench, what: str, claims: Iterable[Claim]) -> list[Result]:
    """A row without a value for each claim whose data are not here."""
    bench.log(skipped(what))
    return [Result(claim, None, None, f"no {what} here") for claim in claims]
