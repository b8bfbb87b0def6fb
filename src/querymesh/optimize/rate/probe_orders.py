"""From a join tree to the orders in which tuples probe the states of a join that keeps no trees.

A tuple of stream s climbs from its leaf to the root. At each join it meets the streams of the other
side, beginning with the first of them (from left to right) that something met so far is linked to,
and going on as that one would climb within its own side::

              ⋈                 a   probes  b, then c, then d
            /   \\               b           a,      c,      d
          ⋈       ⋈             c           d, then a, then b      if c - a or d - a are linked,
         / \\     / \\                        d, then b, then a      if only c - b or d - b are
        a   b   c   d

A tree that Spark runs keeps (a ⋈ b) as a state, which a tuple of c probes once; here it probes a
and b, one after the other. The tuples of a and b meet each other first either way, and that is what
the tree was chosen for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from querymesh.cost.plan_tree import JoinShape, PlanTree, join_shape, sources_of
from querymesh.errors import QueryError
from querymesh.optimize.rate.stream_query import RateQuery


def tree_orders(tree: PlanTree, query: RateQuery, of: Set[str]) -> dict[str, tuple[str, ...]]:
    """For each of these streams, the others in the order in which the tree brings them to it."""
    links: dict[str, set[str]] = {source.name: set() for source in sources_of(tree)}
    for predicate in query.predicates:
        links[predicate.left].add(predicate.right)
        links[predicate.right].add(predicate.left)
    return {
        source.name: tuple(_climbed(join_shape(tree), source.name, links, frozenset()))[1:]
        for source in sources_of(tree)
        if source.name in of
    }


def _climbed(
    tree: JoinShape, start: str, links: Mapping[str, Set[str]], met: frozenset[str]
) -> Iterator[str]:
    """The streams of a tree from one of them on, when some others are met already."""
    if isinstance(tree, str):
        yield tree
        return
    own, other = tree if start in _names(tree[0]) else (tree[1], tree[0])
    inside = tuple(_climbed(own, start, links, met))
    yield from inside
    known = met | {*inside}
    first = next((name for name in _names(other) if links[name] & known), None)
    if first is None:
        raise QueryError(
            f"nothing joins {', '.join(_names(other))} to {', '.join(sorted(known))}: a tuple that "
            "probes one state after the other needs a predicate between them"
        )
    yield from _climbed(other, first, links, known)


def _names(tree: JoinShape) -> tuple[str, ...]:
    return (tree,) if isinstance(tree, str) else (*_names(tree[0]), *_names(tree[1]))
