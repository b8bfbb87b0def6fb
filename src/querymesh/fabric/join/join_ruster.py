"""Rusters of a windowed join: with the times that decide which combinations a window allows.

A combination is a result iff, with τ the newest timestamp among its members, each member's own
window reaches from it to τ: τ - ts <= w. Two numbers for each row carry that exactly, whatever the
order in which members are joined::

    newest   the newest timestamp so far      only grows
    until    the least ts + w so far          only shrinks        newest <= until, always

A row for which it fails can never become a result; one for which it holds to the end is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Ints
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster

FOREVER = np.iinfo(np.int64).max
NOTHING: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True)
class JoinWindow(ClassificationWindow):
    """Arrivals of one stream in one step, with what probes need to know of them.

    `keys` and `orders` are codes at the stream's positions (`JoinQuery.keys_of`, `orders_of`),
    `values` the key values themselves where the codes do not tell all of them apart.
    """

    keys: tuple[Ints, ...] = ()
    orders: tuple[Ints, ...] = ()
    values: Mapping[int, pa.Array] = field(default_factory=dict)
    times: Ints = field(default_factory=lambda: NOTHING)
    serials: Ints = field(default_factory=lambda: NOTHING)
    before: Mapping[str, Ints] = field(default_factory=dict)

    def slice(self, first: int, rows: int) -> JoinWindow:
        """Some of the arrivals that follow each other."""
        if rows == self.rows:
            return self
        part = slice(first, first + rows)
        return JoinWindow(
            self.source,
            self.batch.slice(first, rows),
            self.tables,
            tuple(codes[part] for codes in self.keys),
            tuple(codes[part] for codes in self.orders),
            {number: each.slice(first, rows) for number, each in self.values.items()},
            self.times[part],
            self.serials[part],
            {alias: counts[part] for alias, counts in self.before.items()},
        )


@dataclass(frozen=True)
class JoinRuster(Ruster):
    """A ruster on its way through join states."""

    newest: Ints = field(default_factory=lambda: NOTHING)
    until: Ints = field(default_factory=lambda: NOTHING)

    def pick(self, positions: Ints) -> JoinRuster:
        """These positions of the selection, repeats allowed, one step further along the route."""
        picked = super().pick(positions)
        assert isinstance(picked, JoinRuster)
        return replace(picked, newest=self.newest[positions], until=self.until[positions])

    def followed_by(self, others: Sequence[Ruster]) -> JoinRuster:
        """This ruster's rows and those of others that have joined the same."""
        whole = super().followed_by(others)
        every = [self, *(other for other in others if isinstance(other, JoinRuster))]
        assert isinstance(whole, JoinRuster)
        newest = np.concatenate([each.newest for each in every])
        return replace(whole, newest=newest, until=np.concatenate([e.until for e in every]))

    @property
    def of(self) -> JoinWindow:
        """The window that its tuples are of, with the times of a join."""
        assert isinstance(self.window, JoinWindow)
        return self.window


def moved(times: Ints, by_us: int) -> Ints:
    """Times moved by a span, forwards or, if it is negative, back, as far as numbers go."""
    if by_us < 0:
        return np.maximum(times, -FOREVER - by_us) + by_us
    return np.minimum(times, FOREVER - by_us) + by_us


def arrived(ruster: Ruster, range_us: int | None) -> JoinRuster:
    """A ruster of newly arrived tuples; their own window is in microseconds, None if in rows."""
    window = ruster.window
    assert isinstance(window, JoinWindow)
    newest = window.times[ruster.rows]
    until = np.full(len(newest), FOREVER) if range_us is None else moved(newest, range_us)
    return JoinRuster(window, ruster.rows, ruster.token, ruster.leaf, {}, newest, until)


def kept(ruster: JoinRuster, mask: Bools) -> JoinRuster:
    """The rows that a further condition of the same operator lets through."""
    if mask.all():
        return ruster
    return replace(ruster.pick(np.flatnonzero(mask)), token=ruster.token)
