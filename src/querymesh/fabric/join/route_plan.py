"""How tuples of a view begin on their routes: probes that follow each other, as far as they go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from querymesh.arrays import Ints
from querymesh.fabric.core.token import Stack
from querymesh.index.probe.program import Automaton, Counts, Program
from querymesh.query.model import Probe


@dataclass(frozen=True)
class Stretch:
    """Probes that follow each other on a route, and what is left of the route behind them."""

    probes: tuple[Probe, ...]
    rest: Stack

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that are probed."""
        return tuple(probe.relation for probe in self.probes)


@dataclass(frozen=True)
class RoutePlan:
    """The first stretches of some routes as one program: where each begins among its states, the
    leaf and the operator of each state, and whether leaves part behind it."""

    stretches: list[Stretch]
    program: Program
    begins: Ints
    leaf_of: Ints
    indices: list[int]
    apart: bool


class SettingOut(NamedTuple):
    """Tuples of a window that are about to probe: their program, its automaton, the state in which
    each begins, and who is told, when all are through, what was counted of each state."""

    program: Program
    automaton: Automaton
    states: Ints
    done: Callable[[Counts], None]
