"""Which operators must come before which: `after=` resolved, cycles refused, chains closed."""

from __future__ import annotations

from collections.abc import Mapping

from querymesh.errors import QueryError

Before = Mapping[int, frozenset[int]]


def all_predecessors(direct: Before, names: Mapping[int, str]) -> dict[int, frozenset[int]]:
    """For each operator all that must come earlier, directly or through others.

    QueryError, with the way round, if an operator would have to come before itself.
    """
    complete: dict[int, frozenset[int]] = {}

    def visit(index: int, path: tuple[int, ...]) -> frozenset[int]:
        if index in path:
            cycle = (*path[path.index(index) :], index)
            raise QueryError(
                f"after= goes round in a circle: {' -> '.join(names[i] for i in cycle)}"
            )
        if index not in complete:
            earlier = direct[index]
            for other in sorted(direct[index]):
                earlier |= visit(other, (*path, index))
            complete[index] = earlier
        return complete[index]

    for index in direct:
        visit(index, ())
    return complete
