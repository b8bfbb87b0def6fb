"""The example of OM § 3.2 and Figure 2: the same two plans, other weights, another choice.

    o1   half of the tuples pass, 500 a second      p1   o1 -> o2
    o2   a tenth, 50 a second                       p2   o2 -> o1

The printed costs follow if λ = 500, W = 1, and an operator takes in at most tpr tuples a second
(`capped_costs`); by the formulas of § 4.1 they are other ones.
"""

from __future__ import annotations

from querymesh.cost.plan_tree import PlanTree, Select, Source
from querymesh.cost.utility import Costs, Statistics, Weights, capped_costs, plan_costs, utility
from querymesh_lab.papers.claim import Claim, Result

ASSIGNED = {1: Weights(rate=0.1, memory=0.9), 2: Weights(rate=20_000, memory=2)}
PRINTED = {1: (697.52, 517.54), 2: (5550.0, 9150.0)}
PRINTED_COSTS = ((5.0, 775.0), (2.5, 575.0))
KNOWN = Statistics({"s": 500.0}, {"o1": 0.5, "o2": 0.1}, window_s=1.0)


def _selection(name: str, of: PlanTree) -> Select:
    return Select(of, (name,), {"o1": 1 / 500.0, "o2": 1 / 50.0}[name])


PLANS = (
    _selection("o2", _selection("o1", Source("s"))),
    _selection("o1", _selection("o2", Source("s"))),
)


def results() -> list[Result]:
    """The four costs in utils, and how far all eight numbers are from the printed ones."""
    ours = [capped_costs(plan, KNOWN) for plan in PLANS]
    by_formula = [plan_costs(plan, KNOWN) for plan in PLANS]
    found, apart = [], []
    for costs, (rate, memory) in zip(ours, PRINTED_COSTS, strict=True):
        apart += [abs(float(costs.rate) - rate), abs(float(costs.memory) - memory)]
    for number, weights in ASSIGNED.items():
        utils = [float(utility(costs, weights)) for costs in ours]
        other = [float(utility(costs, weights)) for costs in by_formula]
        details = {
            "chosen plan": 1 + utils.index(min(utils)),
            "costs by § 4.1": other,
            "chosen plan by § 4.1": 1 + other.index(min(other)),
        }
        for place, (value, printed) in enumerate(zip(utils, PRINTED[number], strict=True), 1):
            claim = f"assignment {number} (w_r = {weights.rate:g}, w_m = {weights.memory:g}): "
            claim += f"cost of p{place}"
            found.append(
                Result(Claim("om", "3.2", claim, printed, "utils", "at least"), value, None, "",
                       details)
            )  # fmt: skip
            apart.append(abs(value - printed))
    found.append(
        Result(
            Claim("om", "3.2", "largest difference of C_r, C_m and costs from the printed ones",
                  0.0, "", "at most"),
            max(apart), None, _by_formula(by_formula),
        )
    )  # fmt: skip
    return found


def _by_formula(costs: list[Costs]) -> str:
    told = "; ".join(
        f"p{place}: C_r = {float(each.rate):g}, C_m = {float(each.memory):g}"
        for place, each in enumerate(costs, 1)
    )
    return f"§ 4.1's formulas give other numbers for this example: {told}"
