"""Columns that nothing reads, and that a stream sends as long as kinds of rows may be told by them.

::

    learning the first mesh     all of them
    on a mesh                   those that it asks for
    the data has changed        all of them, until another mesh was searched for

A row's way to Python costs by its columns, so that in between only what is asked for travels. A
running plan cannot be changed, but a column in it can be NULL for a while: who runs the stream says
by `attach` how that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from querymesh.stats.profile import Profile


class TellingColumns:
    """The columns of one stream that may come and go; none unless some are attached."""

    def __init__(self) -> None:
        self._every: frozenset[str] = frozenset()
        self._sent: frozenset[str] | None = None
        self._send: Callable[[frozenset[str]], None] | None = None

    def attach(self, every: Collection[str], send: Callable[[frozenset[str]], None]) -> None:
        """These columns may come and go, and `send` lets some of them through from now on."""
        self._every, self._send = frozenset(every), send
        send(self.sent)

    @property
    def sent(self) -> frozenset[str]:
        """The columns that are sent to Python now."""
        return self._every if self._sent is None else self._every & self._sent

    @property
    def held_back(self) -> frozenset[str]:
        """The columns that may come and are NULL in the plan now."""
        return self._every - self.sent

    def all(self) -> None:
        """Send every column that may come, from the next batch on."""
        self._change(None)

    def only(self, names: Collection[str]) -> None:
        """Send these of the columns that may come, and no others."""
        self._change(frozenset(names))

    def _change(self, names: frozenset[str] | None) -> None:
        before, self._sent = self.sent, names
        if self._send is not None and self.sent != before:
            self._send(self.sent)

    def of(self, profile: Profile) -> Profile | None:
        """A profile with the columns that are sent now; None where rows came without some, as they
        do in the batch that was planned just before they were wished for."""
        names = profile.sample.column_names
        if not self.sent <= {*names}:
            return None
        kept = [name for name in names if name not in self.held_back]
        return replace(profile, sample=profile.sample.select(kept))
