"""By which keys joins that share a pass can be spread over shards, all of them at once.

Tuples that are together in a result must agree in every dimension of the hypercube. For several
joins a key is a dimension if, of the streams that own it, each join equates all that it reads, and
reads at least one: else a result would be made in no shard, or in several::

    q1  a.k = b.k                   a.k = b.k    both equate them: c is copied along it
    q2  a.k = b.k AND a.m = c.m     a.m = c.m    q1 reads a alone of them: one place, too
    q3  a.m = b.m                   none of q1's: its results have two places along a.k = b.k
"""

from __future__ import annotations

from collections.abc import Sequence

from querymesh.query.expr import Expr
from querymesh.query.join import JoinQuery, KeyClass


def shard_classes(streams: Sequence[str], joins: Sequence[JoinQuery]) -> tuple[KeyClass, ...]:
    """The classes of keys that are dimensions of all joins, numbered from 0."""
    found: list[KeyClass] = []
    for join in joins:
        for each in join.classes:
            members: dict[str, Expr] = {}
            for alias in streams:
                if alias in each.members:
                    more = {**members, alias: each.members[alias]}
                    if all(_agrees(other, more) for other in joins):
                        members = more
            known = any(repr(members) == repr(other.members) for other in found)
            if not known and all(set(members) & set(other.aliases) for other in joins):
                found.append(KeyClass(len(found), each.dtype, members))
    return tuple(found)


def _agrees(join: JoinQuery, members: dict[str, Expr]) -> bool:
    """Whether in every result of a join the keys of its streams are equal."""
    read = {alias: key for alias, key in members.items() if alias in join.aliases}
    if len(read) < 2:
        return True
    return any(
        all(repr(each.members.get(alias)) == repr(key) for alias, key in read.items())
        for each in join.classes
    )
