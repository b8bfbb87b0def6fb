"""Arrow arrays of any type a column can have, by hypothesis, and what tells their values apart."""

import datetime as dt
import struct
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

TEXTS = ["", "a", "A", "ab", "b", "\0", "é", "e\u0301", "1", "None", "True", "a" * 40]
BYTES = [text.encode() for text in TEXTS] + [b"\xff\xfe"]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, float("inf"), float("-inf"), float("nan"), 65504.0]
DAYS = [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29)]
MOMENTS = [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2024, 2, 29)]
SPANS = [dt.timedelta(0), dt.timedelta(seconds=1), dt.timedelta(days=-1)]
NUMBERS = [Decimal("0.00"), Decimal("1.00"), Decimal("-1.00"), Decimal("0.01"), Decimal("99.99")]
PARIS = [each.replace(tzinfo=ZoneInfo("Europe/Paris")) for each in MOMENTS]

PLAIN = [
    (pa.null(), [None]),
    (pa.bool_(), [True, False]),
    *((kind, [0, 1, 7, 127]) for kind in (pa.uint8(), pa.uint16(), pa.uint32())),
    *((kind, [0, 1, -1, 127]) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    (pa.uint64(), [0, 1, 2**64 - 1]),
    (pa.float16(), [np.float16(each) for each in FLOATS]),
    (pa.float32(), FLOATS),
    (pa.float64(), FLOATS),
    *((kind, NUMBERS) for kind in (pa.decimal128(10, 2), pa.decimal256(50, 2))),
    *((kind, TEXTS) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, BYTES) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
    (pa.binary(2), [b"ab", b"\0\0", b"a\0"]),
    (pa.date32(), DAYS),
    (pa.date64(), DAYS),
    (pa.timestamp("us"), MOMENTS),
    (pa.timestamp("s"), MOMENTS),
    (pa.timestamp("us", "Europe/Paris"), PARIS),
    (pa.duration("us"), SPANS),
    (pa.time32("s"), [dt.time(0), dt.time(1)]),
    (pa.time64("us"), [dt.time(0), dt.time(1)]),
    (pa.month_day_nano_interval(), [(0, 0, 0), (1, 0, 0), (0, 30, 0), (0, 0, 1)]),
]
"""Types without other types in them, and values that are easily taken for each other."""


def _lists(inner):
    kind, values = inner
    of = st.lists(values, max_size=3)
    makers = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
    return st.sampled_from(makers).map(lambda make: (make(kind), of))


def _fixed_lists(inner):
    kind, values = inner
    return st.integers(0, 2).map(
        lambda size: (pa.list_(kind, size), st.lists(values, min_size=size, max_size=size))
    )


def _maps(pair):
    (_, _), (kind, values) = pair
    entries = st.lists(st.tuples(st.sampled_from(TEXTS), values), max_size=2)
    return pa.map_(pa.string(), kind), entries


def _structs(fields):
    names = [f"f{at}" for at in range(len(fields))]
    kind = pa.struct(
        [pa.field(name, inner) for name, (inner, _) in zip(names, fields, strict=True)]
    )
    of = dict(zip(names, (values for _, values in fields), strict=True))
    return kind, st.fixed_dictionaries(of)


def _or_null(case):
    kind, values = case
    return kind, st.none() | values


plain_types = st.sampled_from(PLAIN).map(lambda case: _or_null((case[0], st.sampled_from(case[1]))))
any_types = st.recursive(
    plain_types,
    lambda inner: st.one_of(
        inner.flatmap(_lists),
        inner.flatmap(_fixed_lists),
        st.tuples(plain_types, inner).map(_maps),
        st.lists(inner, max_size=3).map(_structs),
    ).map(_or_null),
    max_leaves=4,
)
"""Pairs of a type and of what draws a value of it, NULL at any depth."""


@st.composite
def columns(draw, rows):
    """An array of so many rows, often cut out of a longer one, or a dictionary."""
    kind, values = draw(any_types)
    pool = draw(st.lists(values, min_size=1, max_size=5))
    picked = st.integers(0, len(pool) - 1)
    before, after = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    size = before + rows + after
    drawn = draw(st.lists(picked, min_size=size, max_size=size))
    array = pa.array([pool[at] for at in drawn], kind)
    if not pa.types.is_nested(kind) and draw(st.booleans()):
        indices = pa.array(drawn, pa.int16())  # a dictionary may hold a value twice, and NULL
        array = pa.DictionaryArray.from_arrays(indices, pa.array(pool, kind))
    return array.slice(before, rows)


@st.composite
def batches(draw, most_rows=12, most_columns=3):
    """Some columns of one length."""
    rows = draw(st.integers(0, most_rows))
    count = draw(st.integers(1, most_columns))
    return [draw(columns(rows)) for _ in range(count)]


def told_apart(value):
    """What Python can tell a value apart by: of one type equal where nobody could."""
    if isinstance(value, dict):
        return "struct", tuple((name, told_apart(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return "list", tuple(map(told_apart, value))
    if isinstance(value, np.floating):
        return "half", value.tobytes()
    if isinstance(value, float):
        return "float", struct.pack("<d", value)
    return type(value).__name__, str(value)
