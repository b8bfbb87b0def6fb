"""Who decides the route: one class for each policy, with that policy's options and no others.

`qm.run(..., policy="cbr")` is short for `policy=qm.policies.Cbr()`. The settings of a paper
are in `.paper()`, where it has some. A policy is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from querymesh.policies.policy import Policy
from querymesh.policies.registry import POLICIES, load_class

if TYPE_CHECKING:
    from querymesh.fabric.routers.routing import Routing
    from querymesh.optimize.adapt.adapt import Adaptation
    from querymesh.optimize.chart.charting import Charting
    from querymesh.optimize.rate.goals import First, Last, MostBy
    from querymesh.optimize.search.stop import Stop
    from querymesh.optimize.train.training import Training
    from querymesh.policies.cbr import Cbr
    from querymesh.policies.chart import Chart
    from querymesh.policies.eddy import Eddy
    from querymesh.policies.mesh import Mesh
    from querymesh.policies.rate import Rate
    from querymesh.policies.single import Single

SETTINGS = {
    "Training": "querymesh.optimize.train.training:Training",
    "Stop": "querymesh.optimize.search.stop:Stop",
    "Adaptation": "querymesh.optimize.adapt.adapt:Adaptation",
    "Routing": "querymesh.fabric.routers.routing:Routing",
    "Charting": "querymesh.optimize.chart.charting:Charting",
    "MostBy": "querymesh.optimize.rate.goals:MostBy",
    "First": "querymesh.optimize.rate.goals:First",
    "Last": "querymesh.optimize.rate.goals:Last",
}
"""What policies take beside plain numbers: every choice a paper leaves open, and RBO's goals."""

__all__ = [
    "Adaptation",
    "Cbr",
    "Chart",
    "Charting",
    "Eddy",
    "First",
    "Last",
    "Mesh",
    "MostBy",
    "Policy",
    "Rate",
    "Routing",
    "Single",
    "Stop",
    "Training",
]


def __getattr__(name: str) -> Any:
    by_class = {address.partition(":")[2]: address for address in POLICIES.values()} | SETTINGS
    if name not in by_class:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = load_class(by_class[name])
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
