"""Test attributes: which columns a classifier may ask about, and their values as small codes.

Left out, each with its reason (shown by `explain`): ids that only grow, since no future tuple will
have a past value; long free text and names with a value per row, since a test would learn the
sample by heart; times; nested values; constants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Floats, Ints
from querymesh.query.functions.decimals import to_double
from querymesh.query.types import Kind, kind_of

MAX_EDGES = 64
MAX_CATEGORIES = 64
MAX_INTEGER_CATEGORIES = 16
LONG_TEXT_CHARACTERS = 64
MONOTONE_SHARE = 0.98


@dataclass(frozen=True)
class Attribute:
    """A column cut into bins: bin 0 is NULL, bins 1.. are ranges or categories.

    A numeric attribute has `edges`: bin b holds edges[b-2] < x <= edges[b-1], the last bin the
    rest, NaN with it (NaN is the greatest number here as in Spark). A categorical one has `values`.
    """

    name: str
    edges: Floats | None = None
    values: tuple[Any, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether tests are thresholds; otherwise they are sets of values."""
        return self.edges is not None

    @property
    def bins(self) -> int:
        """The number of codes, NULL included."""
        return 1 + (len(self.edges) + 1 if self.edges is not None else len(self.values))

    def codes(self, column: pa.Array) -> Ints:
        """Each row's bin. A value the sample did not have is coded as NULL's bin."""
        if self.edges is not None:
            numbers = as_floats(column)
            codes = 1 + np.searchsorted(self.edges, numbers, side="left")
            return np.where(null_mask(column), 0, codes).astype(np.int64)
        found = pc.index_in(column, value_set=pa.array(self.values, column.type))
        return np.asarray(pc.fill_null(found, -1), dtype=np.int64) + 1


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A column that is no test attribute, and why."""

    name: str
    reason: str


def as_floats(column: pa.Array) -> Floats:
    """A numeric column as doubles; NULL becomes 0 and must be masked by the caller."""
    decimal = kind_of(column.type) is Kind.DECIMAL  # as Catalyst rounds, since it asks tests too
    numbers = to_double(column) if decimal else pc.cast(column, pa.float64(), safe=False)
    return np.asarray(pc.fill_null(numbers, 0.0), dtype=np.float64)


def null_mask(column: pa.Array) -> Bools:
    """True where the column is NULL."""
    return np.asarray(pc.is_null(column), dtype=bool)


def choose_attributes(sample: pa.Table) -> tuple[list[Attribute], list[LeftOut]]:
    """Every column of the sample as a test attribute, or the reason why it is none.

    The sample's rows are expected in arrival order: that is how an id that only grows is seen.
    """
    chosen: list[Attribute] = []
    left_out: list[LeftOut] = []
    for name, chunked in zip(sample.column_names, sample.columns, strict=True):
        made = _attribute(name, one_piece(chunked))
        if isinstance(made, Attribute):
            chosen.append(made)
        else:
            left_out.append(LeftOut(name, made))
    return chosen, left_out


def coarser(attribute: Attribute, ranges: int) -> Attribute:
    """The attribute with its numbers in so many ranges at most."""
    if attribute.edges is None or len(attribute.edges) < ranges:
        return attribute
    chosen = np.linspace(0, len(attribute.edges) - 1, ranges + 1)[1:-1].round().astype(int)
    return replace(attribute, edges=np.unique(attribute.edges[chosen]))


def one_piece(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array, dictionaries decoded."""
    array = pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _attribute(name: str, column: pa.Array) -> Attribute | str:
    kind = column.type
    if pa.types.is_boolean(kind):
        return Attribute(name, values=(False, True))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _numeric(name, column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _categorical(name, column)
    if pa.types.is_temporal(kind):
        return "a date or time: no future tuple has a past value"
    return f"values of type {kind} have no tests"


def _numeric(name: str, column: pa.Array) -> Attribute | str:
    present = column.drop_null()
    distinct = pc.unique(present)
    if len(distinct) <= 1:
        return "the same value in every sampled row"
    if pa.types.is_integer(column.type) and len(distinct) <= MAX_INTEGER_CATEGORIES:
        return Attribute(name, values=tuple(sorted(distinct.to_pylist())))
    numbers = as_floats(present)
    if not pa.types.is_floating(column.type) and _only_grows(numbers, len(distinct)):
        return "an id that only grows with arrival"
    return Attribute(name, edges=_edges(numbers))


def _only_grows(numbers: Floats, distinct: int) -> bool:
    if distinct < 0.9 * len(numbers):
        return False
    steps = np.diff(numbers)
    return bool(max((steps > 0).mean(), (steps < 0).mean()) >= MONOTONE_SHARE)


def _edges(numbers: Floats) -> Floats:
    """Thresholds between neighbouring values, at most MAX_EDGES of them at even quantiles."""
    values = np.unique(numbers[~np.isnan(numbers)])
    if len(values) > MAX_EDGES + 1:
        ranks = np.linspace(0, 1, MAX_EDGES + 2)[1:-1]
        finite = np.sort(numbers[~np.isnan(numbers)])
        values_below = np.unique(finite[(ranks * (len(finite) - 1)).astype(int)])
        position = np.minimum(np.searchsorted(values, values_below) + 1, len(values) - 1)
        lower, upper = values_below, values[position]
    else:
        lower, upper = values[:-1], values[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = lower + (upper - lower) / 2
    middle = np.where(np.isfinite(middle), middle, lower)
    return np.unique(middle[np.isfinite(middle)])


def _categorical(name: str, column: pa.Array) -> Attribute | str:
    present = column.drop_null()
    if len(present) == 0:
        return "NULL in every sampled row"
    counts = pc.value_counts(present)
    if float(pc.mean(pc.utf8_length(present)).as_py()) > LONG_TEXT_CHARACTERS:
        return "long free text"
    if len(counts) == 1 and len(present) == len(column):
        return "the same value in every sampled row"
    if len(counts) > MAX_CATEGORIES and len(counts) > 0.5 * len(present):
        return "nearly as many values as rows"
    most = sorted(counts.to_pylist(), key=lambda c: (-c["counts"], c["values"]))[:MAX_CATEGORIES]
    return Attribute(name, values=tuple(sorted(entry["values"] for entry in most)))
