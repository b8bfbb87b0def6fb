"""The event-time clock of a streaming join: which tuples are late, and what may be forgotten.

Before each batch all shards know the newest timestamp of each stream, from the batches before. No
tuple older than the horizon, the least of these minus the delay, is taken any more::

    stream a   ........................ newest ─┐
    stream b   ............. newest ────────────┼──> least - delay = horizon
    stream c   . newest (idle) ─────────────────┘    c no longer counts

A stream that is silent for longer than `idle`, while others speak, does not hold the horizon back:
else one silent stream would keep the state of all others for ever. What it sends later and is older
than the horizon by then is late. Silence is counted in Spark's own time of the batches, which is
the same when a batch is run again, over batches in which others had rows, and for each batch at
most a quarter of `idle`: a query that was down, or streams that were all silent, make nobody idle.
The horizon never goes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NEVER = -(2**63)

PARTS_OF_IDLE = 4
"""So many batches at least make a stream idle."""


@dataclass
class Clock:
    """What the shards know together; all times in microseconds.

    `newest` is each stream's newest timestamp and `heard` the last batch in which it had rows. A
    batch is known by its time: `now` is the last one with rows, `previous` the one before it, and
    `told` the one up to which `silent` was counted. `horizon` is that of the last batch.
    """

    newest: dict[str, int] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    silent: dict[str, int] = field(default_factory=dict)
    now: int = 0
    previous: int = 0
    told: int = 0
    horizon: int = NEVER

    @classmethod
    def merged(cls, clocks: Sequence[Mapping[str, Any]]) -> Clock:
        """The clocks of all shards as one. A shard without rows does not know the last batch."""
        together = cls()
        for clock in sorted(clocks, key=lambda clock: int(clock.get("now", 0))):
            for name in ("newest", "heard"):
                known = getattr(together, name)
                for alias, time in clock.get(name, {}).items():
                    known[alias] = max(known.get(alias, NEVER), int(time))
            together.silent = {a: int(us) for a, us in clock.get("silent", {}).items()}
            for name in ("now", "previous", "told"):
                setattr(together, name, int(clock.get(name, 0)))
            together.horizon = max(together.horizon, int(clock.get("horizon", NEVER)))
        return together

    def to_json(self) -> dict[str, Any]:
        """The clock as plain data, as it is stored with the state of a shard."""
        return {
            "newest": self.newest, "heard": self.heard, "silent": self.silent, "now": self.now,
            "previous": self.previous, "told": self.told, "horizon": self.horizon,
        }  # fmt: skip

    def turn(self, aliases: Sequence[str], watermark_us: int, idle_us: int) -> list[str]:
        """Move the horizon on, before a batch; returns the streams that are idle.

        Streams are by alias; those without time are not given.
        """
        if self.now > self.told:
            gap = self.now - self.previous if self.previous else 0
            for alias in aliases:
                spoke = self.heard.get(alias) == self.now
                more = min(gap, idle_us // PARTS_OF_IDLE)
                self.silent[alias] = 0 if spoke else self.silent.get(alias, 0) + more
            self.told = self.now
        idle = [alias for alias in aliases if self._is_idle(alias, idle_us)]
        awake = [alias for alias in aliases if alias not in idle]
        if awake and all(alias in self.newest for alias in awake):
            least = min(self.newest[alias] for alias in awake)
            self.horizon = max(self.horizon, least - watermark_us)
        return idle

    def _is_idle(self, alias: str, idle_us: int) -> bool:
        if self.now == 0 or self.heard.get(alias) == self.now:
            return False
        return self.silent.get(alias, 0) >= idle_us

    def saw(self, alias: str, newest: int, now: int) -> None:
        """Note that a stream has rows in the batch of time `now`, and its newest timestamp."""
        self.newest[alias] = max(self.newest.get(alias, NEVER), newest)
        self.heard[alias] = max(self.heard.get(alias, NEVER), now)

    def passed(self, now: int) -> None:
        """Note the time of a batch that has rows; the one before it becomes `previous`."""
        if now > self.now:
            self.previous, self.now = self.now, now
