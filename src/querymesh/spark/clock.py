"""The event-time clock of a streaming join: which tuples are late, and what may be forgotten.

Before each batch all shards know the newest timestamp of each stream, from the batches before. No
tuple older than the horizon, the least of these minus the delay, is taken any more::

    stream a   ........................ newest ─┐
    stream b   ............. newest ────────────┼──> least - delay = horizon
    stream c   . newest (idle) ─────────────────┘    c no longer counts

A stream that had no rows for longer than `idle`, while others had, does not hold the horizon back:
else one silent stream would keep the state of all others for ever. What it sends later and is older
than the horizon by then is late. Time for this is Spark's own time of the batch, which is the same
when a batch is run again. The horizon never goes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NEVER = -(2**63)


@dataclass
class Clock:
    """What the shards know together; all times in microseconds.

    `newest` is each stream's newest timestamp, `heard` when it last had rows, `now` the time of the
    last batch, `horizon` that of the last batch.
    """

    newest: dict[str, int] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    now: int = 0
    horizon: int = NEVER

    @classmethod
    def merged(cls, clocks: Sequence[Mapping[str, Any]]) -> Clock:
        """The clocks of all shards as one."""
        together = cls()
        for clock in clocks:
            for name in ("newest", "heard"):
                known = getattr(together, name)
                for alias, time in clock.get(name, {}).items():
                    known[alias] = max(known.get(alias, NEVER), int(time))
            together.now = max(together.now, int(clock.get("now", 0)))
            together.horizon = max(together.horizon, int(clock.get("horizon", NEVER)))
        return together

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "newest": self.newest, "heard": self.heard, "now": self.now, "horizon": self.horizon,
        }  # fmt: skip

    def next_horizon(self, aliases: Sequence[str], delay_us: int, idle_us: int) -> int:
        """Below which time tuples are late from now on.

        Streams are by alias; those without time are not given.
        """
        awake = [a for a in aliases if self.now - self.heard.get(a, self.now) <= idle_us]
        awake = awake or [alias for alias in aliases if alias in self.newest]
        if not awake or any(alias not in self.newest for alias in awake):
            return self.horizon
        return max(self.horizon, min(self.newest[alias] for alias in awake) - delay_us)

    def saw(self, alias: str, newest: int, now: int) -> None:
        """A stream had rows in this batch."""
        self.newest[alias] = max(self.newest.get(alias, NEVER), newest)
        self.heard[alias] = max(self.heard.get(alias, NEVER), now)

    def passed(self, now: int, aliases: Sequence[str]) -> None:
        """A batch was run at this time; streams not heard of yet count from the first one."""
        self.now = max(self.now, now)
        for alias in aliases:
            self.heard.setdefault(alias, self.now)
