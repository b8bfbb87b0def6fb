"""The data and the query of QM § 6.1 with static partners: S0 joined with ten look-up tables.

Figure 10 runs on windows (`ten_streams`); Figures 11a, 12 and 13 use this one, whose probes are
real work.

The paper does not publish its generator. This one keeps what Tables 1 to 3 say and adds as little
as it can:

- S0 has six attributes, `a1` to `a6`, beside its number and its symbol; their values and those in
  the keys of the ten partners follow Poisson(1) or Uniform(0 … 100), as in Table 2;
- S0 has p = 3 partitions in equal shares and random order. In partition k the values of some
  attributes (every third, from the k-th) lie `shift` higher than elsewhere::

      partition     a1  a2  a3  a4  a5  a6      Poisson(1) is thin from 2 upwards, so probes by
          0         +s          +s              a shifted value mostly find nothing; the uniform
          1             +s          +s          values are shifted modulo 101 and stay uniform:
          2                 +s          +s      the same data with no skew in it

- partners S1 … S10 are static: S_j is asked by `symbol` and one of
  `a1` … `a6`. A probe by an unshifted value finds `matches` rows on average, between 0.8 and 1.2
  times that from one partner to the next, so that a probe drops a tuple or multiplies it;
- nothing names the partition: a classifier has to find it in the values, which overlap.

Keys are pseudonyms: S_j holds the keyed BLAKE2 hash of (symbol, value) under a secret of its own,
as when the partners are different houses. So a probe is some microseconds of real work, tuple by
tuple, about the same for each partner, which is also how the paper's engine worked. With
`hashed=False` keys are bare integers, and a vectorised probe takes a quarter of a microsecond.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, factorial
from typing import Literal

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.query.model import Query
from querymesh.query.parse.query import query
from querymesh.query.predicate.predicate import Predicate

Distribution = Literal["poisson", "uniform"]

PARTITIONS = 3
VALUES = 6
UNIFORM_VALUES = 101
SOURCE = "S0"

_POISSON = np.array([exp(-1) / factorial(k) for k in range(15)])


@dataclass(frozen=True)
class Pseudonym:
    """The keyed hash under which one partner keeps (symbol, value); 63 bits of it."""

    secret: bytes

    def __call__(self, symbol: int, value: int) -> int:
        """The pseudonym of some values."""
        named = b"%d|%d" % (symbol, value)
        digest = hashlib.blake2b(named, digest_size=8, key=self.secret).digest()
        return int.from_bytes(digest, "little") >> 1


@dataclass(frozen=True)
class TenWay:
    """One data set: its distribution and the freedom the paper leaves."""

    distribution: Distribution = "poisson"
    shift: int = 3
    matches: float = 1.25
    symbols: int = 1000
    partners: int = 10
    hashed: bool = True
    seed: int = 0

    def source(self, rows: int, seed: int = 0) -> tuple[pa.Table, Ints]:
        """Tuples of S0, numbered by `id`, and the true partition of each."""
        rng = np.random.default_rng((self.seed, 1, seed))
        partition = rng.integers(0, PARTITIONS, rows)
        columns = {"id": np.arange(rows), "symbol": rng.integers(0, self.symbols, rows)}
        for number in range(VALUES):
            shifted = np.where(partition == number % PARTITIONS, self.shift, 0)
            value = draw(self.distribution, rows, rng) + shifted
            if self.distribution == "uniform":
                value %= UNIFORM_VALUES
            columns[f"a{number + 1}"] = value
        return pa.table(columns), partition

    def partner_tables(self) -> dict[str, pa.Table]:
        """S1, S2, …: rows of a key and a payload `v`."""
        rng = np.random.default_rng((self.seed, 2))
        rate = np.linspace(0.8, 1.2, self.partners)[rng.permutation(self.partners)]
        return {
            f"S{number}": self._partner(number, self.matches * rate[number - 1], rng)
            for number in range(1, self.partners + 1)
        }

    def _partner(self, number: int, matches: float, rng: np.random.Generator) -> pa.Table:
        rows = round(matches * self.symbols / meeting_chance(self.distribution))
        symbol = rng.integers(0, self.symbols, rows)
        value = draw(self.distribution, rows, rng)
        v = np.arange(rows)
        if not self.hashed:
            return pa.table({"symbol": symbol, "a": value, "v": v})
        hidden = map(self._pseudonym(number), symbol.tolist(), value.tolist())
        return pa.table({"key": pa.array(hidden, pa.int64()), "v": v})

    def query(self) -> Query:
        """S0 joined with every partner, as the paper has it: S0 ⋈ S1 ⋈ … ⋈ S10."""
        numbers = range(1, self.partners + 1)
        given = {f"pseudonym_{n}": self._function(n) for n in numbers} if self.hashed else {}
        selected = ", ".join(["s0.id", *(f"s{n}.v AS v{n}" for n in numbers)])
        joined = ", ".join(["S0 s0", *(f"S{n} s{n}" for n in numbers)])
        keys = " AND ".join(self._join(n) for n in numbers)
        return query(f"SELECT {selected} FROM {joined} WHERE {keys}", functions=given)

    def _join(self, number: int) -> str:
        value = f"s0.a{(number - 1) % VALUES + 1}"
        if self.hashed:
            return f"pseudonym_{number}(s0.symbol, {value}) = s{number}.key"
        return f"s0.symbol = s{number}.symbol AND {value} = s{number}.a"

    def _pseudonym(self, number: int) -> Pseudonym:
        return Pseudonym(f"secret of S{number}".encode())

    def _function(self, number: int) -> Predicate:
        name = f"pseudonym_{number}"
        return Predicate(self._pseudonym(number), name, returns=pa.int64(), vectorised=False)

    def inputs(self, rows: int) -> Mapping[str, pa.Table]:
        """The table of every relation of the query, by name."""
        return {SOURCE: self.source(rows)[0], **self.partner_tables()}


def draw(distribution: Distribution, size: int, rng: np.random.Generator) -> Ints:
    """Values of Table 2: Poisson with λ = 1, or the whole numbers from 0 to 100 alike."""
    if distribution == "poisson":
        return rng.poisson(1.0, size).astype(np.int64)
    return rng.integers(0, UNIFORM_VALUES, size)


def meeting_chance(distribution: Distribution) -> float:
    """How likely two values of a distribution are equal."""
    if distribution == "poisson":
        return float((_POISSON**2).sum())
    return 1 / UNIFORM_VALUES
