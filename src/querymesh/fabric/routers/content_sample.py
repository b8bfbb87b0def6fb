"""The random sample R of an operator being profiled, and what it says (CBR § 3, § 4.1).

The matrices In and Out are counted once the sample is complete, by the ranges known then::

    In[j, i]    sampled tuples in partition i of attribute j
    Out[j, i]   those of them that passed; where one tuple may give several, how many came out
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Floats, Ints
from querymesh.classify.attributes import LONG_TEXT_CHARACTERS
from querymesh.classify.gain import explained_variance, gain_ratio
from querymesh.classify.partitions import (
    Attributes,
    Partitions,
    can_partition,
    is_continuous,
    size_of,
)
from querymesh.fabric.routers.content_limits import MOST_PARTITIONS

MANY_VALUES = 0.5
"""A discrete attribute with more distinct values than this share of the sample is left out."""

SETS_OF = 12
"""Sets of two are made of so many attributes, those that say most by themselves. Not of a few: two
that tell something only together say nothing by themselves, less than chance gives to others."""

CHANCE_BITS = 0.5 / np.log(2)
"""What each further partition gains by chance, divided by the size of the sample (in bits)."""


class Candidate(NamedTuple):
    """An attribute, or a set of two, and how much it says about an operator."""

    attributes: Attributes
    gain: float


@dataclass
class Sample:
    """Tuples that were sent to one operator first, and what it made of each."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    outcomes: list[Floats] = field(default_factory=list)
    _matrices: dict[object, tuple[Ints, Floats]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """In and Out that were asked for, by attributes, partitions and ranges."""

    def __post_init__(self) -> None:
        self.rows = sum(len(each) for each in self.outcomes)
        """How many tuples there are so far."""

    def add(self, batch: pa.RecordBatch, outcomes: Floats) -> None:
        """Add tuples, and how many rows came out for each."""
        self.rows += len(outcomes)
        self.batches.append(batch)
        self.outcomes.append(outcomes)
        self._matrices.clear()

    @property
    def names(self) -> list[str]:
        """The columns that the tuples have."""
        return list(self.batches[0].schema.names) if self.batches else []

    def to_json(self) -> dict[str, Any]:
        """As texts: the tuples as an Arrow stream."""
        if not self.batches:
            return {}
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.batches[0].schema) as writer:
            for batch in self.batches:
                writer.write_batch(batch)
        rows = b64encode(sink.getvalue()).decode()
        return {"rows": rows, "outcomes": [each.tolist() for each in self.outcomes]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Sample:
        """Back from `to_json`."""
        if not stored:
            return cls()
        with pa.ipc.open_stream(b64decode(stored["rows"])) as reader:
            batches = list(reader)
        return cls(batches, [np.array(each, np.float64) for each in stored["outcomes"]])

    def column(self, name: str) -> pa.Array:
        """A column of all tuples, in the order they came."""
        return pa.concat_arrays([batch.column(name) for batch in self.batches])

    def outcome(self) -> Floats:
        """What came out for each tuple."""
        return np.concatenate(self.outcomes) if self.outcomes else np.zeros(0)

    def matrices(
        self, attributes: Attributes, count: int, partitions: Partitions
    ) -> tuple[Ints, Floats]:
        """In and Out of an attribute or set."""
        by = attributes, count, tuple(partitions.ranges.get(name) for name in attributes)
        if by not in self._matrices:
            self._matrices[by] = self._counted(attributes, count, partitions)
        return self._matrices[by]

    def _counted(
        self, attributes: Attributes, count: int, partitions: Partitions
    ) -> tuple[Ints, Floats]:
        codes = partitions.codes(attributes, count, self.column)
        size = size_of(attributes, count)
        arrived: Ints = np.bincount(codes, minlength=size)
        passed = np.bincount(codes, weights=self.outcome(), minlength=size)
        return arrived, passed.astype(np.float64)

    def gain(self, attributes: Attributes, count: int, partitions: Partitions) -> float:
        """The gain ratio; for an operator that multiplies tuples, the explained variance."""
        arrived, passed = self.matrices(attributes, count, partitions)
        outcome = self.outcome()
        if len(outcome) and outcome.max() > 1:
            squares = float((outcome**2).sum())
            return explained_variance(arrived.astype(np.float64), passed, squares)
        return gain_ratio(arrived.astype(np.float64), passed)

    def candidates(
        self,
        names: Iterable[str],
        count: int,
        partitions: Partitions,
        sets: bool,
        evidence: float = 0.0,
    ) -> list[Candidate]:
        """Attributes by what they say, most first; and sets of two, where they are asked for.

        Sets have more partitions and gain more by chance alone. What chance gives is taken off
        both sides before a set is compared with single attributes. With `evidence` they are ranked
        by that instead, and those with less of it say nothing.
        """
        singles = sorted(
            (Candidate((name,), self.gain((name,), count, partitions)) for name in names),
            key=lambda candidate: -candidate.gain,
        )
        pairs = combinations(singles[:SETS_OF], 2) if sets else ()
        both = [tuple(sorted(one.attributes + other.attributes)) for one, other in pairs]
        doubles = [Candidate(names, self.gain(names, count, partitions)) for names in both]
        if evidence:
            return self._sure([*singles, *doubles], count, partitions, evidence)
        if not sets:
            return singles
        fair = [self._fair(each, count, partitions) for each in (*singles, *doubles)]
        return sorted(fair, key=lambda candidate: -candidate.gain)

    def _sure(
        self, candidates: list[Candidate], count: int, partitions: Partitions, evidence: float
    ) -> list[Candidate]:
        """Ranked by evidence; what has less than asked for gains nothing."""
        weighed = [(self.evidence(each.attributes, count, partitions), each) for each in candidates]
        weighed.sort(key=lambda pair: -pair[0])
        return [
            each if found >= evidence else Candidate(each.attributes, 0.0)
            for found, each in weighed
        ]

    def evidence(self, attributes: Attributes, count: int, partitions: Partitions) -> float:
        """How many standard deviations beyond chance an attribute's partitions differ.

        Pearson's χ² of the partitions' means, as a normal deviate (Wilson and Hilferty), so that
        attributes with few and with many partitions can be compared. A gain ratio cannot: that of
        24 partitions of 150 tuples is about 0.03 by chance, more than many a true one of two.
        """
        arrived, passed = self.matrices(attributes, count, partitions)
        outcome, there = self.outcome(), arrived > 0
        variance, free = float(outcome.var()), int(there.sum()) - 1
        if free < 1 or variance == 0:
            return 0.0
        means = passed[there] / arrived[there]
        chi = float((arrived[there] * (means - outcome.mean()) ** 2).sum()) / variance
        spread = 2 / (9 * free)
        return float(((chi / free) ** (1 / 3) - (1 - spread)) / np.sqrt(spread))

    def _fair(self, candidate: Candidate, count: int, partitions: Partitions) -> Candidate:
        arrived, _ = self.matrices(candidate.attributes, count, partitions)
        used = arrived[arrived > 0]
        if len(used) < 2:
            return candidate
        share = used / used.sum()
        split = float(-(share * np.log2(share)).sum())
        by_chance = (len(used) - 1) * CHANCE_BITS / used.sum() / split
        return Candidate(candidate.attributes, max(0.0, candidate.gain - by_chance))


def asked_of(batch: pa.RecordBatch, attributes: Sequence[str]) -> pa.RecordBatch:
    """Those columns of a batch that may be classifier attributes: such as are sent, which nested
    ones and many that nothing reads are not."""
    return batch.select([name for name in attributes if name in batch.schema.names])


def left_out(name: str, values: pa.Array) -> str | None:
    """Why an attribute need not be tried, from its values in the order they came (CBR § 4.4)."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if not can_partition(kind):
        return f"values of type {kind} cannot be partitioned"
    if len(values) < 2:
        return None
    text = _is_text(kind)
    if text:
        length = pc.mean(pc.binary_length(values)).as_py() or 0
        if length > LONG_TEXT_CHARACTERS:
            return f"long text, {length:.0f} bytes on average"
    distinct = distinct_values(values)
    many = distinct > max(2, MANY_VALUES * len(values))
    timed = pa.types.is_timestamp(kind) and distinct > 2  # of coarse times many tuples share one
    if (many or timed) and not text and _only_grows(values):
        return "only grows or falls, as times and ids do"
    if many and not is_continuous(kind):
        return f"too many values: {distinct} in {len(values)} tuples"
    return None


def _is_text(kind: pa.DataType) -> bool:
    either = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return any(kind.equals(each) for each in either)


def distinct_values(values: pa.Array) -> int:
    """How many different values there are, NULL apart."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return int(pc.count_distinct(values).as_py())


def tuned(count: int, sample: Sample, attributes: Attributes) -> int:
    """Twice the partitions for an attribute with more values, half for one with fewer."""
    values = distinct_values(sample.column(attributes[0]))
    if values > 0.8 * count:
        return min(2 * count, MOST_PARTITIONS)
    return max(count // 2, 2) if values < count // 4 else count


def _only_grows(values: pa.Array) -> bool:
    kept = values.drop_null()
    if pa.types.is_boolean(kept.type) or len(kept) < 2:
        return False
    one, two = kept.slice(0, len(kept) - 1), kept.slice(1)
    return bool(
        pc.all(pc.less_equal(one, two)).as_py() or pc.all(pc.greater_equal(one, two)).as_py()
    )
