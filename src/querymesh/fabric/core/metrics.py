"""What a run did: rows, rusters, evaluations and time per operator and leaf.

Everything is a plain number under a key, so that what Spark tasks report can be added up in any
order on the driver.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from querymesh.query.costly.tally import Tally


@dataclass
class Visits:
    """What one operator did for the tuples of one leaf."""

    calls: int = 0
    evaluations: int = 0
    passed: int = 0
    errors: int = 0
    seconds: float = 0.0
    comparisons: int = 0
    """Stored tuples that probes of a join state looked at."""

    def add(self, other: Visits) -> None:
        """Add another task's visits to these."""
        self.calls += other.calls
        self.evaluations += other.evaluations
        self.passed += other.passed
        self.errors += other.errors
        self.seconds += other.seconds
        self.comparisons += other.comparisons


@dataclass
class Metrics:
    """Counts and times of a run, or of one task of it.

    `visits` is keyed by (mesh version, leaf, operator index): a leaf number only has meaning within
    one version of the mesh.
    """

    rows_in: int = 0
    rows_out: int = 0
    windows: int = 0
    rusters: int = 0
    classify_seconds: float = 0.0
    output_seconds: float = 0.0
    total_seconds: float = 0.0
    profile_seconds: float = 0.0
    profiled_rows: int = 0
    profile_evaluations: int = 0
    output_errors: int = 0
    key_errors: int = 0
    routing_seconds: float = 0.0
    learning_seconds: float = 0.0
    leaf_rows: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    visits: dict[tuple[int, int, int], Visits] = field(default_factory=lambda: defaultdict(Visits))

    routing: dict[tuple[int, str], int] = field(default_factory=lambda: defaultdict(int))
    asked: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    """By user function, what became of the rows that it was to answer."""

    def add(self, other: Metrics) -> None:
        """Add another task's figures to these."""
        for name in (
            "rows_in", "rows_out", "windows", "rusters", "classify_seconds", "output_seconds",
            "total_seconds", "profile_seconds", "profiled_rows", "profile_evaluations",
            "output_errors", "key_errors", "routing_seconds", "learning_seconds",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for leaf, rows in other.leaf_rows.items():
            self.leaf_rows[leaf] += rows
        for key, visits in other.visits.items():
            self.visits[key].add(visits)
        for way, calls in other.routing.items():
            self.routing[way] += calls
        for name, tally in other.asked.items():
            self.asked[name].add(tally)

    @property
    def routing_calls(self) -> int:
        """Decisions of an Eddy: one for each tuple, or chunk that travels together, and operator.

        `routing` has them by operator and by what they went by.
        """
        return sum(self.routing.values())

    @property
    def evaluations(self) -> int:
        """Operator evaluations: one for each row an operator was run on."""
        return sum(visits.evaluations for visits in self.visits.values())

    @property
    def comparisons(self) -> int:
        """Stored tuples that probes of join states looked at."""
        return sum(visits.comparisons for visits in self.visits.values())

    @property
    def errors_dropped(self) -> int:
        """Rows dropped because a user's function raised on them (`on_error="drop"`)."""
        in_operators = sum(visits.errors for visits in self.visits.values())
        return in_operators + self.key_errors + self.output_errors

    def by_operator(self) -> dict[int, Visits]:
        """The visits of each operator, over all leaves."""
        return self._grouped(2)

    def by_leaf(self, version: int) -> dict[int, Visits]:
        """The visits of each leaf of one mesh version, over all operators."""
        chosen: dict[int, Visits] = defaultdict(Visits)
        for (of_version, leaf, _), visits in self.visits.items():
            if of_version == version:
                chosen[leaf].add(visits)
        return dict(chosen)

    def _grouped(self, position: int) -> dict[int, Visits]:
        grouped: dict[int, Visits] = defaultdict(Visits)
        for key, visits in self.visits.items():
            grouped[key[position]].add(visits)
        return dict(sorted(grouped.items()))
