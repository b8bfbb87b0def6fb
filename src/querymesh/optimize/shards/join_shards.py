"""On how many shards a join runs, and how its streams are spread over them."""

from __future__ import annotations

from collections.abc import Mapping

from querymesh.errors import OptionError, UnsupportedError
from querymesh.mesh.hypercube import Dimension, Hypercube, join_dimensions
from querymesh.optimize.shards.shares import choose_shares
from querymesh.query.join import JoinQuery

LEAST_RATE = 1e-3
"""The rate of a stream that had no rows in the sample: some may come while the query runs."""


def shard_count(join: JoinQuery, asked: int | None, parallelism: int) -> int:
    """The shards asked for, or as many as there are cores; one where windows count rows."""
    if asked is not None and (isinstance(asked, bool) or not isinstance(asked, int) or asked < 1):
        raise OptionError(f"shards is a whole number from 1 up, not {asked!r}")
    if join.counts_rows:
        if asked not in (None, 1):
            raise UnsupportedError(
                f"[ROWS n] counts arrivals, which takes one shard, not {asked}: leave shards= out, "
                "or give every stream a [RANGE ...] window"
            )
        return 1
    return asked or max(parallelism, 1)


def join_cube(join: JoinQuery, shards: int, rates: Mapping[str, float]) -> Hypercube:
    """The hypercube that sends the fewest rows; a stream without a rate counts as 1."""
    rate_of = {alias: max(rates.get(alias, 1.0), LEAST_RATE) for alias in join.aliases}
    return choose_shares(_dimensions(join), rate_of, shards)


def _dimensions(join: JoinQuery) -> tuple[Dimension, ...]:
    """The classes of keys that several streams have and Spark can compute."""
    owners = {
        each.name: [alias for alias in each.members if alias in join.aliases]
        for each in join.classes
        if each.in_catalyst
    }
    return join_dimensions(join.spread, {n: own for n, own in owners.items() if len(own) > 1})
