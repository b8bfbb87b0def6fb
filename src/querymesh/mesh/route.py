"""Routes as data: an order of all operators, and one whose steps leave choices open (QM § 5.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from querymesh.errors import TrainingError
from querymesh.stats.profile import Route

UncertainRoute = tuple[tuple[int, ...], ...]
"""A route whose steps are choices: `((2,), (3, 1), (4,))` visits 2, then 3 and 1 in any order."""


def certain(route: Route) -> UncertainRoute:
    """A route that leaves nothing open."""
    return tuple((index,) for index in route)


def uncertain_text(route: UncertainRoute, joiner: str = ", ") -> str:
    """As the paper writes it.

    >>> uncertain_text(((2,), (3, 1), (4,)))
    '2, 3|1, 4'
    """
    return joiner.join("|".join(map(str, choice)) for choice in route)


def route_fault(route: Route, after: Sequence[frozenset[int]]) -> str:
    """What makes a route impossible, as the end of a sentence about it; empty if nothing does."""
    if sorted(route) != list(range(1, len(after) + 1)):
        return f"is not an order of the {len(after)} operators"
    done: set[int] = set()
    for operator in route:
        late = after[operator - 1] - done
        if late:
            return (
                f"visits operator {operator} before operator {min(late)}, which must come earlier"
            )
        done.add(operator)
    return ""


def written_route(after: Sequence[frozenset[int]]) -> Route:
    """The order as written, moved only as far as precedence asks: the route before any learning."""
    return by_precedence(after, lambda ready: ready[0])


def by_precedence(after: Sequence[frozenset[int]], choose: Callable[[Sequence[int]], int]) -> Route:
    """A route of what is chosen, each time, of the operators that wait for no other."""
    route: list[int] = []
    waiting = list(range(1, len(after) + 1))
    while waiting:
        ready = [k for k in waiting if not (after[k - 1] & set(waiting))]
        if not ready:
            raise TrainingError(
                f"precedence contradicts itself: each of the operators {waiting} must come after "
                "another of them"
            )
        chosen = choose(ready)
        waiting.remove(chosen)
        route.append(chosen)
    return tuple(route)
