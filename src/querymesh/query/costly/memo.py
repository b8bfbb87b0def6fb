"""What is remembered of a costly function, where, and how long."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from querymesh.errors import OptionError
from querymesh.options import check_integer, check_number
from querymesh.storage import is_address


@dataclass(frozen=True)
class Memo:
    """How the answers of a function are remembered.

    - `path`: a folder in which answers are kept, for other workers and later runs: a path that all
      executors see, or an address as `s3://bucket/folder`. Answers are in it, and hashes of inputs:
      nobody can read an input from its hash, but whoever guesses one can see that it was asked
    - `size`: how many answers a worker holds in memory; the longest unused give way. One of more
      than a kilobyte counts for several
    - `ttl`: seconds after which an answer is asked for again, and is removed from the folder
    - `version`: of what the function's code does not show: the model behind it, a list it reads.
      Answers of another version are not taken

    An edited function starts anew: answers belong to its name, its code, the plain values that the
    code reads, and the types of its inputs and values. Without a path, answers are remembered by
    each worker for one run.
    """

    path: str | os.PathLike[str] | None = None
    size: int = 100_000
    ttl: float | None = None
    version: str = ""

    def __post_init__(self) -> None:
        if self.path is not None:
            object.__setattr__(self, "path", _folder(self.path))
        check_integer("memo: size", self.size, least=1)
        if self.ttl is not None:
            check_number("memo: ttl", self.ttl)
            if not 0 < self.ttl < math.inf:
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


def _folder(path: object) -> str:
    """A path as all processes of this machine understand it."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text:
        raise OptionError(f"memo: path is a folder or an address, not {path!r}")
    return text if is_address(text) else os.path.abspath(os.path.expanduser(text))
