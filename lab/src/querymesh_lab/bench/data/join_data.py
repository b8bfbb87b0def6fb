"""Streams for `bench join`, drawn from a seed: `uniform` ones and `skewed` ones of the same size.

Every row has `id`, `ts`, `kind` (its class) and its join attributes. In a uniform case the kind
says nothing and every probe finds `matches` partners in the window: no order is better than
another, for any class. In a skewed case each stream is nearly absent from the class named after it:

    share of a stream's rows     kind 0   kind 1   kind 2
                        A        rare     much     much       a row of A and kind 1 finds nobody in
                        B        much     rare     much       B and several in C; of kind 2, the
                        C        much     much     rare       other way round

Taken over all kinds the streams are alike, so no single order is good: whoever probes the stream
absent from the row's own kind first is done after one probe. A clique of independent attributes
would have no results at all; there a share of the rows is `linked`: all their attributes hold the
number of one small group.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh_lab.bench.data.join_graphs import JOIN_GRAPHS, JoinGraph

START_MS = 1_700_000_000_000
GROUP_MEMBERS = 2.0
"""Linked rows of one stream in a group and window, in the kinds where the stream is not rare."""


@dataclass(frozen=True)
class Design:
    """What to draw. Rates and rows are those of one stream; all streams have the same."""

    shape: str
    """The name of the join graph."""

    rows: int = 24_000
    rate: float = 600.0
    """Rows of a stream, and how many of them come in a second."""

    window_s: int = 10
    matches: float = 0.8
    """The partners that a probe finds in the window, on average."""

    rare: float = 0.0
    """The share of a stream's rows in the kind where it is nearly absent; 0 is a uniform case."""

    linked: float = 0.0
    """The share of the rows whose attributes all hold the number of one small group."""

    disorder_s: float = 0.0
    """How late a row may arrive at most."""

    batches: int = 6
    seed: int = 0
    label: str = ""
    """What is added to the name of the case."""

    @property
    def graph(self) -> JoinGraph:
        """The join graph of this shape."""
        return JOIN_GRAPHS[self.shape]

    @property
    def name(self) -> str:
        """The name of the case in reports."""
        return f"{self.shape} {'skewed' if self.rare else 'uniform'}{self.label}"

    @property
    def all_rows(self) -> int:
        """Rows of all streams together."""
        return self.rows * len(self.graph.streams)

    @property
    def in_window(self) -> float:
        """Rows of one stream within one window length."""
        return self.rate * self.window_s

    def _much(self) -> float:
        """A stream's share in a kind where it is not rare."""
        kinds = len(self.graph.streams)
        return (1 - self.rare) / (kinds - 1) if self.rare else 1.0

    @property
    def values(self) -> int:
        """Values of an attribute (in each kind, if skewed): so many that probes find `matches`."""
        return max(1, round(self.in_window * self._much() / self.matches))

    @property
    def groups(self) -> int:
        """Groups of linked rows (in each kind, if skewed)."""
        return max(1, round(self.in_window * self._much() * self.linked / GROUP_MEMBERS))


def streams(design: Design) -> dict[str, pa.Table]:
    """The rows of each stream, in the order they arrive."""
    return {name: _stream(design, number, name) for number, name in enumerate(design.graph.streams)}


def batches(design: Design, table: pa.Table) -> list[pa.Table]:
    """A stream cut into micro-batches of equal length."""
    edges = np.linspace(0, table.num_rows, design.batches + 1).astype(int)
    return [table.slice(a, b - a) for a, b in pairwise(edges)]


def _stream(design: Design, number: int, name: str) -> pa.Table:
    rng = np.random.default_rng([design.seed, number])
    # Milliseconds, not finer: Flink's time attributes hold no more.
    at = (np.arange(design.rows) + rng.random(design.rows)) / design.rate
    ts_ms = START_MS + np.floor(at * 1000).astype(np.int64)
    kind = _kinds(design, number, rng)
    columns = {
        "id": np.arange(design.rows, dtype=np.int64),
        "ts": pa.array(ts_ms * 1000, pa.timestamp("us", tz="UTC")),
        "kind": kind.astype(np.int32),
        **_attributes(design, name, kind, rng),
    }
    table = pa.table(columns)
    if design.disorder_s:
        arrival = at + rng.uniform(0, design.disorder_s, design.rows)
        table = table.take(np.argsort(arrival, kind="stable"))
    return table


def _kinds(design: Design, number: int, rng: np.random.Generator) -> Ints:
    kinds = len(design.graph.streams)
    if not design.rare:
        return rng.integers(0, kinds, design.rows)
    shares = np.full(kinds, design._much())
    shares[number] = design.rare
    return rng.choice(kinds, design.rows, p=shares)


def _attributes(design: Design, name: str, kind: Ints, rng: np.random.Generator) -> dict[str, Ints]:
    """Values of one kind never equal those of another, nor those of linked rows."""
    own = kind if design.rare else np.zeros_like(kind)
    linked = rng.random(design.rows) < design.linked
    beyond = design.values * len(design.graph.streams)
    group = beyond + own * design.groups + rng.integers(0, design.groups, design.rows)
    drawn = {}
    for attribute in design.graph.attributes(name):
        alone = own * design.values + rng.integers(0, design.values, design.rows)
        drawn[attribute] = np.where(linked, group, alone)
    return drawn
