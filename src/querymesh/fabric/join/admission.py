"""How a tuple enters a state that several queries share: with a mask of those it can be for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Ints
from querymesh.fabric.core.operators import FilterModule, UserCalls
from querymesh.fabric.core.ruster import ClassificationWindow, Ruster
from querymesh.fabric.core.tables import on_batch
from querymesh.fabric.core.token import RouteToken
from querymesh.fabric.join.arrivals import Arrivals
from querymesh.fabric.join.probe import is_exact
from querymesh.fabric.join.state import Keyed, partition_of, stored_columns
from querymesh.index.store.codes import equality_codes, order_codes
from querymesh.index.store.partition import Partition
from querymesh.query.expr import Expr, user_calls_of
from querymesh.query.model import Filter
from querymesh.query.shared_join import SharedJoin
from querymesh.query.types import compute_type


@dataclass(frozen=True)
class Entered:
    """Arrivals that some query can use: the mask of those, their codes, and their values by stored
    key where codes do not tell all of them apart."""

    arrivals: Arrivals
    mask: Ints
    key: Keyed

    def some(self, chosen: Bools) -> Entered:
        """Those where a mask is true."""
        if chosen.all():
            return self
        arrow = pa.array(chosen)
        key = Keyed(
            self.key.joinable[chosen],
            tuple(codes[chosen] for codes in self.key.keys),
            tuple(codes[chosen] for codes in self.key.orders),
            {number: values.filter(arrow) for number, values in self.key.values.items()},
        )
        return Entered(self.arrivals.some(chosen), self.mask[chosen], key)


class Admission:
    """The conditions on one stream alone, those of all queries, and its keys.

    A condition or a function in a key is asked about the tuples only that may still be for a query
    that has it, and once a tuple.
    """

    def __init__(self, shared: SharedJoin, alias: str, calls: UserCalls) -> None:
        self.shared = shared
        self.alias = alias
        self.evaluations = 0
        self.failed_keys = 0
        self.unjoinable = 0
        self._calls = calls
        self._readers = shared.readers(alias)
        own = shared.own[alias]
        self.modules = [
            (FilterModule(operator, calls), served)
            for operator, served in zip(own.operators, own.serves, strict=True)
            if isinstance(operator, Filter)
        ]
        self._keys = [(each, shared.users(alias, each)) for each in shared.keys_of(alias)]
        self._orders = [(each, shared.comparers(alias, each)) for each in shared.orders_of(alias)]

    @property
    def errors(self) -> int:
        """Calls of functions in conditions that raised, on rows that were dropped for it."""
        return sum(module.errors for module, _ in self.modules)

    def mask(self, rows: pa.RecordBatch) -> Ints:
        """For each row, the queries whose conditions on the stream alone it passes."""
        mask = np.full(rows.num_rows, self._readers, np.int64)
        window = ClassificationWindow(self.alias, rows)
        for module, served in self.modules:
            asked = np.flatnonzero(mask & served)
            if len(asked):
                self.evaluations += len(asked)
                passed = module.verdict(Ruster(window, asked, RouteToken(())))
                mask[asked[~passed]] &= ~served
        return mask

    def enter(self, arrivals: Arrivals) -> Entered:
        """The arrivals that are stored: some query's conditions hold, and its keys are there."""
        mask = self.mask(arrivals.rows)
        passed = mask != 0
        arrivals, mask = arrivals.some(passed), mask[passed]
        keys, orders, values = [], [], {}
        self._failed = np.zeros(len(arrivals), dtype=bool)
        for each, users in self._keys:
            found, there = self._computed(each.members[self.alias], arrivals.rows, mask, users)
            found = found if found.type == each.dtype else found.cast(each.dtype)
            keys.append(_spread(equality_codes(found.filter(there)).codes, there, arrivals))
            if not is_exact(each.dtype):
                values[each.number] = found
        for order, users in self._orders:
            found, there = self._computed(order, arrivals.rows, mask, users)
            codes = order_codes(found.filter(there))
            if codes is None:
                raise TypeError(f"{self.alias} is compared by {found.type}, which has no order")
            orders.append(_spread(codes, there, arrivals))
        joinable = mask != 0
        self.unjoinable += int((~joinable & ~self._failed).sum())
        self.failed_keys += int(self._failed.sum())
        everyone = Entered(arrivals, mask, Keyed(joinable, tuple(keys), tuple(orders), values))
        return everyone.some(joinable)

    def _computed(
        self, key: Expr, rows: pa.RecordBatch, mask: Ints, users: int
    ) -> tuple[pa.Array, pa.Array]:
        """A key of all rows, and where it is there; who has none is for nobody that asks for it."""
        if user_calls_of(key):
            asked = mask & users != 0
            some = on_batch(key, rows.filter(pa.array(asked)), self._calls)
            failed = self._calls.take_failed()
            if failed is not None:
                self._failed[np.flatnonzero(asked)[failed]] = True
                some = pc.if_else(pa.array(failed), pa.scalar(None, some.type), some)
            found = some.take(pa.array(np.cumsum(asked) - 1, mask=~asked))
        else:
            found = on_batch(key, rows, self._calls)
        wanted = compute_type(found.type)
        found = found if found.type == wanted else found.cast(wanted)
        there = pc.is_valid(found)
        mask[~np.asarray(there, dtype=bool)] &= ~users
        return found, there

    def partition(self, entered: Entered) -> Partition:
        """The arrivals as a partition of their stream's state."""
        rows = self.with_mask(entered)
        columns = stored_columns(self.shared, self.alias, rows, entered.key)
        return partition_of(self.shared, self.alias, entered.arrivals, entered.key, columns)

    def with_mask(self, entered: Entered) -> pa.RecordBatch:
        """The rows, with their masks if these differ."""
        rows = entered.arrivals.rows
        if self.alias not in self.shared.masked:
            return rows
        return rows.append_column(self.shared.queries_column, pa.array(entered.mask))


def _spread(codes: Ints, there: pa.Array, arrivals: Arrivals) -> Ints:
    """Codes with some number at rows that have none, each another: a NULL that is stored for other
    queries should meet nothing, and what it does meet its mask forbids."""
    if len(codes) == len(there):
        return codes
    seed = abs(int(arrivals.times[0])) + len(arrivals)
    spread = np.random.default_rng(seed).integers(-(2**62), 2**62, len(there))
    spread[np.asarray(there, dtype=bool)] = codes
    return spread


def values_of_group(
    values: Mapping[int, pa.Array], shared: SharedJoin, group: int, alias: str
) -> dict[int, pa.Array]:
    """Values by stored key, by the class of a group that each is of."""
    join = shared.groups[group].join
    stored = shared.stored[alias].keys
    return {
        each.number: values[key.number]
        for key, each in zip(stored, join.keys_of(alias), strict=True)
        if key.number in values
    }
