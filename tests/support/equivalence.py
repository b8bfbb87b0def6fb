"""Random queries, data and meshes, and DuckDB's answer: what every engine and router must equal.

Conditions come in two spellings, ours and DuckDB's, because the oracle must not share our code.
"""

import math
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import querymesh as qm
from classifiers import AnyClass
from oracle import duckdb_connection
from querymesh.classify.tree import Classes, Leaf, Member, Missing, Split, Threshold, leaves
from querymesh.mesh.mesh import LeafStats, Mesh, OperatorStats, TrainedOn

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("a", pa.int32()),
        ("b", pa.float64()),
        ("s", pa.string()),
        ("g", pa.string()),
        ("ok", pa.bool_()),
    ]
)
SECTORS = pa.schema([("g", pa.string()), ("region", pa.string()), ("weight", pa.int64())])
PRICES = pa.schema([("g", pa.string()), ("a", pa.int64()), ("price", pa.float64())])
REGIONS = pa.schema([("region", pa.string()), ("zone", pa.int32())])

VALUES = {
    "id": [*range(-5, 40), -(2**62), 2**62],
    "a": [*range(-3, 12)],
    "b": [0.0, -0.0, 1.5, -2.25, 1e300, math.nan, math.inf, -math.inf],
    "s": ["", "abc", "a%b", "zebra", "Ä", "line\nbreak", "x_y"],
    "g": ["tech", "farm", "mine"],
    "ok": [True, False],
    "region": ["EU", "US"],
    "weight": [*range(6)],
    "price": [0.5, 2.0, math.nan],
    "zone": [0, 1, 2],
}


def is_even(a: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(a, pa.scalar(1, a.type)), pa.scalar(0, a.type))


def short_text(value: str | None) -> bool | None:
    return None if value is None else len(value) < 4


def half(b: pa.Array) -> pa.Array:
    return pc.divide(pc.cast(b, pa.float64()), 2.0)


FUNCTIONS = {
    "is_even": qm.predicate(is_even, columns=["a"], name="is_even"),
    "short_text": qm.predicate(short_text, columns=["s"], name="short_text", vectorised=False),
    "half": qm.function(half, returns=pa.float64()),
}

CONDITIONS = [
    ("s.a > 3", "s.a > 3"),
    ("s.a <= s.b", "s.a <= s.b"),
    ("s.b = s.b", "s.b = s.b"),
    ("s.b >= 1.5", "s.b >= CAST(1.5 AS DOUBLE)"),
    ("s.s LIKE '%b%'", "s.s LIKE '%b%'"),
    ("s.s LIKE 'a\\\\%b'", "s.s = 'a%b'"),
    ("s.s RLIKE '^[a-z]+$'", "regexp_matches(s.s, '^[a-z]+$')"),
    ("s.g IN ('tech', 'farm')", "s.g IN ('tech', 'farm')"),
    ("s.a NOT IN (1, 2, NULL)", "s.a NOT IN (1, 2, NULL)"),
    ("s.a BETWEEN 0 AND 6", "s.a BETWEEN 0 AND 6"),
    ("NOT (s.ok OR s.a = 2)", "NOT (s.ok OR s.a = 2)"),
    ("s.s IS NOT NULL", "s.s IS NOT NULL"),
    ("10 / s.a > 2", "CASE WHEN s.a = 0 THEN NULL ELSE 10.0::DOUBLE / s.a END > 2"),
    ("s.a % 3 = 1", "s.a % 3 = 1"),
    (
        "CASE WHEN s.ok THEN s.a ELSE 5 END >= 5",
        "CASE WHEN s.ok THEN s.a ELSE 5 END >= 5",
    ),
    ("coalesce(s.g, 'tech') = 'tech'", "coalesce(s.g, 'tech') = 'tech'"),
    ("length(s.s) + s.a > 4", "length(s.s) + s.a > 4"),
    ("upper(s.s) <> 'ABC'", "upper(s.s) <> 'ABC'"),
]
PYTHON_CONDITIONS = [
    ("is_even(s.a)", "(s.a & 1) = 0"),
    ("short_text(s.s)", "length(s.s) < 4"),
    ("half(s.b) < 1", "s.b / 2 < 1"),
    ("NOT is_even(s.a)", "NOT ((s.a & 1) = 0)"),
]
SECTOR_CONDITIONS = [
    ("t.weight > 1", "t.weight > 1"),
    ("t.weight < s.a", "t.weight < s.a"),
]
PRICE_CONDITIONS = [("p.price > s.b", "p.price > s.b")]


@dataclass
class Case:
    """A query in both spellings, with its data."""

    ours: str
    oracle: str
    inputs: dict[str, pa.Table]
    python: bool
    lookups: bool

    @property
    def query(self) -> qm.Query:
        return qm.query(self.ours, functions=FUNCTIONS)

    @property
    def bound(self):
        return self.query.bind({name: table.schema for name, table in self.inputs.items()})

    def expected(self) -> Counter:
        connection = duckdb_connection()
        for name, table in self.inputs.items():
            connection.register(name, table)
        found = connection.sql(self.oracle).to_arrow_table()
        for name in self.inputs:
            connection.unregister(name)
        return as_multiset(found)


def as_multiset(table: pa.Table) -> Counter:
    return Counter(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


@st.composite
def tables(draw, schema, most):
    """Rows enough for keys to meet several times; often none, and a tenth of the values NULL."""
    rows = draw(st.sampled_from([0, 1, most // 2, most]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return table_of(draw(varied(schema)), rows, rng)


@st.composite
def varied(draw, schema):
    """The same columns in another order and other widths, and one that nobody asks for."""
    fields = [
        pa.field(column.name, draw(st.sampled_from(WIDTHS.get(column.type, [column.type]))))
        for column in schema
    ]
    fields += draw(st.lists(st.sampled_from(UNASKED), max_size=1))
    return pa.schema(draw(st.permutations(fields)))


WIDTHS = {
    pa.int32(): [pa.int8(), pa.int16(), pa.int32(), pa.int64()],
    pa.float64(): [pa.float32(), pa.float64()],
}
UNASKED = [
    pa.field("unasked", pa.list_(pa.int64())),
    pa.field("unasked", pa.timestamp("us", "UTC")),
    pa.field("unasked", pa.decimal128(12, 2)),
]


def table_of(schema, rows, rng) -> pa.Table:
    columns = []
    for column in schema:
        pool = VALUES.get(column.name, [None])
        picked = [pool[k] for k in rng.integers(0, len(pool), rows)]
        null = rng.random(rows) < 0.1
        columns.append(
            pa.array([None if n else v for n, v in zip(null, picked, strict=True)], column.type)
        )
    return pa.Table.from_arrays(columns, schema=schema)


@st.composite
def cases(draw, python=True, lookups=True, most=60) -> Case:
    """A select-project-join query of up to five conditions and three look-ups."""
    pool = CONDITIONS + (PYTHON_CONDITIONS if python else [])
    chosen = draw(st.lists(st.sampled_from(pool), max_size=5, unique=True))
    relations, inputs = ["Src s"], {"Src": draw(tables(SCHEMA, most))}
    columns = "s.id, s.a, s.b, s.s, s.ok"
    joins = set()
    if lookups and draw(st.booleans()):
        joins.add("t")
        relations.append("Sectors t")
        inputs["Sectors"] = draw(tables(SECTORS, 12))
        chosen.append(("s.g = t.g", "s.g = t.g"))
        chosen += draw(st.lists(st.sampled_from(SECTOR_CONDITIONS), max_size=2, unique=True))
        columns += ", t.region, t.weight"
        if draw(st.booleans()):
            relations.append("Sectors u")
            chosen.append(("s.g = u.g", "s.g = u.g"))
            chosen += draw(st.lists(st.just(("t.weight < u.weight",) * 2), max_size=1))
            columns += ", u.weight AS other_weight"
        if draw(st.booleans()):
            relations.append("Regions r")
            inputs["Regions"] = draw(tables(REGIONS, 6))
            chosen.append(("r.region = t.region", "r.region = t.region"))
            columns += ", r.zone"
    if lookups and draw(st.booleans()):
        joins.add("p")
        relations.append("Prices p")
        inputs["Prices"] = draw(tables(PRICES, 20))
        chosen += [("p.g = s.g", "p.g = s.g"), ("p.a = s.a", "p.a = s.a")]
        chosen += draw(st.lists(st.sampled_from(PRICE_CONDITIONS), max_size=1))
        columns += ", p.price"
    chosen = draw(st.permutations(chosen))
    columns += ", s.a * 2 + 1 AS twice"
    spelled = [
        f"SELECT {columns} FROM {', '.join(relations)}"
        + (" WHERE " + " AND ".join(f"({c[side]})" for c in chosen) if chosen else "")
        for side in (0, 1)
    ]
    uses_python = any(c in PYTHON_CONDITIONS for c in chosen)
    return Case(spelled[0], spelled[1], inputs, uses_python, bool(joins))


@st.composite
def shared_cases(draw, most=40) -> list[Case]:
    """Two or three queries over the same tables; often they ask the same things."""
    drawn = draw(st.lists(cases(most=most), min_size=2, max_size=3))
    if draw(st.booleans()):
        drawn.append(drawn[0])
    inputs = {}
    for case in drawn:
        for name, table in case.inputs.items():
            inputs.setdefault(name, table)
    return [replace(case, inputs={name: inputs[name] for name in case.inputs}) for case in drawn]


TESTS = st.one_of(
    st.builds(Threshold, st.sampled_from(["a", "b", "id"]), st.floats(-5, 9), st.booleans()),
    st.builds(
        Member,
        st.just("g"),
        st.lists(st.sampled_from(["tech", "farm", "mine"]), min_size=1, unique=True).map(tuple),
    ),
    st.builds(Member, st.just("a"), st.just((1, 2, 7))),
    st.builds(Member, st.just("ok"), st.just((True,))),
    st.builds(Missing, st.sampled_from(["a", "s", "g"])),
)


@st.composite
def trees(draw, depth=3):
    if depth == 0 or draw(st.booleans()):
        return Leaf(0)
    return Split(draw(TESTS), draw(trees(depth - 1)), draw(trees(depth - 1)))


@dataclass
class _Numbering:
    next: int = field(default=0)

    def __call__(self, tree):
        if isinstance(tree, Leaf):
            self.next += 1
            return Leaf(self.next - 1)
        return Split(tree.test, self(tree.yes), self(tree.no))


def random_mesh(draw, bound, *, tests_only=False) -> Mesh:
    """Any tree with any allowed route at each leaf, also such as training would never find; or any
    classifier of another kind, unless there are to be tests only."""
    tree = _Numbering()(draw(trees()))
    if not tests_only and draw(st.integers(0, 3)) == 0:
        tree = random_classes(draw)
    count = len(list(leaves(tree)))
    routes = tuple(random_route(draw, bound.precedence) for _ in range(count))
    operators = tuple(OperatorStats(op.name, op.after, 1.0, 0.5) for op in bound.operators)
    stats = tuple(LeafStats(1 / count, 1.0, 1.0) for _ in range(count))
    mesh = Mesh(
        bound.query,
        operators,
        tree,
        routes,
        stats,
        routes[0],
        1.0,
        1.0,
        1.0,
        TrainedOn(1),
        (),
        "random",
    )
    return replace(
        mesh,
        uncertain=tuple(random_choices(draw, route) for route in mesh.leaf_routes),
        window=draw(st.sampled_from([1, 5, 10_000])),
        least_ruster=draw(st.sampled_from([0, 3, 10_000])),
        classify_every=draw(st.sampled_from([1, 1, 2, 7, 10_000])),
    )


def random_classes(draw) -> Classes:
    """A classifier that looks at any of the columns, and as many ends."""
    columns = draw(st.lists(st.sampled_from(SCHEMA.names), min_size=1, max_size=3, unique=True))
    count = draw(st.integers(2, 4))
    asked = AnyClass(tuple(columns), count, draw(st.integers(0, 99)))
    return Classes(asked, tuple(Leaf(number) for number in range(count)), 0.1)


def random_choices(draw, route):
    """The route with any of its adjacent operators put together in one choice."""
    steps = []
    for index in route:
        if steps and draw(st.booleans()):
            steps[-1] += (index,)
        else:
            steps.append((index,))
    return tuple(steps)


def random_route(draw, after):
    waiting, route = set(range(1, len(after) + 1)), []
    while waiting:
        ready = sorted(k for k in waiting if not after[k - 1] & waiting)
        route.append(draw(st.sampled_from(ready)))
        waiting.remove(route[-1])
    return tuple(route)


ROUTING = {
    "by_cost": [True, False],
    "chunk": [1, 7, 1000],
    "split_if_cheaper": [True, False],
    "one_route_per_chunk": [False, True],
    "probability": [0.06, 0.5, 0.9],
    "sample": [2, 10, 150],
    "partitions": [2, 24],
    "threshold": [0.0, 0.04],
    "trial_rows": [1, 20, 500],
    "trial_by": ["cost", "calls"],
    "prune": [True, False],
    "attribute_sets": [True, False],
    "at_once": [1, 3],
    "tune": [True, False],
    "keep_pairs": [True, False],
}
"""Settings of the policies that decide while tuples run, also such as nobody would choose."""


def routings():
    """Any of them together."""
    chosen = {name: st.sampled_from(values) for name, values in ROUTING.items()}
    return st.fixed_dictionaries(chosen).map(lambda settings: qm.policies.Routing(**settings))


def in_batches(table: pa.Table, size: int):
    return table.to_batches(max_chunksize=size) if table.num_rows else []


def rows_of(rng: np.random.Generator, count: int) -> pa.Table:
    """A source table without hypothesis, its ids counting up."""
    table = table_of(SCHEMA, count, rng)
    return table.set_column(0, "id", pa.array(range(count), pa.int64()))
