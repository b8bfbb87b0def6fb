"""Random joins of windowed streams with their data, and what DuckDB makes of the whole data.

Conditions come in two spellings, ours and DuckDB's, because the oracle must not share our code.
DuckDB has no sliding windows of this kind. `[RANGE w]` becomes conditions on `greatest(...)` of
the members' times; `[ROWS n]` goes by arrival, so there DuckDB joins without windows and plain
Python looks at every combination::

    ours       FROM A a [RANGE 5 SECONDS], B b [ROWS 3]  WHERE a.x = b.x
    DuckDB     FROM A a, B b                             WHERE a.x = b.x
    Python     for each row: is a young enough, was b among the last three?
"""

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import querymesh as qm
from oracle import duckdb_connection

UNITS_US = {
    "MICROSECONDS": 1,
    "us": 1,
    "ms": 1_000,
    "MILLISECOND": 1_000,
    "SECONDS": 1_000_000,
    "s": 1_000_000,
    "Minutes": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAYS": 86_400_000_000,
}
EPOCH_US = 1_700_000_000_000_000
MOST_ROWS = {2: 40, 3: 40, 4: 20, 5: 14, 6: 10, 7: 8}
"""By the number of relations, so that most combinations can be looked at one by one."""

VALUES = {  # the first of each fit together, see `_Data.table`
    "x": [1, 0, 2, -1, 3, 5],
    "u": [1, 0, 2, 4, -3],
    "v": [1, 2, 0, 7],
    "y": [1.0, 0.0, -0.0, math.nan, 1.5, math.inf, 0.1, -math.inf, -2.25],
    # The third and the fourth are one DOUBLE.
    "n": [*map(Decimal, ("1.00", "0.00", "9007199254740993.01", "9007199254740993.02", "1.50"))],
    "k": ["k1", "K1", "", "k2", "Ä"],
    "m": ["k1", "k2", "", "zebra"],
    "f": [True, False],
    "d": [dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(2023, 11, 14)],
    "w": [dt.datetime(2023, 11, 14, 22, 13, 20), dt.datetime(1969, 12, 31, 23), dt.datetime.max],
}
TYPES = {
    **{column: [pa.int32(), pa.int64(), pa.int16(), pa.int8()] for column in "xuv"},
    "y": [pa.float64(), pa.float32()],
    "n": [pa.decimal128(18, 2), pa.decimal128(20, 3), pa.decimal128(38, 4)],
    "k": [pa.string()],
    "m": [pa.string(), pa.large_string()],
    "f": [pa.bool_()],
    "d": [pa.date32()],
}
_AS = {**dict.fromkeys("xuv", "BIGINT"), "y": "DOUBLE"}


def low_bit(values: pa.Array) -> pa.Array:
    return pc.bit_wise_and(values.cast(pa.int64()), pa.scalar(1, pa.int64()))


def is_even(values: pa.Array) -> pa.Array:
    return pc.equal(low_bit(values), 0)


def near(one: int | None, other: int | None) -> bool | None:
    return None if one is None or other is None else abs(one - other) <= 1


FUNCTIONS = {
    "low_bit": qm.function(low_bit, returns=pa.int64(), name="low_bit"),
    "is_even": qm.predicate(is_even, name="is_even"),
    "near": qm.predicate(near, name="near", vectorised=False),
}


class Spelled(NamedTuple):
    """The same in our SQL and in DuckDB's."""

    ours: str
    oracle: str


def both(template: str) -> Spelled:
    return Spelled(template, template)


BIT = Spelled("low_bit({a.u})", "({a.u} & 1)")
KEYS = {
    "int": [
        *map(both, ("{a.x}", "{a.x}", "{a.x}", "{a.u}", "{a.v}", "{a.x} + 1", "{a.u} * 2 - {a.v}")),
        *map(both, ("{a.x} % 3", "coalesce({a.v}, 0)", "length({a.k})")),
        both("CASE WHEN {a.f} THEN {a.x} ELSE {a.u} END"),
        BIT,
    ],
    "float": [*map(both, ("{a.y}", "{a.y}", "{a.y} * 2"))],
    "decimal": [*map(both, ("{a.n}", "{a.n}", "{a.n} + {a.x}", "{a.x} + 0.5", "{a.n} - 0.5"))],
    "string": [
        *map(both, ("{a.k}", "{a.k}", "{a.m}", "upper({a.k})", "coalesce({a.m}, 'k1')")),
        both("CASE WHEN {a.f} THEN {a.k} ELSE {a.m} END"),
    ],
    "bool": [
        *map(both, ("{a.f}", "({a.x} > 0)", "({a.k} = {a.m})")),
        Spelled("is_even({a.u})", "(({a.u} & 1) = 0)"),
    ],
    "date": [both("{a.d}")],
    "timestamp": [both("{a.w}"), both("{a.ts}")],
}
KINDS = ["int", "int", "string", "string", "float", "decimal", "bool", "date", "timestamp"]
FILTERS = [
    *map(both, ("{a.x} > 0", "{a.u} <= {a.x}", "{a.y} = {a.y}", "{a.k} <> 'k2'", "1 = 1")),
    *map(both, ("{a.x} IN (0, 1, NULL)", "{a.v} IS NULL OR {a.x} = 1", "{a.f} OR {a.v} < 2")),
    *map(both, ("{a.m} LIKE '%k%'", "{a.d} <= '2024-02-29'", "{a.n} <> 0", "{a.n} > 1.25")),
    *map(both, ("{a.d} > '2000-01-01'", "{a.k} IS NOT NULL", "{a.y} < 2", "NOT {a.f}")),
    Spelled("is_even({a.x})", "({a.x} & 1) = 0"),
    Spelled("NOT is_even({a.v})", "NOT (({a.v} & 1) = 0)"),
    Spelled("low_bit({a.u}) = 1", "({a.u} & 1) = 1"),
]  # fmt: skip
RESIDUALS = [
    *map(both, ("{a.x} + {b.x} > {c.x}", "{a.x} <> {b.x}", "{a.k} = {b.k} OR {a.x} = {b.x}")),
    *map(both, ("{a.k} < {b.m}", "{a.x} + {b.u} = {c.v}", "{a.m} >= {b.k}")),
    both("NOT ({a.f} AND {b.f})"),
    Spelled("near({a.x}, {b.x})", "abs({a.x} - {b.x}) <= 1"),
    Spelled("near({a.u}, {b.v}) OR {c.f}", "abs({a.u} - {b.v}) <= 1 OR {c.f}"),
]  # fmt: skip
OUTPUTS = [
    *map(both, ("{a.x} + {b.u}", "{a.y} * 2", "upper({a.k})", "coalesce({a.x}, {b.v})", "{a.d}")),
    *map(both, ("{a.x}", "{b.n}", "{a.ts}", "{b.w}", "{a.f}", "{a.x} > {b.x}", "{a.m}")),
    BIT,
]


class Terms:
    """Columns of one relation, in one of the spellings: DuckDB is told what all compute as."""

    def __init__(self, alias: str, oracle: bool) -> None:
        self._alias, self._oracle = alias, oracle

    def __getattr__(self, column: str) -> str:
        name = f"{self._alias}.{column}"
        return f"CAST({name} AS {_AS[column]})" if self._oracle and column in _AS else name


def filled(template: Spelled, **aliases: str) -> Spelled:
    """The template with relations for its letters."""
    return Spelled(
        *(
            text.format(**{letter: Terms(alias, oracle) for letter, alias in aliases.items()})
            for oracle, text in enumerate(template)
        )
    )


class Reach(NamedTuple):
    """A window: the text in brackets, and its size in microseconds or in rows."""

    kind: str
    size: int
    text: str


class Related(NamedTuple):
    """An entry of FROM; without a window it is a static table."""

    alias: str
    name: str
    window: Reach | None


@dataclass
class WindowCase:
    """A query in both spellings, with its data by the name of the input."""

    relations: list[Related]
    conditions: list[Spelled]
    outputs: list[Spelled]
    inputs: dict[str, pa.Table]
    time: str | None

    @property
    def ours(self) -> str:
        columns = ", ".join(f"{c.ours} AS o{i}" for i, c in enumerate(self.outputs))
        relations = ", ".join(
            f"{r.name} {r.alias} [{r.window.text}]" if r.window else f"{r.name} {r.alias}"
            for r in self.relations
        )
        where = " AND ".join(f"({c.ours})" for c in self.conditions)
        return f"SELECT {columns} FROM {relations} WHERE {where}"

    @property
    def oracle(self) -> str:
        """DuckDB's text, with the windows if all of them go by time."""
        where = [f"({c.oracle})" for c in self.conditions]
        if not self.counts_rows:
            times = ", ".join(f"epoch_us({r.alias}.ts)" for r in self.streams)
            where += [
                f"greatest({times}) - epoch_us({r.alias}.ts) <= {r.window.size}"
                for r in self.streams
            ]
        ids = [f"{r.alias}.id AS {r.alias}" for r in self.relations]
        columns = [*ids, *(f"{c.oracle} AS o{i}" for i, c in enumerate(self.outputs))]
        relations = ", ".join(f"{r.name} {r.alias}" for r in self.relations)
        return f"SELECT {', '.join(columns)} FROM {relations} WHERE {' AND '.join(where)}"

    @property
    def streams(self) -> list[Related]:
        return [r for r in self.relations if r.window is not None]

    @property
    def statics(self) -> list[Related]:
        return [r for r in self.relations if r.window is None]

    @property
    def counts_rows(self) -> bool:
        return any(r.window.kind == "rows" for r in self.streams)

    @property
    def query(self) -> qm.Query:
        return qm.query(self.ours, time=self.time, functions=FUNCTIONS)

    def combinations(self, most: int) -> pa.Table:
        """DuckDB's answer: the ids of the members and the outputs."""
        oracle = duckdb_connection()
        for name, table in self.inputs.items():
            oracle.register(name, in_microseconds(table))
        return oracle.sql(f"{self.oracle} LIMIT {most}").to_arrow_table()

    def times_us(self, name: str) -> list[int]:
        """The times of an input, by id; all zero for a query without time."""
        ts = in_microseconds(self.inputs[name])["ts"].cast(pa.int64()).to_pylist()
        return ts if self.time else [0] * len(ts)


def in_microseconds(table: pa.Table) -> pa.Table:
    """Timestamps as DuckDB has them."""
    fields = [
        pa.field(f.name, pa.timestamp("us", f.type.tz) if pa.types.is_timestamp(f.type) else f.type)
        for f in table.schema
    ]
    return table.cast(pa.schema(fields))


def as_multiset(table: pa.Table | pa.RecordBatch) -> Counter:
    """Rows as text, the same instant alike in every time zone."""
    columns = [
        column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column
        for column in table.columns
    ]
    return Counter(map(repr, zip(*(c.to_pylist() for c in columns), strict=True)))


class Arrival(NamedTuple):
    """When a tuple of a stream arrived: what is compared first stands first."""

    step: int
    time_us: int
    place: int
    from_number: int


def arrivals(case: WindowCase, places: dict[str, dict[int, tuple[int, int]]]):
    """When each tuple arrives, by alias and id; `places` are step and place, by input and id."""
    return {
        stream.alias: [
            Arrival(places[stream.name][row][0], time_us, places[stream.name][row][1], number)
            for row, time_us in enumerate(case.times_us(stream.name))
        ]
        for number, stream in enumerate(case.streams)
    }


def within_windows(case: WindowCase, table: pa.Table, arrivals: dict[str, list[Arrival]]) -> list:
    """The numbers of the combinations that all windows allow; `arrivals` are by alias and id."""
    numbers = {}
    for alias, arrived in arrivals.items():
        order = sorted(range(len(arrived)), key=arrived.__getitem__)
        numbers[alias] = {row: number for number, row in enumerate(order)}
    allowed = []
    for i, ids in enumerate(table.select(list(arrivals)).to_pylist()):
        newest_us = max(arrivals[alias][row].time_us for alias, row in ids.items())
        last = max(arrivals[alias][row] for alias, row in ids.items())
        for stream in case.streams:
            arrived, row = arrivals[stream.alias], ids[stream.alias]
            if stream.window.kind == "range":
                inside = newest_us - arrived[row].time_us <= stream.window.size
            else:
                so_far = sum(each <= last for each in arrived)
                inside = so_far - numbers[stream.alias][row] <= stream.window.size
            if not inside:
                break
        else:
            allowed.append(i)
    return allowed


def results_of(
    case: WindowCase, combinations: pa.Table, arrivals: Callable[[], dict[str, list[Arrival]]]
) -> Counter:
    """The rows of DuckDB's combinations; of windows that count rows those picked out one by one."""
    if case.counts_rows:
        allowed = within_windows(case, combinations, arrivals())
        combinations = combinations.take(pa.array(allowed, pa.int64()))
    return as_multiset(combinations.drop_columns([r.alias for r in case.relations]))


@st.composite
def window_cases(draw, most_streams=5, rows=True, plain=False) -> WindowCase:
    """A join of streams and static tables, every shape; `plain` has only types Spark hands out.

    All but its size comes from one seed. Hypothesis likes to vary what it has seen, and from choice
    by choice it would make half of the examples near copies of some others.
    """
    streams = draw(st.sampled_from([*range(2, most_streams + 1)] * 4 + [10] * (most_streams == 5)))
    most = draw(st.sampled_from([3, *[MOST_ROWS.get(streams, 4)] * 6]))
    return case_of(random.Random(draw(st.integers(0, 2**64 - 1))), streams, most, rows, plain)


def case_of(
    rng: random.Random, streams: int, most: int, rows: bool = True, plain: bool = False
) -> WindowCase:
    """A case of so many streams, each of at most so many rows."""
    if streams == 10:
        streams = rng.randint(6, 10)
    statics = rng.randint(0, min(2, 7 - streams)) if streams < 7 else 0
    unit_us = rng.choice([1_000_000, 1, 1_000, 3_600_000_000])
    span = rng.choice([12, 30, 4, 1])
    timeless = rows and _rarely(rng, 15)
    zones = rng.choice([["UTC"], ["UTC"], ["UTC", "Europe/Berlin"], [None]])
    zones = ["UTC"] if plain else zones
    many = streams + statics
    data = _Data(rng, unit_us, span, min(most, MOST_ROWS.get(many, 4)), zones, plain)
    relations, inputs = [], {}
    for i in range(many):
        static = i >= streams
        earlier = [r.name for r in relations if (r.window is None) == static]
        if earlier and _rarely(rng, 4):
            name = rng.choice(earlier)
        else:
            name = f"{'T' if static else 'S'}{i}"
            inputs[name] = data.table()
        window = None if static else window_of(rng, unit_us, span, rows, timeless)
        relations.append(Related(f"{'t' if static else 's'}{i}", name, window))
    relations = rng.sample(relations, len(relations)) if statics else relations
    conditions, outputs = conditions_of(rng, [r.alias for r in relations])
    return WindowCase(relations, conditions, outputs, inputs, None if timeless else "ts")


def _rarely(rng: random.Random, times: int) -> bool:
    """Once in so many times."""
    return rng.randrange(times) == 0


def window_of(rng, unit_us, span, rows, timeless) -> Reach:
    """A window that some of the data outlasts: by time in any unit, or by rows."""
    if timeless or (rows and _rarely(rng, 5)):
        size = rng.choice([5, 12, 25, 2, 1])
        return Reach("rows", size, f"ROWS {size}")
    if _rarely(rng, 25):
        return Reach("range", 1, "RANGE 1 MICROSECOND")
    size_us = rng.randint(max(span // 3, 1), span) * unit_us
    fitting = [u for u, us in UNITS_US.items() if size_us * 1000 % us == 0 and size_us < us * 10**6]
    unit = rng.choice(fitting)
    amount = size_us / UNITS_US[unit]
    text = f"{int(amount)}" if amount == int(amount) else f"{amount:.3f}"
    return Reach("range", size_us, f"RANGE {text} {unit}")


@dataclass
class _Data:
    """Tables with small domains, so that keys meet, with NULLs and equal timestamps.

    Some rows are alike in every table: most conditions hold of them, so that there are results.
    """

    rng: random.Random
    unit_us: int
    span: int
    most: int
    zones: list
    plain: bool

    def table(self) -> pa.Table:
        rng, plain = self.rng, self.plain
        rows = rng.randint(self.most // 2, self.most)
        if _rarely(rng, 40):
            rows = rng.randint(0, 3)
        domain = rng.choice([2, 3, 2, 4])
        null = rng.choice([0.05, 0, 0.2])
        drawn = np.random.default_rng(rng.getrandbits(32))
        zone = rng.choice(self.zones)
        ticks = np.sort(drawn.integers(0, self.span + 1, rows)) * self.unit_us + EPOCH_US
        units = [u for u, us in (("us", 1), ("ms", 10**3), ("s", 10**6)) if self.unit_us % us == 0]
        unit = "us" if plain else rng.choice(units)
        ts = pa.array(ticks, pa.timestamp("us", zone)).cast(pa.timestamp(unit, zone))
        columns = {"ts": ts, "id": pa.array(range(rows), pa.int64())}
        types = {**TYPES, "w": [pa.timestamp("us", zone)]}
        alike = drawn.random(rows) < 0.2
        for name, known in VALUES.items():
            pool = known[:domain]
            kind = types[name][0 if plain else rng.randint(0, len(types[name]) - 1)]
            picked = np.where(alike, 0, drawn.integers(0, len(pool), rows))
            missing = (drawn.random(rows) < null) & ~alike
            values = [None if m else pool[i] for i, m in zip(picked, missing, strict=True)]
            columns[name] = pa.array(values, kind)
        return pa.table(columns)


def conditions_of(rng, aliases) -> tuple[list[Spelled], list[Spelled]]:
    """What links the relations, in one of the shapes, what else holds, and what comes out."""
    shape = rng.choice(SHAPES)
    found = shape(rng, aliases)
    for _ in range(rng.choice([0, 0, 1, 2])):
        found.append(filled(rng.choice(FILTERS), a=rng.choice(aliases)))
    for _ in range(rng.choice([0, 0, 1, 2])):
        found.append(over_several(rng, rng.choice(RESIDUALS), aliases))
    outputs = []
    if not _rarely(rng, 4):
        outputs += [both(f"{alias}.id") for alias in aliases]
    for template in rng.choices(OUTPUTS, k=rng.randint(not outputs, 3)):
        outputs.append(over_several(rng, template, aliases))
    return rng.sample(found, len(found)), outputs


def over_several(rng, template: Spelled, aliases) -> Spelled:
    some = rng.sample(aliases, len(aliases))
    return filled(template, a=some[0], b=some[1], c=some[2 % len(some)])


def _common(rng, aliases) -> list[Spelled]:
    pool = KEYS[rng.choice(KINDS)]
    same = None if _rarely(rng, 3) else rng.choice(pool)
    keys = [filled(same or rng.choice(pool), a=alias) for alias in aliases]
    first = rng.random() < 0.5
    return [_equal(keys[0 if first else i], key) for i, key in enumerate(keys[1:])]


def _chain(rng, aliases) -> list[Spelled]:
    return [_link(rng, a, b) for a, b in pairwise(aliases)]


def _star(rng, aliases) -> list[Spelled]:
    return [_link(rng, aliases[0], other) for other in aliases[1:]]


def _clique(rng, aliases) -> list[Spelled]:
    """A different attribute for each pair: an edge's colour is the sum of its ends."""
    columns = "xuvkmfd"
    count = len(aliases)
    if count > len(columns):
        return _chain(rng, aliases)
    return [
        both(f"{aliases[i]}.{columns[(i + j) % len(columns)]} = "
             f"{aliases[j]}.{columns[(i + j) % len(columns)]}")
        for i in range(count)
        for j in range(i + 1, count)
    ]  # fmt: skip


def _compared(rng, aliases) -> list[Spelled]:
    found = []
    for a, b in pairwise(aliases):
        found.append(_comparison(rng, a, b))
        if rng.random() < 0.5:
            found.append(rng.choice([_link, _comparison])(rng, a, b))
    return found


def _mixed(rng, aliases) -> list[Spelled]:
    """Each relation hangs on any earlier one; and some more."""
    found = []
    for i, alias in enumerate(aliases[1:], start=1):
        found.append(_any(rng, alias, aliases[rng.randint(0, i - 1)]))
    for _ in range(rng.randint(0, 2)):
        some = rng.sample(aliases, len(aliases))
        found.append(_any(rng, some[0], some[1]))
    return found


SHAPES = [_common, _chain, _star, _clique, _compared, _mixed, _mixed]


def _any(rng, a, b) -> Spelled:
    which = rng.randint(0, 6)
    if which == 6:
        residuals = [r for r in RESIDUALS if "{c." not in r.ours]
        return filled(rng.choice(residuals), a=a, b=b)
    return _comparison(rng, a, b) if which >= 4 else _link(rng, a, b)


def _sides(rng, a, b) -> tuple[Spelled, Spelled]:
    kind = rng.choice(KINDS)
    left = rng.choice(KEYS[kind])
    if not _rarely(rng, 3):
        return filled(left, a=a), filled(left, a=b)
    other = rng.choice(["int", "float"]) if kind in ("int", "float") else kind
    other = rng.choice(["int", "decimal"]) if kind == "decimal" else other
    right = rng.choice(KEYS[other])
    return filled(left, a=a), filled(right, a=b)


def _link(rng, a, b) -> Spelled:
    return _equal(*_sides(rng, a, b))


def _equal(left: Spelled, right: Spelled) -> Spelled:
    return Spelled(f"{left.ours} = {right.ours}", f"{left.oracle} = {right.oracle}")


def _comparison(rng, a, b) -> Spelled:
    left, right = _sides(rng, a, b)
    op = rng.choice(["<", "<=", ">", ">="])
    return Spelled(f"{left.ours} {op} {right.ours}", f"{left.oracle} {op} {right.oracle}")
