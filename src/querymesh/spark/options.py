"""What `where`, `run` and `run_all` were told beside query and data: checked once, here."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from querymesh.errors import OptionError
from querymesh.index.tune.kinds import Hash, Index
from querymesh.options import check_name
from querymesh.policies.policy import Policy
from querymesh.query.costly.account.price import Budget
from querymesh.runtime.durations import microseconds_of
from querymesh.storage import is_address

ENGINES = ("auto", "native", "fabric")
ON_ERROR = ("raise", "drop")
WATERMARK = "10 seconds"
IDLE_TIMEOUT = "10 minutes"


@dataclass(frozen=True, kw_only=True)
class FilterOptions:
    """What `where`, `run` and `run_all` have in common; each is refused by name if it is wrong."""

    policy: Policy
    engine: str = "auto"
    checkpoint: str | None = None
    on_error: str = "raise"
    sample: Any = None
    budget: Budget | None = None

    def __post_init__(self) -> None:
        check_name("engine", self.engine, ENGINES)
        check_name("on_error", self.on_error, ON_ERROR)


@dataclass(frozen=True, kw_only=True)
class RunOptions(FilterOptions):
    """The options of `run`: those of a filter, of event time and of the states of a join."""

    index: Index
    shards: int | None = None
    watermark: str = WATERMARK
    idle_timeout: str = IDLE_TIMEOUT

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("watermark", "idle_timeout"):
            microseconds_of(getattr(self, name), name)

    @property
    def watermark_us(self) -> int:
        """How late tuples may come, in microseconds."""
        return microseconds_of(self.watermark, "watermark")

    @property
    def idle_us(self) -> int:
        """How long a silent stream holds up the others."""
        return microseconds_of(self.idle_timeout, "idle_timeout")

    def refuse_join_options(self) -> None:
        """Only states of a join have indices and shards."""
        of_states = {"index=": self.index != Hash(), "shards=": self.shards is not None}
        if named := [name for name, given in of_states.items() if given]:
            raise OptionError(
                f"{' and '.join(named)} is of the states of a join, and this query joins no "
                "windowed streams: leave it out"
            )


def absolute(checkpoint: str | os.PathLike[str] | None) -> str | None:
    """A checkpoint as tasks can find it, which need not run in the driver's directory."""
    if checkpoint is None:
        return None
    path = os.fspath(checkpoint)
    return path if is_address(path) else os.path.abspath(path)
