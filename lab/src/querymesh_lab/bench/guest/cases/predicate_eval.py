"""The 26 queries of DataFusion's predicate_eval, on tables of our own making.

All are `SELECT count(*) FROM t WHERE …`. Every column is a residue of the row's number, so that the
share of rows that a condition keeps is exact. The facts (which shares, how many conjuncts, in which
order) are the benchmark's; the factors, patterns and texts are ours. What differs: the tables are
Parquet files, and the patterns begin with a class of one letter, or engines that see a plain text
would search for it without a regular expression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh_lab.bench.guest.case import GuestCase, Kind
from querymesh_lab.bench.guest.condition import Condition, Sql, matches, texts
from querymesh_lab.bench.guest.tables import StoredTable, Workshop, stored

GROUP = "predicate_eval"
ROWS = 1_000_000
QUICK_SHARE = 50
LEAST_ROWS = 20_000
"""Shares of a thousandth, within a tenth of the rows, in both of two halves: exact from here on."""

FACTORS = (1, 3, 7, 9, 11, 13, 17, 19, 21, 23, 27, 29, 31, 33, 37, 39)
"""Odd and no multiple of five, so that `(value * factor) % 100` takes every value equally often."""

FILLER = "q"
PERIOD = 1000
"""All texts depend on the row's number modulo this."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A text that stands in the rows of which `(value * factor) % modulus < below`."""

    text: str
    factor: int
    below: int
    modulus: int = 100

    @property
    def pattern(self) -> str:
        """A regular expression that finds it."""
        return f"[{self.text[0]}]{self.text[1:]}"

    @property
    def share(self) -> float:
        """The share of rows that have it."""
        return self.below / self.modulus


AAA, BBB = Marker("aaa", 7, 90), Marker("bbb", 11, 86)
CCC, DDD = Marker("ccc", 13, 80), Marker("ddd", 17, 75)
RARE, TEN = Marker("rare", 1, 1, 1000), Marker("ten", 21, 10)
FIVE_MARKERS = (AAA, BBB, CCC, DDD, RARE)
THREE_MARKERS = (RARE, TEN, AAA)
HALVES = tuple(Marker("half", factor, 50) for factor in (3, 9, 19, 23))
"""For four columns alike."""


def values(rows: int) -> Ints:
    """The numbers of the rows: 1, 2, 3 …"""
    return np.arange(1, rows + 1)


def marked(rows: int, markers: tuple[Marker, ...], width: int = 30) -> pa.Array:
    """Texts in which markers, or as many other letters, stand between runs of filler."""
    residues = np.arange(PERIOD)
    kinds = []
    for residue in residues.tolist():
        parts = [FILLER * width]
        for marker in markers:
            there = (residue * marker.factor) % marker.modulus < marker.below
            parts += [marker.text if there else "z" * len(marker.text), FILLER * width]
        kinds.append("".join(parts))
    return pa.DictionaryArray.from_arrays(pa.array(values(rows) % PERIOD, pa.int32()), kinds)


def residues(rows: int, columns: int) -> dict[str, pa.Array]:
    """`c0`, `c1` … uniform below 100."""
    at = values(rows)
    return {f"c{k}": pa.array((at * FACTORS[k]) % 100) for k in range(columns)}


def five_markers(rows: int, width: int = 30) -> pa.Table:
    """`s` with five markers."""
    return pa.table({"value": values(rows), "s": marked(rows, FIVE_MARKERS, width)})


def cheap_and_costly(rows: int) -> pa.Table:
    """`c0` … `c3` below 100, and `s` with a rare, a ten per cent and a frequent marker."""
    return pa.table({"value": values(rows), **residues(rows, 4), "s": marked(rows, THREE_MARKERS)})


def sixteen(rows: int) -> pa.Table:
    """Sixteen columns below 100."""
    return pa.table({"value": values(rows), **residues(rows, 16)})


def alike(rows: int) -> pa.Table:
    """Four numbers and four texts, each condition on them as costly and as selective."""
    return pa.table({
        "value": values(rows),
        **residues(rows, 4),
        **{f"s{k}": marked(rows, (marker,)) for k, marker in enumerate(HALVES, start=1)},
    })  # fmt: skip


def correlated(rows: int) -> pa.Table:
    """`x`, the same again, its opposite, and a number independent of it."""
    x = values(rows) % 100
    independent = values(rows) // 100 % 100
    return pa.table({
        "value": values(rows), "x": x, "x_pos": x, "x_anti": 99 - x, "ind": independent,
    })  # fmt: skip


def hidden(rows: int) -> pa.Table:
    """`c0` is 1 in 30 %; `s1` to `s3` have the marker just there, `s4` in an independent 30 %."""
    at = values(rows)
    kinds = [FILLER * 60 + "zzzz" + FILLER * 60, FILLER * 60 + "mark" + FILLER * 60]

    def text(there: np.ndarray) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(there.astype(np.int32)), kinds)

    with_c0, independent = at % 100 < 30, at // 100 % 100 < 30
    return pa.table({
        "value": at,
        "c0": with_c0.astype(np.int64),
        **{name: text(with_c0) for name in ("s1", "s2", "s3")},
        "s4": text(independent),
    })  # fmt: skip


def drifting(rows: int) -> pa.Table:
    """In the first tenth `a_sel = 0` keeps 0.1 % and `b_sel = 0` half; then the other way round."""
    at = values(rows)
    early = at <= rows // 10
    few, half = at % 1000, at // 1000 % 2
    return pa.table({
        "value": at, "a_sel": np.where(early, few, half), "b_sel": np.where(early, half, few),
    })  # fmt: skip


Make = Callable[[int], pa.Table]


def _table(name: str, make: Make, rows: int = ROWS) -> Callable[[Workshop], StoredTable]:
    def of(workshop: Workshop) -> StoredTable:
        wanted = workshop.bench.rows(rows, max(rows // QUICK_SHARE, LEAST_ROWS))

        def write(folder: Path) -> StoredTable:
            return stored(make(wanted), folder)

        return workshop.table(f"{GROUP}-{name}-{wanted}", write)

    return of


def _regexes(*markers: Marker) -> tuple[Condition, ...]:
    return tuple(matches("s", marker.pattern) for marker in markers)


FIVE = _table("markers", five_markers)
CHEAP = _table("cheap-and-costly", cheap_and_costly)
SIXTEEN = _table("sixteen", sixteen)
ALIKE = _table("alike", alike)
CORRELATED = _table("correlated", correlated)
HIDDEN = _table("hidden", hidden)
DRIFTING = _table("drifting", drifting)
WIDTHS = {40: 10, 41: 100, 42: 400}
SCALES = {50: 10_000, 51: 100_000, 52: 1_000_000, 53: 10_000_000}
OTHERS = {30: 1, 31: 3, 32: 7, 33: 15}

FREQUENT_FIRST = _regexes(AAA, BBB, CCC, DDD, RARE)
RARE_FIRST = _regexes(RARE, AAA, BBB, CCC, DDD)
CHEAP_THEN_RARE = (Sql("c0 < 90"), *_regexes(RARE))


def _case(
    name: str, kind: Kind, table: Callable[[Workshop], StoredTable], *conditions: Condition
) -> GuestCase:
    others = name in ("correlation 73", "drift 80", "drift 81")
    return GuestCase(name, GROUP, kind, table, conditions, orders_of_others=others)


def _below_90(count: int) -> tuple[Condition, ...]:
    return texts(*(f"c{k} < 90" for k in range(1, count + 1)), "c0 < 5")


CASES: tuple[GuestCase, ...] = (
    _case("costsel 1", "regex", FIVE, *FREQUENT_FIRST),
    _case("costsel 2", "regex", FIVE, *RARE_FIRST),
    _case("costsel 3", "regex", CHEAP, *CHEAP_THEN_RARE),
    _case("cost 10", "regex", CHEAP, *_regexes(TEN), Sql("c0 < 10")),
    _case("cost 11", "regex", CHEAP, Sql("c0 < 10"), *_regexes(TEN)),
    _case("selectivity 20", "sql", SIXTEEN, *texts("c4 < 95", "c0 < 5")),
    _case("selectivity 21", "sql", SIXTEEN, *texts("c0 < 5", "c4 < 95")),
    *(
        _case(f"cardinality {number}", "sql", SIXTEEN, *_below_90(count))
        for number, count in OTHERS.items()
    ),
    *(
        _case(
            f"width {number}", "regex",
            _table(f"width-{width}", partial(five_markers, width=width)), *FREQUENT_FIRST,
        )
        for number, width in WIDTHS.items()
    ),
    *(
        _case(
            f"scale {number}", "regex",
            _table("cheap-and-costly", cheap_and_costly, rows), *CHEAP_THEN_RARE,
        )
        for number, rows in SCALES.items()
    ),
    _case("neutral 60", "sql", ALIKE, *texts("c0 < 50", "c1 < 50", "c2 < 50", "c3 < 50")),
    _case("neutral 61", "regex", ALIKE, *(
        matches(f"s{k}", marker.pattern) for k, marker in enumerate(HALVES, start=1)
    )),
    _case("correlation 70", "sql", CORRELATED, *texts("x < 30", "x_pos < 30")),
    _case("correlation 71", "sql", CORRELATED, *texts("x < 30", "x_anti < 30")),
    _case("correlation 72", "sql", CORRELATED, *texts("x < 30", "ind < 30")),
    _case("correlation 73", "regex", HIDDEN, Sql("c0 = 1"), *(
        matches(column, "[m]ark") for column in ("s1", "s2", "s3", "s4")
    )),
    _case("drift 80", "sql", DRIFTING, *texts("a_sel = 0", "b_sel = 0")),
    _case("drift 81", "sql", DRIFTING, *texts("b_sel = 0", "a_sel = 0")),
)  # fmt: skip
"""All of them: none is left out."""
