"""An Eddy tuple by tuple, as the CBR paper has it (§ 4): what a program decides by and learns.

All that a decision takes lies in a few arrays, which one compiled program reads and updates
(`index/kernels/travel.py`). It runs until something is complete that the router has to look at: a
sample, a trial, a rest. What it says then is what the router would have found tuple by tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from querymesh.arrays import Floats, Ints
from querymesh.fabric.routers.estimates import Estimates
from querymesh.fabric.routers.tables.eddy_table import CutBy, Visit
from querymesh.index.kernels import travel as t
from querymesh.index.probe.program import EddyTables

MOST_OPERATORS = 12
"""Of more operators there are too many sets for a table of all."""


@dataclass
class Visits:
    """The visits that tuples have made so far, numbered, and by context and operator the number.

    Contexts have a bit for each operator at its place in `operators`.
    """

    operators: Sequence[int]
    known: list[Visit] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.operators)
        self.number_of: Ints = np.full(count << count, -1, np.int64)

    def meet(self, cell: int) -> None:
        """Number a further visit, given as the program tells it."""
        places, place = divmod(cell, len(self.operators))
        context = sum(1 << k for at, k in enumerate(self.operators) if places >> at & 1)
        self.number_of[cell] = len(self.known)
        self.known.append((context, self.operators[place]))


@dataclass(frozen=True)
class AskedTuples:
    """What a run of tuples may do: how many set out at most, how many that profile nothing may be
    done before something is complete, and the operators profiled with what their samples want."""

    rows: int
    plain_rows: int
    wanted: Mapping[int, int]
    probability: float
    lottery: bool
    by_cost: bool


def tables_for(
    visits: Visits,
    after: Mapping[int, frozenset[int]],
    estimates: Estimates,
    asked: AskedTuples,
    codes: Callable[[CutBy], Ints],
    draws: Floats,
) -> EddyTables:
    """The arrays by which a program decides on tuples one by one, and into which it learns."""
    operators = visits.operators
    count = len(operators)
    place = {k: at for at, k in enumerate(operators)}
    eddy = np.zeros(t.E_BLOCKS + 6 * count, np.int64)
    eddy[t.E_OPERATORS], eddy[t.E_LOTTERY] = count, asked.lottery
    eddy[t.E_TARGETS], eddy[t.E_VISITS] = len(asked.wanted), len(visits.known)
    eddy[t.E_ROW], eddy[t.E_LEFT], eddy[t.E_PLAIN_LEFT] = -1, asked.rows, asked.plain_rows
    blocks = eddy[t.E_BLOCKS :].reshape(6, count)
    blocks[t.E_AFTER] = [sum(1 << place[j] for j in after[k] if j in place) for k in operators]
    blocks[t.E_TARGET, : len(asked.wanted)] = [place[k] for k in asked.wanted]
    blocks[t.E_WANTED, : len(asked.wanted)] = list(asked.wanted.values())
    blocks[t.E_COLUMN] = -1
    known: list[Floats] = [
        np.array([estimates.memory, asked.probability]),
        np.array([estimates.selectivity(k) for k in operators]),
        np.array([estimates.cost(k) if asked.by_cost else 1.0 for k in operators]),
    ]
    costs = known[-1]
    merits = [np.zeros(t.K_SELECTIVITY), _merits(known[-2], costs, asked.lottery), np.zeros(count)]
    end, end_of_codes, coded = t.K_SELECTIVITY + 2 * count, 0, []
    for k, pair in estimates.pairs.items():
        blocks[t.E_COLUMN, place[k]], blocks[t.E_CODES, place[k]] = end, end_of_codes
        known.append(pair.selectivity)
        merits.append(_merits(pair.selectivity, costs[place[k]], asked.lottery))
        coded.append(codes(pair.cut_by))
        end, end_of_codes = end + len(pair.selectivity), end_of_codes + len(coded[-1])
    return EddyTables(
        eddy,
        visits.number_of,
        np.concatenate(coded) if coded else np.zeros(0, np.int64),
        np.concatenate(known),
        np.concatenate(merits),
        draws,
        np.zeros(t.T_WIDTH * (sum(asked.wanted.values()) + 1), np.int64),
    )


def _merits(passing: Floats, costs: Floats | float, lottery: bool) -> Floats:
    """What decisions go by, of all shares at once; see the kernel's `merit_of`."""
    if lottery:
        return 1.0 / np.maximum(passing, t.LEAST_CHANCE) / costs
    return (1.0 - passing) / costs


@dataclass(frozen=True)
class Ran:
    """What came of a run: tuples that set out, those of them that profile nothing, and draws that
    were used; whether a visit had no state, and by which cell; and for each tuple that profiled
    the row, the number of its operator, and how many went in and came out."""

    rows: int
    plain_rows: int
    drawn: int
    unknown: int | None
    notes: Ints


def came_of(tables: EddyTables, asked: AskedTuples) -> Ran:
    """What the arrays say after a run."""
    eddy = tables.eddy
    notes = tables.notes.reshape(-1, t.T_WIDTH)[: int(eddy[t.E_NOTED])]
    stopped = int(eddy[t.E_STOP])
    return Ran(
        asked.rows - int(eddy[t.E_LEFT]),
        int(eddy[t.E_PLAIN]),
        int(eddy[t.E_DRAWN]),
        int(eddy[t.E_UNKNOWN]) if stopped == t.UNKNOWN_VISIT else None,
        notes,
    )


def take_over(visits: Visits, estimates: Estimates, tables: EddyTables) -> None:
    """Set selectivities, overall and by content, to those of a run."""
    blocks = tables.eddy[t.E_BLOCKS :].reshape(6, -1)
    for place, k in enumerate(visits.operators):
        if estimates.seen.get(k):
            estimates.overall[k] = float(tables.known[t.K_SELECTIVITY + place])
        if (pair := estimates.pairs.get(k)) is not None:
            first = int(blocks[t.E_COLUMN, place])
            pair.selectivity[:] = tables.known[first : first + len(pair.selectivity)]
