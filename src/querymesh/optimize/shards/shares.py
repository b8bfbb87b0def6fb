"""The shares of a hypercube: into how many parts each of its dimensions is cut.

Shares are chosen to send the fewest copies: minimise Σ rate · p / (product of the shares a stream
owns), the product of all shares being p. The search is exact up to a limit; see `choose_shares`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from querymesh.mesh.hypercube import Dimension, Hypercube, check_dimensions, checked_rates
from querymesh.optimize.shards.share_search import ShareSearch


def choose_shares(
    dimensions: Sequence[Dimension], rates: Mapping[str, float], shards: int
) -> Hypercube:
    """The cube of exactly `shards` cells that sends the fewest rows.

    No other factorisation of `shards` over the dimensions sends fewer: the search is exact, unless
    it meets more than 100,000 states, and then takes the best of those. Cliques of ten streams on
    up to 1024 shards meet some thousand. Of several that send the same, the earliest dimension has
    the largest share, then the next, and so on; so few and early dimensions are cut. A number that
    does not factor well is taken as it is: 7 shards can only cut one dimension, and `replication`
    says what that costs (see `best_shards_at_most`).

    >>> from querymesh.mesh.hypercube import join_dimensions
    >>> chain = join_dimensions("rst", {"x": "rs", "y": "st"})
    >>> choose_shares(chain, {"r": 1, "s": 1, "t": 1}, 4).shares
    (2, 2, 1, 1, 1)
    """
    kept, owners, weights = _problem(dimensions, rates, shards)
    found = ShareSearch(owners, weights, shards).run() if owners else ()
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
        (ShareSearch(owners, weights, shards).floor() / shards, shards)
        for shards in range(1, most + 1)
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
    check_dimensions(dimensions, shards)
    rate_of = checked_rates(dimensions, rates)
    total = sum(rate_of.values())
    streams = {stream: number for number, stream in enumerate(rate_of)}
    kept = [
        d
        for d, dimension in enumerate(dimensions)
        if not any(
            dimension.owners < other.owners or (dimension.owners == other.owners and e < d)
            for e, other in enumerate(dimensions)
        )
    ]
    owners = [tuple(sorted(streams[s] for s in dimensions[d].owners)) for d in kept]
    weights = [rate / total if total else 1.0 / len(rate_of) for rate in rate_of.values()]
    return kept, owners, weights
