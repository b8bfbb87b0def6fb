"""Left-deep join orders to choose from, the third heuristic of OM § 4.2.

    (s1 ⋈ s2) ⋈ s3        each stream joins the result so far; which of the first two is left
                          makes no difference

Of l streams there are up to l!/2 orders. Where that is more than `most_orders`, they are searched
for by § 4.2's local search, once at each of some points of the chart to be built, and those found
are the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import factorial

import numpy as np

from querymesh.arrays import Floats
from querymesh.optimize.chart.candidates import Order, QueryShape, links_to

MOST_ORDERS = 360
"""All left-deep orders of six streams."""


def left_deep_orders(shape: QueryShape) -> Iterator[Order]:
    """All orders, but for which of the first two is left, and but for those that come
    to a product, of streams that no predicate joins, where a join could be next."""
    if len(shape.streams) == 1:
        yield shape.streams
        return
    pairs = [*combinations(shape.streams, 2)]
    linked = [(first, second) for first, second in pairs if links_to(shape, (first,), second)]
    for pair in linked or pairs:
        yield from _continued(shape, pair)


def _continued(shape: QueryShape, joined: Order) -> Iterator[Order]:
    left = [each for each in shape.streams if each not in joined]
    linked = [each for each in left if links_to(shape, joined, each)]
    if not left:
        yield joined
    for stream in linked or left:
        yield from _continued(shape, (*joined, stream))


def candidate_orders(
    shape: QueryShape,
    costs_at_points: Callable[[Order], Floats] | None = None,
    most_orders: int = MOST_ORDERS,
) -> tuple[Order, ...]:
    """The join orders to choose from: all, or those that local search finds to be good somewhere.

    `costs_at_points` is what an order costs at some points of the chart, and is only asked where
    there may be more than `most_orders` orders.
    """
    if factorial(len(shape.streams)) // 2 <= most_orders or costs_at_points is None:
        return tuple(left_deep_orders(shape))
    return searched_orders(shape, costs_at_points)


def searched_orders(
    shape: QueryShape, costs_at_points: Callable[[Order], Floats]
) -> tuple[Order, ...]:
    """§ 4.2's local search: at each point, exchange two streams as long as that helps most.

    It starts from the streams as given, without products where they can be avoided; at later points
    from the best order there of all seen so far. What no exchange betters need not be the least.
    """
    known: dict[Order, Floats] = {}

    def cost(order: Order, point: int) -> float:
        if order not in known:
            known[order] = costs_at_points(order)
        return float(known[order][point])

    start = next(left_deep_orders(shape))
    known[start] = costs_at_points(start)
    found: dict[Order, None] = {}
    for point in range(len(known[start])):
        current = min(known, key=lambda order: cost(order, point))
        while True:
            near = [_sorted_pair(shape, order) for order in exchanged(current)]
            better = min(near, key=lambda order: cost(order, point), default=current)
            if cost(better, point) >= cost(current, point):
                break
            current = better
        found[current] = None
    return tuple(found)


def exchanged(order: Order) -> Iterator[Order]:
    """All orders in which two streams have changed places, but for the first two."""
    for i, j in combinations(range(len(order)), 2):
        if j > 1:
            other = list(order)
            other[i], other[j] = other[j], other[i]
            yield tuple(other)


def _sorted_pair(shape: QueryShape, order: Order) -> Order:
    """The same plan, the first two streams in the order of FROM."""
    return *sorted(order[:2], key=shape.streams.index), *order[2:]


def spread_points(lows: Sequence[float], highs: Sequence[float], count: int) -> Floats:
    """So many points, evenly spread over a box: the middle first, then Roberts' sequence."""
    dimensions = len(lows)
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1, dimensions + 1)
    places = (0.5 + np.arange(count)[:, None] * steps) % 1
    return np.asarray(lows + places * (np.asarray(highs) - lows), np.float64)
