"""What a case or figure gets: its scale, where to say how far it is, and Spark if it asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession

from querymesh.errors import SetupError
from querymesh_lab.bench.measure import Log, silent


def no_session() -> SparkSession:
    """Refuse to start Spark, for what runs in this process alone."""
    raise SetupError("this runs without Spark, but asked for a session")


@dataclass(frozen=True)
class Bench:
    """The surroundings of a case. `quick` checks that everything runs; its ratios are no claims.

    `start` makes the Spark session. It is called when a case first asks for `session`: most run in
    this process alone, and starting a JVM for them would take longer than some of them do.
    """

    quick: bool = False
    log: Log = silent
    start: Callable[[], SparkSession] = no_session

    @cached_property
    def session(self) -> SparkSession:
        """The Spark session, started by the first who asks."""
        return self.start()

    def rows(self, full: int, quick: int) -> int:
        """How many rows to generate."""
        return quick if self.quick else full

    def rounds(self, full: int, quick: int = 3) -> int:
        """How many rounds to time."""
        return quick if self.quick else full
