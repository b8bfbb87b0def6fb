"""Which shards a tuple goes to when a join has no common key: the hypercube and its shares.

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

Shares are chosen to send the fewest copies: minimise Σ rate · p / (product of the shares a stream
owns), the product of all shares being p. The search is exact up to a limit; see `choose_shares`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import log, prod

import numpy as np

from querymesh.errors import QueryError

_SAME = 1e-9
"""Costs this near to each other, relatively, differ by rounding only."""

_MOST_STATES = 100_000
"""After so many the search returns the best it has: some ten seconds."""

Owners = Sequence[tuple[int, ...]]
Weights = Sequence[float]


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
        _check(self.dimensions, self.shards)
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
        known = _rates(self.dimensions, rates)
        total = sum(known.values())
        sent = sum(rate * self.replication(stream) for stream, rate in known.items())
        return sent / total if total else 1.0

    def expected_load(self, rates: Mapping[str, float]) -> float:
        """The rows one shard gets, as a share of the rows a single shard would get."""
        return self.expected_replication(rates) / self.shards

    @property
    def _cut(self) -> tuple[int, ...]:
        return tuple(d for d, share in enumerate(self.shares) if share > 1)


def choose_shares(
    dimensions: Sequence[Dimension], rates: Mapping[str, float], shards: int
) -> Hypercube:
    """The cube of exactly `shards` cells that sends the fewest rows.

    No other factorisation of `shards` over the dimensions sends fewer: the search is exact, unless
    it meets more than 100,000 states, and then takes the best of those. Cliques of ten streams on
    up to 1024 shards meet some thousand. Of several that send the
    same, the earliest dimension has the largest share, then the next, and so on; so few and early
    dimensions are cut. A number that does not factor well is taken as it is: 7 shards can only
    cut one dimension, and `replication` says what that costs (see `best_shards_at_most`).

    >>> chain = join_dimensions("rst", {"x": "rs", "y": "st"})
    >>> choose_shares(chain, {"r": 1, "s": 1, "t": 1}, 4).shares
    (2, 2, 1, 1, 1)
    """
    kept, owners, weights = _problem(dimensions, rates, shards)
    found = _Search(owners, weights, shards).run() if owners else ()
    shares = [1] * len(dimensions)
    for d, share in zip(kept, found, strict=True):
        shares[d] = share
    return Hypercube(tuple(dimensions), tuple(shares), shards)


def best_shards_at_most(
    dimensions: Sequence[Dimension], rates: Mapping[str, float], most: int
) -> Hypercube:
    """The cube of at most `most` cells whose shards get the fewest rows each; of equals, fewest.

    It differs from `choose_shares` where `most` factors badly: a comparison join of two like
    streams on 7 shards has 4/7 of all rows in each, on 6 (as 2 × 3) only 5/12.
    """
    _, owners, weights = _problem(dimensions, rates, most)
    floors = sorted(
        (_Search(owners, weights, shards).floor() / shards, shards) for shards in range(1, most + 1)
    )
    best: Hypercube | None = None
    best_key = (float("inf"), 0)
    for floor, shards in floors:
        if best is not None and floor > best_key[0] * (1 + 1e-9):
            break
        cube = choose_shares(dimensions, rates, shards)
        key = (round(cube.expected_load(rates), 12), shards)
        if key < best_key:
            best, best_key = cube, key
    assert best is not None
    return best


def _problem(
    dimensions: Sequence[Dimension], rates: Mapping[str, float], shards: int
) -> tuple[list[int], list[tuple[int, ...]], list[float]]:
    """The dimensions worth a share, their owners by number, and the streams' parts of all rows.

    A share moved from a dimension to one with more owners, or to an earlier one with the same,
    copies no stream more often: the first dimension of each largest set of owners is enough.
    """
    _check(dimensions, shards)
    known = _rates(dimensions, rates)
    total = sum(known.values())
    streams = {stream: number for number, stream in enumerate(known)}
    kept = [
        d
        for d, dimension in enumerate(dimensions)
        if not any(
            dimension.owners < other.owners or (dimension.owners == other.owners and e < d)
            for e, other in enumerate(dimensions)
        )
    ]
    owners = [tuple(sorted(streams[s] for s in dimensions[d].owners)) for d in kept]
    weights = [rate / total if total else 1.0 / len(known) for rate in known.values()]
    return kept, owners, weights


def _check(dimensions: Sequence[Dimension], shards: int) -> None:
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


def _rates(dimensions: Sequence[Dimension], rates: Mapping[str, float]) -> dict[str, float]:
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


class _Search:
    """Depth first over dimensions, cut off by a lower bound.

    A stream that is part r of all rows and owns shares whose product is c costs r · p / c. Each
    dimension in turn takes a divisor of what is left of p, the largest first, so that the first
    of several equally good solutions is the one with the largest early shares.

    The bound. Let y be the logarithm of what the remaining dimensions add to a stream's product.
    If streams have weights such that no dimension's owners weigh more than 1 together, then
    Σ weight · y ≤ log(left) whatever the shares. A stream's cost falls with y as e^-y, and y can
    only be the logarithm of a divisor of `left`; the lines between these points lie below every
    solution. Spending log(left) on what falls most for its weight is then a lower bound::

         cost |*
              |   *                divisors 1, 2, 4, 8: each piece is less steep than the one
              |       *            before, so that they are spent on in their order
              |           *
              +---------------- y

    A state is not entered twice. Streams that the remaining dimensions and the rates do not tell
    apart are sorted by their products, and of streams that own nothing more only the cost is
    kept: on a clique of ten like streams this makes the search short.
    """

    def __init__(self, owners: Owners, rates: Sequence[float], shards: int) -> None:
        self._owners = owners
        self._rates = rates
        self._shards = shards
        self._weights = _weights_by_size(owners, len(rates))
        self._fitted: dict[tuple[int, int], Weights] = {}
        self._alike: dict[int, list[list[int]]] = {}
        self._seen: dict[tuple[object, ...], float] = {}
        self._best: tuple[int, ...] | None = None
        self._best_cost = float("inf")

    def run(self) -> tuple[int, ...]:
        """The shares; the best known where there are too many states to be sure."""
        # The walk's cost is a limit and not a solution: among equals the search's order decides.
        walked = _downhill(self._owners, self._rates, self._shards)
        self._best_cost = _cost(self._owners, self._rates, self._shards, walked)
        self._descend((), self._shards, [1] * len(self._rates))
        return self._best or tuple(walked)

    @property
    def is_exact(self) -> bool:
        """Whether the search ended by itself."""
        return len(self._seen) < _MOST_STATES

    def floor(self) -> float:
        """What any shares cost at least."""
        return self._bound(0, self._shards, [rate * self._shards for rate in self._rates])

    def _descend(self, shares: tuple[int, ...], left: int, products: list[int]) -> None:
        d = len(shares)
        more = len(self._owners) - d
        if left == 1 or more == 1:
            self._offer(shares + (left, *(1,) * (more - 1))[:more])
            return
        if not self.is_exact or self._was_here(d, left, products):
            return
        for share in reversed(divisors(left)):
            grown = list(products)
            for s in self._owners[d]:
                grown[s] *= share
            costs = [rate * self._shards / c for rate, c in zip(self._rates, grown, strict=True)]
            if self._worth(self._bound(d + 1, left // share, costs)):
                self._descend((*shares, share), left // share, grown)

    def _was_here(self, d: int, left: int, products: Sequence[int]) -> bool:
        """Whether a state that is as good was entered before; if not, this one now is."""
        if d not in self._alike:
            self._alike[d] = _alike(self._owners[d:], self._rates)
        done, *groups = self._alike[d]
        state = (d, left, *(tuple(sorted(products[s] for s in group)) for group in groups))
        cost = sum(self._rates[s] * self._shards / products[s] for s in done)
        if self._seen.get(state, float("inf")) <= cost * (1 + _SAME):
            return True
        self._seen[state] = cost
        return False

    def _worth(self, cost: float) -> bool:
        """Whether something of this cost would replace what is known."""
        slack = _SAME if self._best is None else -_SAME
        return cost <= self._best_cost * (1 + slack)

    def _offer(self, shares: tuple[int, ...]) -> None:
        cost = _cost(self._owners, self._rates, self._shards, shares)
        if self._worth(cost):
            self._best, self._best_cost = shares, cost

    def _bound(self, d: int, left: int, costs: Sequence[float]) -> float:
        """No shares of the dimensions from `d` on, of product `left`, bring the cost below this.

        Weights by size are tight where streams own dimensions of one size; others are fitted.
        """
        if left == 1 or d == len(self._owners):
            return sum(costs)
        bound = _spend(costs, self._weights[d], left)
        if not self._worth(bound):
            return bound
        fitted = self._fitted.get((d, left))
        if fitted is None:
            fitted = self._fitted[d, left] = _fitted_weights(self._owners[d:], costs, left)
        return max(bound, _spend(costs, fitted, left))


def _spend(costs: Sequence[float], weights: Weights, left: int) -> float:
    """The bound: what remains of the costs when log(left) is spent where they fall fastest."""
    total = sum(costs)
    pieces = [
        (cost * steepness / weight, length * weight)
        for cost, weight in zip(costs, weights, strict=True)
        if weight
        for steepness, length in _pieces(left)
    ]
    pieces.sort(reverse=True)
    budget = log(left)
    for gain, length in pieces:
        if length >= budget:
            return total - gain * budget
        total -= gain * length
        budget -= length
    return total


def _weights_by_size(owners: Owners, streams: int) -> list[Weights]:
    """From each dimension on: 1 / owners of a stream's largest; 0 where it owns none of them."""
    weights = [[0.0] * streams]
    for owning in reversed(owners):
        here = list(weights[-1])
        for s in owning:
            here[s] = min(here[s] or 1.0, 1.0 / len(owning))
        weights.append(here)
    return [*reversed(weights)]


def _fitted_weights(owners: Owners, costs: Sequence[float], left: int) -> Weights:
    """The weights that bound best if shares need not be integers (Frank and Wolfe's steps).

    With x the logarithms of the shares and a = cost · e^-y, the tangent at any x bounds the cost
    from below by Σ a (1 + y) - log(left) · max over dimensions of Σ a of its owners; a over that
    maximum are weights. The best of some sixty tangents is taken.
    """
    owns = np.zeros((len(owners), len(costs)))
    for d, owning in enumerate(owners):
        owns[d, list(owning)] = 1.0
    at_start, length = np.array(costs), log(left)
    x = np.zeros(len(owners))
    best, weights = -np.inf, at_start
    for step in range(60):
        y = x @ owns
        a = at_start * np.exp(-y)
        gains = owns @ a
        steepest = int(gains.argmax())
        tangent = float((a * (1 + y)).sum() - length * gains[steepest])
        if tangent > best and gains[steepest] > 0:
            best, weights = tangent, a / gains[steepest]
        pace = 2.0 / (step + 3)
        x *= 1 - pace
        x[steepest] += pace * length
    # A weight of 0 says that a stream owns nothing: one that weighs nothing is not that.
    return [float(w) for w in np.where(owns.any(axis=0), np.maximum(weights, 1e-12), 0.0)]


def _alike(remaining: Owners, rates: Sequence[float]) -> list[list[int]]:
    """The streams that own none of these dimensions, then groups in which any two can be swapped.

    Swapping must give the same dimensions and the same rates again.
    """
    every = {frozenset(owning) for owning in remaining}

    def swappable(s: int, t: int) -> bool:
        parted = [owning for owning in every if (s in owning) != (t in owning)]
        return rates[s] == rates[t] and all(owning ^ {s, t} in every for owning in parted)

    owning_streams = sorted(frozenset().union(*every))
    groups: list[list[int]] = []
    for s in owning_streams:
        group = next((group for group in groups if swappable(group[0], s)), None)
        if group is None:
            groups.append([s])
        else:
            group.append(s)
    return [sorted(set(range(len(rates))) - set(owning_streams)), *groups]


def _cost(owners: Owners, rates: Sequence[float], shards: int, shares: Sequence[int]) -> float:
    products = [1] * len(rates)
    for owning, share in zip(owners, shares, strict=True):
        for s in owning:
            products[s] *= share
    return sum(rate * (shards // c) for rate, c in zip(rates, products, strict=True))


def _downhill(owners: Owners, rates: Sequence[float], shards: int) -> list[int]:
    """A good solution: prime by prime where it costs least, then moved while that saves."""
    shares = [1] * len(owners)

    def cheapest_place(prime: int) -> tuple[float, int]:
        costs = []
        for d in range(len(owners)):
            shares[d] *= prime
            costs.append((_cost(owners, rates, shards, shares), d))
            shares[d] //= prime
        return min(costs)

    primes = _primes(shards)
    places = []
    for prime in primes:
        places.append(cheapest_place(prime)[1])
        shares[places[-1]] *= prime
    moved = True
    while moved:
        moved = False
        for k, prime in enumerate(primes):
            before = _cost(owners, rates, shards, shares)
            shares[places[k]] //= prime
            cost, place = cheapest_place(prime)
            if cost < before * (1 - _SAME):
                places[k], moved = place, True
            shares[places[k]] *= prime
    return shares


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    return tuple(d for d in range(1, number + 1) if number % d == 0)


@lru_cache(maxsize=4096)
def _pieces(number: int) -> tuple[tuple[float, float], ...]:
    """Between neighbouring divisors: how steeply 1/divisor falls with its logarithm, how long."""
    pairs = pairwise(divisors(number))
    return tuple(((1 / a - 1 / b) / log(b / a), log(b / a)) for a, b in pairs)


def _primes(number: int) -> list[int]:
    """The prime factors, largest first, each as often as it occurs."""
    found = []
    for candidate in range(2, number + 1):
        while number % candidate == 0:
            found.append(candidate)
            number //= candidate
    return found[::-1]
