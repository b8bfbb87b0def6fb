"""The search for shares: exact, by branch and bound over the factorisations of the shards."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import log

import numpy as np

_SAME = 1e-9
"""Costs this near to each other, relatively, differ by rounding only."""

_MOST_STATES = 100_000
"""States after which the search returns the best it has: some ten seconds."""

Owners = Sequence[tuple[int, ...]]
Weights = Sequence[float]


class ShareSearch:
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
        """The shares that cost least; the best that were met if there are too many states."""
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
            self._offer((*shares, left, *(1,) * (more - 1)))
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
            self._alike[d] = alike(self._owners[d:], self._rates)
        done, *groups = self._alike[d]
        state = (d, left, *(tuple(sorted(products[s] for s in group)) for group in groups))
        cost = sum(self._rates[s] * self._shards / products[s] for s in done)
        if self._seen.get(state, float("inf")) <= cost * (1 + _SAME):
            return True
        self._seen[state] = cost
        return False

    def _worth(self, cost: float) -> bool:
        """Whether shares of this cost would replace the best so far."""
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
        if left == 1:
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


def alike(remaining: Owners, rates: Sequence[float]) -> list[list[int]]:
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
    """A good solution: each prime factor to the dimension where it costs least, then moved on as
    long as that saves."""
    shares = [1] * len(owners)

    def cheapest_dimension(prime: int) -> tuple[float, int]:
        costs = []
        for d in range(len(owners)):
            shares[d] *= prime
            costs.append((_cost(owners, rates, shards, shares), d))
            shares[d] //= prime
        return min(costs)

    primes = _primes(shards)
    dimension_of: list[int] = []
    for prime in primes:
        dimension_of.append(cheapest_dimension(prime)[1])
        shares[dimension_of[-1]] *= prime
    moved = True
    while moved:
        moved = False
        for k, prime in enumerate(primes):
            before = _cost(owners, rates, shards, shares)
            shares[dimension_of[k]] //= prime
            cost, dimension = cheapest_dimension(prime)
            if cost < before * (1 - _SAME):
                dimension_of[k], moved = dimension, True
            shares[dimension_of[k]] *= prime
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
