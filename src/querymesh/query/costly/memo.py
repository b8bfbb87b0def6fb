"""What is remembered of a costly function, where, and how long."""

from __future__ import annotations

from dataclasses import dataclass

from querymesh.errors import OptionError
from querymesh.options import check_integer, check_number


@dataclass(frozen=True)
class Memo:
    """How the answers of a function are remembered.

    - `path`: a folder in which answers are kept, for other workers and later runs: a path that all
      executors see, or an address as `s3://bucket/folder`. Only hashes of inputs are in it
    - `size`: how many answers a worker holds in memory; the longest unused give way
    - `ttl`: seconds after which an answer is asked for again
    - `version`: of the function; answers of another version are not taken

    Without a path, answers are remembered by each worker for one run.
    """

    path: str | None = None
    size: int = 100_000
    ttl: float | None = None
    version: str = ""

    def __post_init__(self) -> None:
        if self.path is not None and (not isinstance(self.path, str) or not self.path):
            raise OptionError(f"memo: path is a folder or an address, not {self.path!r}")
        check_integer("memo: size", self.size, least=1)
        if self.ttl is not None:
            check_number("memo: ttl", self.ttl)
            if not self.ttl > 0:
                raise OptionError(f"memo: ttl is seconds above 0, not {self.ttl}")
        if not isinstance(self.version, str):
            raise OptionError(f"memo: version is a text, not {self.version!r}")


def memo_of(name: str, given: Memo | bool | None) -> Memo | bool | None:
    """What was given as `memo=`: a Memo; False for nothing; None for whatever pays."""
    if given is True:
        return Memo()
    if given is None or given is False or isinstance(given, Memo):
        return given
    raise OptionError(
        f"predicate {name}: memo is a querymesh.Memo, True or False, not {type(given).__name__}"
    )
