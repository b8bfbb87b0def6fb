"""The four joins of `bench join`: which streams there are, and which attribute ties which of them.

    3-way, 5-way          4-clique                5-star

    A - B - C (- D - E)   A ----- B               B       C
    one key for all       | \\   / |                \\     /
                          |  \\ /  |                 \\   /
                          |  / \\  |                   A
                          | /   \\ |                 /   \
                          C ----- D                D     E
                          an attribute a pair     the centre has an attribute an arm

The first needs one key of a partitioner; the others cannot be partitioned on any one attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True)
class JoinGraph:
    """A join graph. `ties` gives for each attribute the streams that carry it, equal in a result.

    >>> JOIN_GRAPHS["star"].conditions()
    ['a.ab = b.ab', 'a.ac = c.ac', 'a.ad = d.ad', 'a.ae = e.ae']
    """

    name: str
    streams: tuple[str, ...]
    ties: Mapping[str, tuple[str, ...]]

    @property
    def aliases(self) -> tuple[str, ...]:
        """The streams' names in a query, which are their own in small letters."""
        return tuple(stream.lower() for stream in self.streams)

    @property
    def common_key(self) -> bool:
        """Whether one attribute ties all streams."""
        return len(self.ties) == 1

    def attributes(self, stream: str) -> list[str]:
        """The join attributes a stream carries."""
        return [name for name, tied in self.ties.items() if stream in tied]

    def shared(self, stream: str, others: tuple[str, ...]) -> list[tuple[str, str]]:
        """What ties a stream to streams joined before it: the attribute, and one that has it."""
        found = []
        for name in self.attributes(stream):
            partners = [other for other in others if other in self.ties[name]]
            if partners:
                found.append((name, partners[0]))
        return found

    def conditions(self) -> list[str]:
        """The predicates of the query, each equality once."""
        return [
            f"{tied[0].lower()}.{name} = {other.lower()}.{name}"
            for name, tied in self.ties.items()
            for other in tied[1:]
        ]

    def ids(self) -> list[str]:
        """The columns of a result: the id of each member."""
        return [f"{alias}_id" for alias in self.aliases]


def _common_key(name: str, streams: str) -> JoinGraph:
    return JoinGraph(name, tuple(streams), {"k": tuple(streams)})


def _pairs(name: str, streams: str, pairs: list[tuple[str, ...]]) -> JoinGraph:
    return JoinGraph(name, tuple(streams), {"".join(pair).lower(): pair for pair in pairs})


JOIN_GRAPHS: dict[str, JoinGraph] = {
    shape.name: shape
    for shape in (
        _common_key("3-way", "ABC"),
        _common_key("5-way", "ABCDE"),
        _pairs("clique", "ABCD", list(combinations("ABCD", 2))),
        _pairs("star", "ABCDE", [("A", arm) for arm in "BCDE"]),
    )
}
