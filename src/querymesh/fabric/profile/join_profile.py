"""Profiling a view of a join: what its filters and probes do with some arrivals, against the state.

Each probe is run by the conditions of its links alone, so that its fan-out is the same whatever
else is joined, and a condition between two probed relations is an outcome of its own (`Meeting`).
What survives a set of operators is then, as for filters, a product that does not depend on their
order (`stats/profile.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

import numpy as np
import pyarrow as pa

from querymesh.arrays import Bools, Ints
from querymesh.fabric.core.operators import UserCalls
from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.core.ruster import Ruster
from querymesh.fabric.join.arrivals import Arrivals, in_order
from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.fabric.join.join_ruster import JoinWindow
from querymesh.fabric.join.probe import Stems
from querymesh.fabric.join.state import keyed
from querymesh.fabric.join.view import ViewFabric
from querymesh.fabric.profile.profiler import Counted, profile_modules
from querymesh.index.store.stem import Stem
from querymesh.mesh.mesh import written_mesh
from querymesh.mesh.route import written_route
from querymesh.query.expr import Column
from querymesh.query.join import JoinQuery
from querymesh.query.model import Probe
from querymesh.stats.common_costs import with_common_costs
from querymesh.stats.profile import Profile


def profile_arrivals(
    join: JoinQuery,
    alias: str,
    stems: Stems,
    arrivals: Arrivals,
    on_error: str = "raise",
    timed: bool = True,
) -> tuple[Profile, int]:
    """What the operators of a view do with some arrivals, which are stored; and the evaluations.

    Arrivals that reach the state and are not joinable are left out.
    """
    calls = UserCalls(join.query.functions, on_error)
    fabric = ViewFabric(join, alias, stems, on_error, alone=True)
    admitted, asked = _admitted(join, fabric, arrivals)
    key = keyed(join, alias, arrivals.some(admitted).rows, calls)
    chosen = ~admitted
    chosen[admitted] = key.joinable
    some, keyless = arrivals.some(chosen), ~admitted[chosen]
    window = JoinWindow(
        alias,
        some.rows,
        stems,
        tuple(_spread(codes, keyless) for codes in key.keys),
        tuple(_spread(codes, keyless) for codes in key.orders),
        {number: _spread_values(values, keyless) for number, values in key.values.items()},
        some.times,
        some.serials,
        some.before,
    )
    sample, everything = pa.Table.from_batches([some.rows]), fabric.everything(window)
    found, evaluations = profile_modules(
        fabric.bound, fabric.modules, everything, sample, timed=timed
    )
    if timed:
        probes = [op.index for op in fabric.bound.operators if isinstance(op, Probe)]
        found = with_common_costs(found, probes)
    return found, evaluations + asked


def _admitted(join: JoinQuery, fabric: ViewFabric, arrivals: Arrivals) -> tuple[Bools, int]:
    """Which arrivals have their keys computed, as only those are that the stream's own conditions
    let through: a key may raise on others. And the evaluations it took to know.

    A column raises on nothing, so that nobody need be asked.
    """
    alias = fabric.alias
    keys = [*(each.members[alias] for each in join.keys_of(alias)), *join.orders_of(alias)]
    if all(isinstance(key, Column) for key in keys):
        return np.ones(len(arrivals), dtype=bool), 0
    left: Ruster = fabric.everything(
        JoinWindow(alias, arrivals.rows, fabric.stems, times=arrivals.times)
    )
    own = tuple(map(Counted, fabric.modules))
    for index in written_route(fabric.bound.precedence):
        if index in fabric.own and len(left):
            (left,) = own[index - 1].process(left)
    return _mask(left.rows, len(arrivals)), sum(module.evaluations for module in own)


def _spread(codes: Ints, keyless: Bools) -> Ints:
    """Codes with some number at rows that have no key: what would read it never meets them."""
    spread = np.zeros(len(keyless), np.int64)
    spread[~keyless] = codes
    return spread


def _spread_values(values: pa.Array, keyless: Bools) -> pa.Array:
    return values.take(pa.array(np.cumsum(~keyless) - 1, mask=keyless))


class SampledJoin:
    """A sample of all streams, stored whole, of which arrivals can be profiled.

    Rows of one stream taken by chance would hardly find partners: the sample is a stretch of time.
    """

    def __init__(
        self,
        join: JoinQuery,
        sample: Mapping[str, pa.RecordBatch],
        statics: Mapping[str, Stem],
        on_error: str = "raise",
    ) -> None:
        self.join = join
        self.on_error = on_error
        self.statics = statics
        self.fabric = JoinFabric(join, statics, on_error)
        counted = {s.alias: 0 for s in join.streams if s.window and s.window.kind == "rows"}
        self.arrivals = in_order(sample, join.times, counted)
        self._admit(self.fabric)
        self.profiled: dict[str, Arrivals] = {}
        """By stream, the arrivals of which the last profile was taken."""

    def _admit(self, fabric: JoinFabric) -> None:
        views = self.join.views.items()
        fabric.admit(self.arrivals, {a: MeshRouter(written_mesh(view)) for a, view in views})

    def storing_s(self) -> float:
        """Seconds that it takes to store the sample, its own conditions included: done once more,
        since the first time is slower."""
        fabric = JoinFabric(self.join, self.statics, self.on_error)
        started_s = perf_counter()
        self._admit(fabric)
        return perf_counter() - started_s

    def profile(self, alias: str, rows: int, seed: int) -> Profile:
        """A profile of at most so many arrivals of a stream, of those with full windows if any."""
        arrivals = self.arrivals[alias]
        full = np.flatnonzero(arrivals.times >= self._full_from())
        if len(full) >= max(1, min(rows, len(arrivals)) // 4):
            profile = self._profile(alias, full, rows, seed)
            if profile.rows:
                self.profiled[alias] = arrivals.some(_mask(full, len(arrivals)))
                return profile
        self.profiled[alias] = arrivals
        return self._profile(alias, np.arange(len(arrivals)), rows, seed)

    def _profile(self, alias: str, chosen: Ints, rows: int, seed: int) -> Profile:
        arrivals = self.arrivals[alias]
        if len(chosen) > rows:
            chosen = np.sort(np.random.default_rng(seed).choice(chosen, rows, replace=False))
        picked = arrivals.some(_mask(chosen, len(arrivals)))
        return profile_arrivals(self.join, alias, self.fabric.stems, picked, self.on_error)[0]

    def _full_from(self) -> int:
        """When the longest window is full, for streams that begin together."""
        starts = [int(each.times.min()) for each in self.arrivals.values() if len(each)]
        return min(starts, default=0) + self.join.longest_us


def _mask(rows: Ints, size: int) -> Bools:
    mask = np.zeros(size, dtype=bool)
    mask[rows] = True
    return mask
