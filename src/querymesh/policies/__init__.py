"""Who decides the route: one class for each policy, with that policy's options and no others.

`qm.run(..., policy="cbr")` is short for `policy=qm.policies.Cbr()`. The settings of a paper
are in `.paper()`, where it has some. A policy is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from querymesh.policies.policy import Policy
from querymesh.policies.registry import POLICIES, load_class

if TYPE_CHECKING:
    from querymesh.classify.outcomes.predicted import Predicted as Predicted
    from querymesh.fabric.routers.routing import Routing as Routing
    from querymesh.optimize.adapt.adapt import Adaptation as Adaptation
    from querymesh.optimize.chart.charting import Charting as Charting
    from querymesh.optimize.rate.goals import First as First
    from querymesh.optimize.rate.goals import Last as Last
    from querymesh.optimize.rate.goals import MostBy as MostBy
    from querymesh.optimize.search.stop import Stop as Stop
    from querymesh.optimize.train.training import Training as Training
    from querymesh.policies.cbr import Cbr as Cbr
    from querymesh.policies.chart import Chart as Chart
    from querymesh.policies.eddy import Eddy as Eddy
    from querymesh.policies.mesh import Mesh as Mesh
    from querymesh.policies.rate import Rate as Rate
    from querymesh.policies.single import Single as Single

SETTINGS = {
    "Training": "querymesh.optimize.train.training:Training",
    "Predicted": "querymesh.classify.outcomes.predicted:Predicted",
    "Stop": "querymesh.optimize.search.stop:Stop",
    "Adaptation": "querymesh.optimize.adapt.adapt:Adaptation",
    "Routing": "querymesh.fabric.routers.routing:Routing",
    "Charting": "querymesh.optimize.chart.charting:Charting",
    "MostBy": "querymesh.optimize.rate.goals:MostBy",
    "First": "querymesh.optimize.rate.goals:First",
    "Last": "querymesh.optimize.rate.goals:Last",
}
"""What policies take beside plain numbers: every choice a paper leaves open, and RBO's goals."""

CLASSES = {address.partition(":")[2]: address for address in POLICIES.values()} | SETTINGS
"""By the name of a class, where it is."""

__all__ = ["Policy", *CLASSES]  # noqa: PLE0604  (the registry knows them)


def __getattr__(name: str) -> Any:
    if name not in CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = load_class(CLASSES[name])
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
