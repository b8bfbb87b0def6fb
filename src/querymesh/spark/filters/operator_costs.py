"""What the operators of a filter cost, in Catalyst and in Python, and the way between the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from querymesh.arrays import Floats
from querymesh.cost.catalyst_cost import estimate_us, is_text
from querymesh.fabric.profile.remembered_costs import Remembered
from querymesh.mesh.written import needs_python
from querymesh.optimize.placement.costs import Costs
from querymesh.query.expr import user_calls_of
from querymesh.query.model import BoundQuery, Filter, Lookup, Operator
from querymesh.query.predicate.predicate import Predicate
from querymesh.spark.conditions.catalyst import Node
from querymesh.spark.filters.filter_job import FilterJob, is_opaque
from querymesh.spark.filters.staged import exprs_of, read_by
from querymesh.spark.prices.catalyst_costs import timed_us
from querymesh.spark.prices.condition_costs import believed_us, mean_bytes, ratio_to_prices
from querymesh.spark.prices.machine_prices import measured_against

PYTHON_US = (1.0, 50.0)
"""What one call of a Python function may cost, before anybody has called it."""

COSTLY_US = (1_000.0, 100_000.0)
"""The same of one whose options say that it costs much: calls at once, retries, a memo."""

LOOKUP_US, ARROW_US = (0.05, 2.0), (0.01, 0.5)
"""The same of a look-up, and of a condition on Arrow that Catalyst was not asked about."""

TIMED_DOUBT, TABLE_DOUBT = 1.3, 2.0
"""By which factors Catalyst's costs may be too high, if they were timed in the driver, and if only
a table tells them."""

SURE, UNSURE = 1.2, 1.6
"""By which factors what the table says may be wrong: small ones, since a sample costs more than
most jobs could save, and a job that is dearer than it seems runs as written, and no worse."""

SHORT_TEXT, LONG_TEXT = 8.0, 200.0
"""Bytes of a text, before anybody has seen one."""

PACKED = 2.5
"""By so much files are packed, about."""

COLUMN = "AttributeReference"

TIMING_S, TIMED_ROWS = 0.2, 1_000
"""What timing conditions in Catalyst may take, and on how many rows."""

CROSSING_US, BYTE_US, COLUMN_US = 0.4, 0.0012, 0.03
"""A row's way to Python and back: its fixed price, that of each byte that is sent, and that of each
column of the row, which Spark keeps whole until the answer comes."""

REMOTE_US = 10.0
"""What a call is taken to cost of a function that the driver cannot make, and so cannot time."""


def text_bytes(size: float | None, rows: float | None) -> float:
    """How long texts may be on average, of so many rows in files of this size."""
    if rows is None or size is None or rows < 1:
        return LONG_TEXT
    return min(LONG_TEXT, max(SHORT_TEXT, PACKED * size / rows))


@dataclass(frozen=True)
class CatalystTimes:
    """What each operator costs in Catalyst, infinite for a Python function, and by which factor
    that may be too high. `sure` is false where some of it was guessed: no order can be put on that.
    """

    us: Floats
    doubt: float
    sure: bool = True

    @property
    def together_us(self) -> float:
        """What all of Catalyst's operators cost together."""
        return float(self.us[np.isfinite(self.us)].sum())


@dataclass(frozen=True)
class OperatorCosts:
    """Costs of one filter's operators, by the machine's table of prices and by a sample.

    `asked` is the query as it is profiled; `text_bytes` is how long texts may be on average, and
    `seen` how long they are, by column, in rows that were seen.
    """

    job: FilterJob
    asked: BoundQuery
    text_bytes: float
    seen: Mapping[str, float] = field(default_factory=dict)

    def plain_range_us(self, text_bytes: float | None = None) -> tuple[float, float]:
        """What a row costs in plain Spark: at the least, and at the most.

        `text_bytes` are how long texts may be on average, if not as it seems.
        """
        ranges = [self._range_us(op, text_bytes) for op in self.job.bound.operators]
        return sum(low for low, _ in ranges), sum(high for _, high in ranges)

    def beside_functions_us(self) -> float:
        """What a row costs at the most, users' functions left out."""
        others = [op for op in self.job.bound.operators if not _called(op)]
        return sum(self._range_us(operator, None)[1] for operator in others)

    def _range_us(self, operator: Operator, text_bytes: float | None) -> tuple[float, float]:
        if called := _called(operator):
            ranges = [_called_range_us(self.job.bound.query.functions[name]) for name in called]
            return sum(low for low, _ in ranges), sum(high for _, high in ranges)
        if operator.index in self.job.trees:
            tree = self.job.trees[operator.index]
            return self._estimated_range_us(tree, text_bytes or self.text_bytes)
        return LOOKUP_US if isinstance(operator, Lookup) else ARROW_US

    def _estimated_range_us(self, tree: Node, text_bytes: float) -> tuple[float, float]:
        """What a condition costs in Catalyst, on short texts and on the longest there may be."""
        texts = [n.fields["name"] for n in tree.walk() if n.kind == COLUMN and is_text(n)]
        shortest = {**dict.fromkeys(texts, SHORT_TEXT), **self.seen}
        longest = {**dict.fromkeys(texts, text_bytes), **self.seen}
        short = estimate_us(tree, shortest, self.job.prices)
        long = estimate_us(tree, longest, self.job.prices)
        factor = SURE if long.how_sure >= 0.5 else UNSURE
        return short.us / factor, max(short.us, long.us * factor)

    def in_catalyst(self, taken: pa.Table, budget_s: float) -> CatalystTimes:
        """What each operator costs in Catalyst: timed there where the budget allows, else by the
        table."""
        every = self.job.bound.operators
        operators = [op for op in every if isinstance(op, Filter) and op.index in self.job.trees]
        found: Floats = np.full(len(every), np.inf)
        if not operators:
            return CatalystTimes(found, 1.0)
        own = self.job.bound.schemas[self.job.bound.source.alias].names
        few = taken.select([n for n in own if n in taken.column_names]).slice(0, TIMED_ROWS)
        lengths = mean_bytes(few)
        prices = [
            estimate_us(self.job.trees[op.index], lengths, self.job.prices) for op in operators
        ]
        at = [operator.index - 1 for operator in operators]
        found[at] = [price.us for price in prices]
        sure = all(price.how_sure >= 0.5 for price in prices)
        if budget_s >= TIMING_S:
            conditions = [self.job.columns.of(operator.expr) for operator in operators]
            timed = timed_us(self.job.whole.sparkSession, few, conditions, TIMING_S)
            if timed is not None:
                believed = believed_us(timed, prices)
                ratio = ratio_to_prices(timed, prices)
                if ratio is not None:
                    measured_against(self.job.source.sparkSession, self.job.prices, ratio)
                found[at] = np.where(np.isnan(believed), found[at], believed)
                return CatalystTimes(found, TIMED_DOUBT)
        return CatalystTimes(found, TABLE_DOUBT, sure)

    def of_profile(
        self, found: Remembered, native: CatalystTimes, bytes_of: Mapping[str, float]
    ) -> Costs:
        """What each operator costs in Catalyst and in Python; infinite where it cannot run."""
        profile = found.profile
        drop_us, pass_us = profile.drop_us.copy(), profile.pass_us.copy()
        for operator in self.job.bound.operators:
            at = operator.index - 1
            if not needs_python(operator):
                if is_opaque(operator):
                    drop_us[at] = pass_us[at] = np.inf
            elif is_opaque(self.asked.operators[at]):
                drop_us[at] = pass_us[at] = REMOTE_US

        width = len(self.job.bound.schemas[self.job.bound.source.alias])

        def transport_us(operators: frozenset[int], columns: frozenset[str]) -> float:
            read = read_by(self.job.bound, operators) | columns
            sent_us = BYTE_US * sum(bytes_of.get(name, 8.0) for name in read)
            return CROSSING_US + sent_us + COLUMN_US * width

        return Costs(
            native.us, drop_us, pass_us, transport_us,
            catalyst_doubt=native.doubt, called_us=found.called_us,
        )  # fmt: skip


def _called(operator: Operator) -> frozenset[str]:
    """The users' functions that an operator calls."""
    return frozenset(name for expr in exprs_of(operator) for name in user_calls_of(expr))


def _called_range_us(function: Predicate) -> tuple[float, float]:
    if function.cost_us is not None:
        return function.cost_us, function.cost_us
    return COSTLY_US if function.is_costly else PYTHON_US
