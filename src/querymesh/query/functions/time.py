"""Parts of dates and timestamps, in the time zone that the column's type names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from querymesh.errors import UnsupportedError
from querymesh.query.functions.spec import Datum, Function, Rule, Signature, template
from querymesh.query.types import LITERAL_ZONE, Kind, compute_type, kind_of


def _part(kernel: Callable[[Datum], Datum]) -> Callable[[Datum], Datum]:
    def compute(when: Datum) -> Datum:
        if pa.types.is_null(when.type):
            return pc.cast(when, pa.int64())
        # Arrow's own parts of a zoned timestamp forget offsets with seconds, as of the year 1900.
        zoned = pa.types.is_timestamp(when.type) and when.type.tz is not None
        return pc.cast(kernel(pc.local_timestamp(when) if zoned else when), pa.int64())

    return compute


def _reads(kinds: set[Kind]) -> Rule:
    def rule(types: Sequence[pa.DataType]) -> Signature | None:
        (given,) = types
        if kind_of(given) is Kind.NULL:
            return Signature((None,), pa.int32())
        if pa.types.is_timestamp(given) and given.tz == LITERAL_ZONE:
            raise UnsupportedError(
                "the parts of a literal with a time zone depend on the zone of the session, which "
                "is not known here: leave its zone out"
            )
        return Signature((compute_type(given),), pa.int32()) if kind_of(given) in kinds else None

    return rule


TIME = tuple(
    Function(
        name,
        (1, 1),
        takes,
        _reads(kinds),
        _part(kernel),
        template(f"CAST({name}({{0}}) AS BIGINT)"),
    )
    for names, kinds, takes in (
        (("year", "month", "day"), {Kind.DATE, Kind.TIMESTAMP}, "a date or a timestamp"),
        (("hour", "minute", "second"), {Kind.TIMESTAMP}, "a timestamp"),
    )
    for name, kernel in ((name, getattr(pc, name)) for name in names)
)
