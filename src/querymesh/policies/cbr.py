"""Policy `cbr`: an Eddy that looks at a tuple's content before it decides (CBR § 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from querymesh.policies.eddy import Eddy


@dataclass(frozen=True, kw_only=True)
class Cbr(Eddy):
    """Content-based routing: learns which attribute tells what an operator will do with a tuple,
    and decides by it, before every operator. The options are those of `Eddy`.

    Any column may become a classifier attribute, so rows travel whole.
    """

    name: ClassVar[str] = "cbr"
    reads_any_column: ClassVar[bool] = True
