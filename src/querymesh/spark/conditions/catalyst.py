"""An expression as Catalyst analysed it: names resolved, types and casts in place; plain data.

Catalyst writes a tree as a list of nodes, parents first, each with the number of its children:

    [{"class": "...And", "num-children": 2}, {"class": "...RLike", "num-children": 2}, …]

One call brings it over from the JVM, so that reading it costs no round trip a node.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Node:
    """One node: `kind` is the name of its class (`RLike`), `fields` are its own arguments."""

    kind: str
    fields: Mapping[str, Any]
    children: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """The node and everything below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def references(self) -> tuple[str, ...]:
        """The columns it reads, each once, in the order in which it names them."""
        read = (node.fields["name"] for node in self.walk() if node.kind == "AttributeReference")
        return tuple(dict.fromkeys(read))

    @property
    def attributes(self) -> dict[int, str]:
        """The columns it reads: their names, by the numbers that tell them apart in a plan."""
        return {
            int(node.fields["exprId"]["id"]): str(node.fields["name"])
            for node in self.walk()
            if node.kind == "AttributeReference"
        }

    def conjuncts(self) -> list[tuple[Node, tuple[int, ...]]]:
        """The parts between its top-level ANDs, each with the way to it: which child, of which."""
        if self.kind != "And":
            return [(self, ())]
        return [
            (part, (number, *way))
            for number, child in enumerate(self.children)
            for part, way in child.conjuncts()
        ]

    def outermost(self, kind: str) -> list[tuple[int, ...]]:
        """The ways to its nodes of a kind; what is within one of them belongs to that."""
        if self.kind == kind:
            return [()]
        return [
            (number, *way)
            for number, child in enumerate(self.children)
            for way in child.outermost(kind)
        ]


def node_from_json(text: str) -> Node:
    """The tree that Catalyst's `toJSON` wrote.

    >>> text = '[{"class": "a.b.Not", "num-children": 1}, {"class": "a.b.X", "num-children": 0}]'
    >>> [node.kind for node in node_from_json(text).walk()]
    ['Not', 'X']
    """
    listed = iter(json.loads(text))

    def read() -> Node:
        entry = dict(next(listed))
        kind = str(entry.pop("class")).rpartition(".")[2]
        count = int(entry.pop("num-children"))
        return Node(kind, entry, tuple(read() for _ in range(count)))

    return read()
