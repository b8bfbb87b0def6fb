"""What was found out before a run, and what it took."""

from __future__ import annotations

from dataclasses import dataclass

from querymesh.cost.catalyst_cost import CostTable
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.placement.decide import Decision


@dataclass(frozen=True)
class PricedStage:
    """What Catalyst's conditions before Python cost for each row that comes through, by a table."""

    us: float
    table: CostTable


@dataclass(frozen=True)
class Preparation:
    """The mesh that a run starts with, and how it was come by.

    `decision` compares the engines; it is None where it was clear without that, and where the
    engine was settled before. `calls` are rows on
    which users' functions were called; `remembered` is whether an earlier call of this session had
    decided already, so that nothing was spent this time. `priced` is what Catalyst does before the
    Python stage, where it does something. `plainly` is whether Spark's own filter calls the users'
    functions too, since none of them costs so much that to spare calls would pay for the way.
    """

    mesh: Mesh
    decision: Decision | None = None
    seconds: float = 0.0
    sample_rows: int = 0
    calls: int = 0
    remembered: bool = False
    priced: PricedStage | None = None
    plainly: bool = False

    @property
    def learned(self) -> bool:
        """Whether a sample decided; else it was clear that it runs as written."""
        return self.decision is not None or self.mesh.is_learned
