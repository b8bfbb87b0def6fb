"""What was found out before a filter ran: the sample, the calls, the engines that were compared."""

from __future__ import annotations

from querymesh.optimize.placement.decide import Decision
from querymesh.report.text.figures import counted, micros, seconds, table
from querymesh.runtime.preparation import Preparation


def preparation_text(preparation: Preparation) -> str:
    """What was sampled and called, what it took, and why the run is what it is."""
    decision = preparation.decision
    if not preparation.learned:
        why = f"nothing was learned: {preparation.mesh.why}"
        if not preparation.calls:
            return why
        return f"{why}; {counted(preparation.calls, 'call')} of Python functions told"
    rows = counted(preparation.sample_rows, "sampled row")
    took = f"every condition was tried on {rows}, in {seconds(preparation.seconds)}"
    if preparation.calls:
        took += (
            f", with {counted(preparation.calls, 'call')} of Python functions, "
            "none of them twice on a row"
        )
    if preparation.remembered:
        took += "; an earlier call of this session did, and nothing was spent this time"
    if decision is None:  # the engine was settled, and `mesh.explain()` says why
        return took
    return "\n".join([took, engines_text(decision), f"why: {decision.why}"])


def engines_text(decision: Decision) -> str:
    """The engines that were compared, in microseconds a row; the one that was chosen is marked."""
    rows = [
        (
            "*" if name == decision.chosen else "",
            name,
            micros(candidate.expected_us),
            micros(candidate.single_us),
        )
        for name, candidate in decision.candidates.items()
    ]
    lines = [table(("", "engine", "µs a row", "best single order"), rows, left=(0, 1))]
    lines += [f"not {name}: {reason}" for name, reason in decision.ruled_out.items()]
    return "\n".join(lines)
