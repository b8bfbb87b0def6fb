"""Which shards a tuple goes to when a join has no common key: a hypercube.

Afrati and Ullman's Shares: each dimension is a class of join attributes that the query makes
equal, and is cut into `share` parts. The shards are the cells. A tuple knows its coordinate in the
dimensions it owns, and is copied along those it lacks. `R.x = S.x AND S.y = T.y` on 2 × 2 shards::

                y = 0    y = 1          r (x = 1)          goes to shards 2, 3   copied along y
              +--------+--------+       s (x = 1, y = 0)   goes to shard  2
        x = 0 |   0    |   1    |       t (y = 0)          goes to shards 0, 2   copied along x
              +--------+--------+
        x = 1 |   2    |   3    |       r, s and t join: they meet in shard 2 and nowhere else
              +--------+--------+

The tuples of a result agree in every dimension, and every dimension has an owner among them: all
its coordinates are fixed, so that exactly one shard sees them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from querymesh.errors import QueryError


@dataclass(frozen=True, slots=True)
class Dimension:
    """A class of attributes that are equal in every result, and the streams that have one."""

    name: str
    owners: frozenset[str]


def rows_of(stream: str) -> Dimension:
    """The private dimension of a stream: its rows are spread by their hash, the others copied.

    A join by comparison alone has no other; with equalities it can still be worth a share.
    """
    return Dimension(f"rows of {stream}", frozenset({stream}))


def join_dimensions(
    streams: Sequence[str], classes: Mapping[str, Iterable[str]]
) -> tuple[Dimension, ...]:
    """The classes of equal attributes, by name the streams that have one; then all streams' rows.

    >>> [d.name for d in join_dimensions(["a", "b"], {"a.x = b.x": ["a", "b"]})]
    ['a.x = b.x', 'rows of a', 'rows of b']
    """
    shared = (Dimension(name, frozenset(owners)) for name, owners in classes.items())
    return (*shared, *map(rows_of, streams))


@dataclass(frozen=True)
class Hypercube:
    """The shards as cells: shard = Σ coordinate · stride, the last dimension running fastest."""

    dimensions: tuple[Dimension, ...]
    shares: tuple[int, ...]
    shards: int

    def __post_init__(self) -> None:
        check_dimensions(self.dimensions, self.shards)
        if len(self.shares) != len(self.dimensions) or min(self.shares, default=1) < 1:
            raise QueryError(
                f"the shares {self.shares} do not fit {len(self.dimensions)} dimensions: "
                "give each dimension a share of 1 or more"
            )
        if prod(self.shares) != self.shards:
            raise QueryError(
                f"the shares {self.shares} make {prod(self.shares)} shards and not "
                f"{self.shards}: their product must be the number of shards"
            )

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """How far apart in shard numbers two neighbours along each dimension are."""
        return tuple(prod(self.shares[d + 1 :]) for d in range(len(self.shares)))

    def coordinates(self, shard: int) -> tuple[int, ...]:
        """Where a shard lies in each dimension."""
        return tuple(
            shard // stride % share for stride, share in zip(self.strides, self.shares, strict=True)
        )

    def owned(self, stream: str) -> tuple[int, ...]:
        """The dimensions, by number, that have more than one part and place this stream's rows."""
        return tuple(d for d in self._cut if stream in self.dimensions[d].owners)

    def is_home(self, stream: str, shard: int) -> bool:
        """Whether a shard has the first copy of the tuples of a stream that it gets.

        Each tuple has one, so what is counted at home is counted once.
        """
        owned = self.owned(stream)
        return all(c == 0 for d, c in enumerate(self.coordinates(shard)) if d not in owned)

    def replication(self, stream: str) -> int:
        """To how many shards each row of a stream goes."""
        return self.shards // prod(self.shares[d] for d in self.owned(stream))

    def offsets(self, stream: str) -> tuple[int, ...]:
        """What to add to a row's own cell for each of its copies, ascending, 0 first."""
        lacked = [d for d in self._cut if stream not in self.dimensions[d].owners]
        steps = ([self.strides[d] * k for k in range(self.shares[d])] for d in lacked)
        return tuple(sum(step) for step in product(*steps))

    def expected_replication(self, rates: Mapping[str, float]) -> float:
        """Rows sent for each row that comes in, when streams come at these rates.

        Only the proportions of the rates matter; where nothing comes at all they count as equal.
        """
        known = checked_rates(self.dimensions, rates)
        total = sum(known.values())
        sent = sum(rate * self.replication(stream) for stream, rate in known.items())
        return sent / total if total else 1.0

    def expected_load(self, rates: Mapping[str, float]) -> float:
        """The rows one shard gets, as a share of the rows a single shard would get."""
        return self.expected_replication(rates) / self.shards

    @property
    def _cut(self) -> tuple[int, ...]:
        return tuple(d for d, share in enumerate(self.shares) if share > 1)


def check_dimensions(dimensions: Sequence[Dimension], shards: int) -> None:
    """Refuse dimensions that no cube of so many shards can have."""
    if shards < 1:
        raise QueryError(f"{shards} shards cannot hold anything: write shards=1 or more")
    for dimension in dimensions:
        if not dimension.owners:
            raise QueryError(
                f"no stream has an attribute of the dimension {dimension.name!r}, so every result "
                "would be made once for each of its parts: leave it out, or name its owners"
            )
    if shards > 1 and not dimensions:
        raise QueryError(f"nothing to spread over {shards} shards: name the streams' dimensions")
    names = [dimension.name for dimension in dimensions]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise QueryError(f"two dimensions are called {twice[0]!r}: give each a name of its own")


def checked_rates(dimensions: Sequence[Dimension], rates: Mapping[str, float]) -> dict[str, float]:
    """The rates of all streams: those that own nothing too, which are copied everywhere."""
    owning = {stream for dimension in dimensions for stream in dimension.owners}
    missing = sorted(owning - set(rates))
    if missing:
        raise QueryError(
            f"no rate is given for {', '.join(missing)}: name each stream's rows a second, "
            "or 1 for each if they are not known"
        )
    for stream, rate in rates.items():
        if not 0 <= rate < float("inf"):
            raise QueryError(f"the rate of {stream} is {rate}: a rate is a number from 0 on")
    return dict(rates)
