"""Policy `single`: the best single order for all tuples, which is what an expert would write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from querymesh.policies.mesh import Trained


@dataclass(frozen=True, kw_only=True)
class Single(Trained):
    """The best single order for all tuples, learned as a mesh is; the options are those of `Mesh`.

    A mesh that is given runs by its best single order.
    """

    name: ClassVar[str] = "single"
    one_route: ClassVar[bool] = True
