"""What `run` was told, beside the query and its data: checked once, here."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from querymesh.errors import OptionError
from querymesh.index.tune.kinds import Hash, Index
from querymesh.options import check_name
from querymesh.policies.policy import Policy
from querymesh.runtime.durations import microseconds_of
from querymesh.storage import is_address

ENGINES = ("auto", "native", "fabric")
ON_ERROR = ("raise", "drop")
WATERMARK = "10 seconds"
IDLE_TIMEOUT = "10 minutes"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a run, as `run` explains them; each is refused by name if it is wrong."""

    policy: Policy
    engine: str = "auto"
    index: Index = field(default_factory=Hash)
    shards: int | None = None
    checkpoint: str | None = None
    watermark: str = WATERMARK
    idle_timeout: str = IDLE_TIMEOUT
    on_error: str = "raise"
    sample: Any = None

    def __post_init__(self) -> None:
        check_name("engine", self.engine, ENGINES)
        check_name("on_error", self.on_error, ON_ERROR)
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
