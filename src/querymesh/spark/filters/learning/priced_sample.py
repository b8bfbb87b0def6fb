"""How many rows learning may ask about, where functions cost money."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from querymesh.fabric.profile.bounded_profile import FIRST_ROWS
from querymesh.query.costly.account.price import SECONDS_A_UNIT, Budget
from querymesh.query.predicate.predicate import Predicate
from querymesh.stats.profile import Profile

PRICED_SHARE, EXTRA_SHARE = 0.1, 0.05
"""Functions may be asked about so many of the job's rows, and what that costs beyond what the best
order would have asked of the same rows is at most this share of what it will ask of all: no answer
is asked for twice, so that no more than this is lost."""

PRICED_ROWS = 64
"""By so many rows it is told what one costs."""


def most_priced_rows(
    functions: list[Predicate], sample: pa.Table, rows: float, budget: Budget | None
) -> int:
    """Of a sample, as many rows as functions may be asked about: a share of the job's rows, the
    first few at least, and no more than the budget has for learning.

    All functions are asked about each, and none of the answers is lost.
    """
    priced = [each for each in functions if each.price is not None]
    there = int(sample.num_rows)
    if not priced:
        return there
    most = int(min(there, max(FIRST_ROWS, PRICED_SHARE * rows)))
    if budget is None:
        return most
    row = sum(price_a_row(each, sample.slice(0, PRICED_ROWS)) for each in priced)
    return min(most, int(budget.for_learning / row)) if row > 0 else most


def rows_worth(profile: Profile, best_us: float, rows: float) -> int:
    """How many rows to ask about, by the first ones: the best order for them costs `best_us`."""
    extra_us = float(profile.cost_us.sum()) - best_us
    if extra_us <= 0:
        return int(rows)
    return profile.rows + int(EXTRA_SHARE * rows * best_us / extra_us)


def money_us(functions: list[Predicate], sample: pa.Table, budget: Budget | None) -> float:
    """What the money for a row is worth in microseconds."""
    seconds_a_unit = SECONDS_A_UNIT if budget is None else budget.seconds_a_unit
    few = sample.slice(0, PRICED_ROWS)
    priced = [each for each in functions if each.price is not None]
    return 1e6 * seconds_a_unit * sum(price_a_row(each, few) for each in priced)


def price_a_row(function: Predicate, few: pa.Table) -> float:
    """What one of some rows costs; of a function that is called within SQL by all of their texts,
    since its arguments are no columns."""
    price = function.price
    assert price is not None
    names = [name for name in function.columns if name in few.column_names]
    if not names or len(names) < len(function.columns):
        names, price = few.column_names, replace(price, tokens=None)
    args = [few.column(name).combine_chunks() for name in names]
    by_row = function.vectorised is False
    batch = function.calling.rows_a_call(few.num_rows, by_row=by_row, is_paid=True)
    return price.a_row(args, few.num_rows, batch)
