"""The data and the query of QM § 6.1 on sliding windows: an equi-join of ten streams.

The paper does not publish its generator. This one keeps what Tables 1 to 3 say and adds as little
as it can:

- ten streams S0 … S9, each with a symbol and six values, `v` and `a1` to `a5`, which follow
  Poisson(1) or Uniform(0 … 100) as in Table 2; tuples arrive as a Poisson process (Table 3);
- they are joined on `symbol` and `v`, all ten, within a window each;
- every stream has p = 3 partitions, which are partitions of the symbols. In partition k the values
  `v` of every third stream, from the k-th, lie `shift` higher than those of the other streams::

      symbols of     S0  S1  S2  S3  S4  S5  S6  S7  S8  S9     Poisson(1) is thin from 2 upwards:
          0          +s          +s          +s          +s     a tuple of S1 in partition 0 finds
          1              +s          +s          +s             few in S0, S3, S6, S9 and some in
          2                  +s          +s          +s         all others. Uniform values are
                                                                shifted modulo 101: no skew in them

- nothing names the partition. In partition k the values of `a1` … `a5`, every third from the k-th,
  lie `shift` higher too, and overlap: from these a classifier has to find it.

With other `kinds` than the paper's three partitions about as many streams are shifted in each, so
that a tuple finds as much: with one kind always the same ones (one order is best for all), with
more than three those that stand 0, 1 and 3 after the kind, and the hints are its binary digits.

A probe of a stream that is shifted alike finds `matches` tuples on average, between 0.8 and 1.2
times that from one stream to the next, since streams are so much slower or faster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Ints
from querymesh.query.model import Query
from querymesh.query.parse.query import query
from querymesh_lab.papers.qm.ten_way import (
    PARTITIONS,
    UNIFORM_VALUES,
    Distribution,
    draw,
    meeting_chance,
)

HINTS = 5
MANY_KINDS_SHIFT = (0, 1, 3)
"""How far after its kind a stream is shifted, where there are more kinds than three."""

MEAN_GAP_US = 500_000
"""Table 3: half a second between two tuples of a stream, on average."""


@dataclass(frozen=True)
class TenStreams:
    """One data set: its distribution and the freedom the paper leaves."""

    distribution: Distribution
    shift: int = 3
    matches: float = 3.0
    in_window: int = 40_000
    """Tuples of a stream that are in its window, on average over the streams."""

    streams: int = 10
    seed: int = 0
    kinds: int = PARTITIONS

    @property
    def window_s(self) -> int:
        """The length of every window, in seconds."""
        return self.in_window * MEAN_GAP_US // 1_000_000

    @property
    def symbols(self) -> int:
        """So many that a probe finds as much as asked for."""
        chance = meeting_chance(self.distribution)
        return max(self.kinds, round(self.in_window * chance / self.matches))

    @property
    def aliases(self) -> tuple[str, ...]:
        """The streams' names in the query: s0, s1, …"""
        return tuple(f"s{number}" for number in range(self.streams))

    def tables(self, windows: float, seed: int = 0) -> dict[str, pa.Table]:
        """The streams over so many window lengths, by their names, in order of time."""
        rates = np.linspace(0.8, 1.2, self.streams)
        rates = rates[np.random.default_rng((self.seed, 3)).permutation(self.streams)]
        span_us = round(windows * self.in_window * MEAN_GAP_US)
        return {
            f"S{number}": self._stream(number, float(rates[number]), span_us, seed)
            for number in range(self.streams)
        }

    def _stream(self, number: int, rate: float, span_us: int, seed: int) -> pa.Table:
        rng = np.random.default_rng((self.seed, 4, seed, number))
        rows = rng.poisson(rate * span_us / MEAN_GAP_US)
        times = np.sort(rng.integers(0, span_us, rows))  # a Poisson process, given how many came
        symbol = rng.integers(0, self.symbols, rows)
        partition = self.partition(symbol)
        columns: dict[str, object] = {
            "id": np.arange(rows),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "symbol": symbol,
            "v": self._values(self._is_shifted(number, partition), rng),
        }
        for hint in range(HINTS):
            columns[f"a{hint + 1}"] = self._values(self._is_told(hint, partition), rng)
        return pa.table(columns)

    def _is_shifted(self, number: int, partition: Ints) -> Bools:
        """Whether a stream's joined values lie higher, by the partition of the symbol."""
        if self.kinds <= PARTITIONS:
            return np.asarray(partition == number % PARTITIONS)
        return np.isin((number - partition) % self.streams, MANY_KINDS_SHIFT)

    def _is_told(self, hint: int, partition: Ints) -> Bools:
        """Whether a hint's values lie higher, by the partition of the symbol."""
        if self.kinds <= PARTITIONS:
            return np.asarray(partition == hint % PARTITIONS)
        return np.asarray((partition + 1) >> hint & 1 == 1)

    def _values(self, shifted: Bools, rng: np.random.Generator) -> Ints:
        value = draw(self.distribution, len(shifted), rng) + np.where(shifted, self.shift, 0)
        return value % UNIFORM_VALUES if self.distribution == "uniform" else value

    def partition(self, symbol: Ints) -> Ints:
        """The true partition of each symbol, which its number does not tell."""
        shuffled = np.random.default_rng((self.seed, 5)).permutation(self.symbols)
        return np.asarray(shuffled[symbol] % self.kinds, np.int64)

    def query(self) -> Query:
        """The query S0 ⋈ S1 ⋈ … ⋈ S9."""
        first, *others = self.aliases
        joined = ", ".join(f"{a.upper()} {a} [RANGE {self.window_s} SECONDS]" for a in self.aliases)
        keys = [f"{first}.{key} = {a}.{key}" for a in others for key in ("symbol", "v")]
        selected = ", ".join([f"{first}.id", *(f"{a}.id AS id_{a}" for a in others)])
        return query(f"SELECT {selected} FROM {joined} WHERE {' AND '.join(keys)}", time="ts")
