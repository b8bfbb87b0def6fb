"""What a case gets: a Spark session, its scale, and somewhere to say how far it is."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from querymesh_lab.bench.measure import Log, silent


@dataclass(frozen=True)
class Bench:
    """The surroundings of a case. `quick` checks that everything runs; its ratios are no claims."""

    session: SparkSession
    quick: bool = False
    log: Log = silent

    def rows(self, full: int, quick: int) -> int:
        """How many rows to generate."""
        return quick if self.quick else full

    def rounds(self, full: int, quick: int = 3) -> int:
        """How many rounds to time."""
        return quick if self.quick else full
