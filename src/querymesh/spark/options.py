"""What `run` was told, beside the query, its data and the policy: checked once, here."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from querymesh.errors import OptionError
from querymesh.index.tune.kinds import Hash, Index, index_of
from querymesh.options import check_name
from querymesh.policies.policy import Policy
from querymesh.policies.registry import policy_of
from querymesh.runtime.durations import microseconds_of
from querymesh.runtime.storage import is_address

ENGINES = ("auto", "native", "fabric")
ON_ERROR = ("raise", "drop")
WATERMARK = "10 seconds"
IDLE_TIMEOUT = "10 minutes"


@dataclass(frozen=True)
class RunOptions:
    """The options of a run; `delay_us` and `idle_us` are `watermark` and `idle_timeout`."""

    policy: Policy
    engine: str = "auto"
    index: Index = field(default_factory=Hash)
    shards: int | None = None
    checkpoint: str | None = None
    delay_us: int = 10_000_000
    idle_us: int = 600_000_000
    on_error: str = "raise"
    sample: Any = None

    def refuse_join_options(self) -> None:
        """Only states of a join have indices and shards."""
        named = [name for name, given in self._of_states() if given]
        if named:
            raise OptionError(
                f"{' and '.join(named)} is of the states of a join, and this query joins no "
                f"windowed streams: leave it out"
            )

    def _of_states(self) -> list[tuple[str, bool]]:
        return [("index=", self.index != Hash()), ("shards=", self.shards is not None)]


def run_options(
    policy: str | Policy,
    *,
    engine: str = "auto",
    index: str | Index = "hash",
    shards: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    watermark: str = WATERMARK,
    idle_timeout: str = IDLE_TIMEOUT,
    on_error: str = "raise",
    sample: Any = None,
) -> RunOptions:
    """The options, each refused by name if it is wrong."""
    chosen = policy_of(policy)
    check_name("engine", engine, ENGINES)
    check_name("on_error", on_error, ON_ERROR)
    return RunOptions(
        policy=chosen,
        engine=engine,
        index=index_of(index),
        shards=shards,
        checkpoint=None if checkpoint is None else _absolute(os.fspath(checkpoint)),
        delay_us=microseconds_of(watermark, "watermark"),
        idle_us=microseconds_of(idle_timeout, "idle_timeout"),
        on_error=on_error,
        sample=sample,
    )


def _absolute(path: str) -> str:
    """Tasks need not run in the driver's directory."""
    return path if is_address(path) else os.path.abspath(path)
