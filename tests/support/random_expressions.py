"""A table of awkward values, and random expressions over it that type-check."""

import datetime as dt
import math

import pyarrow as pa
from hypothesis import strategies as st

from querymesh.query.expr import Call, Cast, Column, Expr, Literal

INTEGERS = [None, 0, 1, -1, 2, 7, -7, 100, 2**31 - 1, -(2**31)]
LONGS = [None, 0, 1, -1, 3, -10, 2**53 + 1, 2**63 - 1, -(2**63), 1000]
NAN, INFINITY = math.nan, math.inf
DOUBLES = [None, 0.0, -0.0, 1.0, -1.5, 2.5, 0.1, NAN, INFINITY, -INFINITY, 1e300, -3.7, 9.3e18]
STRINGS = [
    None, "", "a", "A", "abc", "ABC", " a b ", "a%b", "a_b", "a\nb", "a\\b", "b'c", "é", "É",
    "straße", "日本語", "😀", "12", " -7", "1.5", "true", "x.y", "aXbXc", "9223372036854775808",
]  # fmt: skip
DATES = [
    None, dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(1900, 1, 1),
    dt.date(2000, 1, 1), dt.date(9999, 12, 31),
]  # fmt: skip
MOMENTS = [
    None, dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 23, 59, 59, 999999),
    dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2000, 1, 1, 12, 30, 15),
    dt.datetime(1900, 6, 1, 1, 2, 3),
]  # fmt: skip

ROWS = 97


def table(zone: str | None = "UTC") -> pa.Table:
    """Every value beside many others: each column steps through its list at its own stride."""

    def column(values: list[object], stride: int, dtype: pa.DataType) -> pa.Array:
        return pa.array([values[(i * stride + i // 7) % len(values)] for i in range(ROWS)], dtype)

    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "b": column([None, True, False], 1, pa.bool_()),
            "c": column([True, None, False, False], 1, pa.bool_()),
            "i": column(INTEGERS, 1, pa.int32()),
            "j": column(INTEGERS, 3, pa.int32()),
            "k": column(LONGS, 1, pa.int64()),
            "l": column(LONGS, 7, pa.int64()),
            "x": column(DOUBLES, 1, pa.float64()),
            "y": column(DOUBLES, 5, pa.float64()),
            "s": column(STRINGS, 1, pa.string()),
            "u": column(STRINGS, 5, pa.string()),
            "d": column(DATES, 1, pa.date32()),
            "e": column(DATES, 3, pa.date32()),
            "t": column(MOMENTS, 1, pa.timestamp("us", zone)),
            "v": column(MOMENTS, 5, pa.timestamp("us", zone)),
            "n": pa.nulls(ROWS, pa.string()),
        }
    )


PATTERNS = ["a%", "%b", "%b%", "a_b", "%", "", "a\\%b", "a\\\\b", "_", "%\\_%", "A%c", "日%"]
REGEXES = ["^a", "b$", "a.b", "[A-Z]+", r"\d+", "(?i)abc", "^$", "a|b", r"\s", "é", r"\bb", "[^a]"]


def _leaf(columns: str, values: list[object]) -> st.SearchStrategy[Expr]:
    found = [Column(None, name) for name in columns] * 3
    return st.sampled_from(
        found + [Literal(v) for v in values if not isinstance(v, float) or math.isfinite(v)]
    )


def _call(name: str, *args: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.tuples(*args).map(lambda found: Call(name, found))


def _any_call(names: str, *args: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of([_call(name, *args) for name in names.split()])


def _cast(operand: st.SearchStrategy[Expr], target: str) -> st.SearchStrategy[Expr]:
    return operand.map(lambda expr: Cast(expr, target))


def _literals(values: list[str]) -> st.SearchStrategy[Expr]:
    return st.sampled_from([Literal(value) for value in values])


def expressions(depth: int) -> dict[str, st.SearchStrategy[Expr]]:
    """Strategies by kind, with trees of at most this depth."""
    if depth == 0:
        return {
            "boolean": _leaf("bc", [None, True]),
            "integer": _leaf("ijkl", [None, *LONGS]),
            "float": _leaf("xy", [None, *DOUBLES, 0.5]),
            "string": _leaf("sun", STRINGS),
            "date": _leaf("de", DATES),
            "moment": _leaf("tv", [m and m.replace(tzinfo=dt.UTC) for m in MOMENTS]),
        }
    below = expressions(depth - 1)
    boolean, integer, floating = below["boolean"], below["integer"], below["float"]
    string, date, moment = below["string"], below["date"], below["moment"]
    number = integer | floating
    compares = "= <> < <= > >= <=>"

    def same(build):  # type: ignore[no-untyped-def]
        return st.one_of(build(boolean), build(number), build(string), build(date), build(moment))

    def chooses(of: st.SearchStrategy[Expr]) -> list[st.SearchStrategy[Expr]]:
        return [
            _call("if", boolean, of, of),
            _call("case", boolean, of, boolean, of),
            _call("case", boolean, of, of),
            _call("coalesce", of, of),
            _call("nullif", of, of),
            _any_call("greatest least", of, of),
        ]

    return {
        "boolean": st.one_of(
            same(lambda of: _any_call(compares, of, of)),
            same(lambda of: _any_call(compares, of, of)),
            same(lambda of: _call("in", of, of, of, of)),
            same(lambda of: _call("between", of, of, of)),
            same(lambda of: _call("is null", of) | _call("is not null", of)),
            _call("isnan", floating),
            _call("not", boolean),
            _any_call("and or", boolean, boolean),
            _any_call("and or", boolean, boolean, boolean),
            _any_call("like ilike", string, _literals(PATTERNS)),
            _call("rlike", string, _literals(REGEXES)),
            _any_call("contains startswith endswith", string, string),
            _cast(integer | string | boolean, "boolean"),
            *chooses(boolean),
        ),
        "integer": st.one_of(
            _any_call("+ - * % div", integer, integer),
            _any_call("negative abs", integer),
            _any_call("floor ceil", number),
            _call("length", string),
            _any_call("year month day", date | moment),
            _any_call("hour minute second", moment),
            _cast(number | string | boolean, "bigint"),
            _cast(number | string, "int"),
            *chooses(integer),
        ),
        "float": st.one_of(
            _any_call("+ - * %", number, floating),
            _call("/", number, number),
            _any_call("negative abs round", floating),
            _any_call("sqrt sign", number),
            _cast(number | string | boolean, "double"),
            *chooses(floating),
        ),
        "string": st.one_of(
            _any_call("lower upper trim ltrim rtrim", string),
            _call(
                "substring", string, st.sampled_from([Literal(v) for v in (0, 1, 2, 3, -1, -2, -9)])
            ),
            _call(
                "substring",
                string,
                st.sampled_from([Literal(v) for v in (0, 1, 2, -2, -5)] + [Column(None, "i")]),
                st.sampled_from([Literal(v) for v in (0, 1, 2, 4, -1)] + [Column(None, "j")]),
            ),
            _call("replace", string, string, string),
            _call("concat", string, string),
            _cast(integer | boolean | date, "string"),
            *chooses(string),
        ),
        "date": st.one_of(_cast(moment | date, "date"), *chooses(date)),
        "moment": st.one_of(*chooses(moment)),
    }


def any_expression(depth: int = 2) -> st.SearchStrategy[Expr]:
    """An expression of any kind."""
    return st.one_of([st.one_of(list(expressions(d).values())) for d in range(1, depth + 1)])


_COLUMNS = {"boolean": "bc", "integer": "ik", "float": "xy", "string": "su", "date": "de"}
_COLUMNS["moment"] = "tv"
_CONSTANTS: dict[str, list[object]] = {
    "boolean": [None, True, False],
    "integer": [None, 0, 1, -1, 2**63 - 1, -(2**63)],
    "float": [None, 0.0, -0.0, 2.5, NAN, -INFINITY],
    "string": [None, "", "a", "é", "a%b"],
    "date": [None, dt.date(2024, 2, 29), dt.date(1970, 1, 1)],
    "moment": [
        None,
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        dt.datetime(2024, 2, 29, 23, 59, 59, 999999, dt.UTC),
    ],
}
_ANY = tuple(_COLUMNS)
_TAKES: dict[str, tuple[tuple[str, ...], ...]] = {
    **{name: tuple((k, k) for k in _ANY) for name in ("=", "<>", "<", "<=", ">", ">=", "<=>")},
    **{name: tuple((k, k) for k in _ANY) for name in ("greatest", "least", "nullif", "coalesce")},
    **dict.fromkeys(("and", "or"), (("boolean", "boolean"), ("boolean",) * 3)),
    **dict.fromkeys("+-*/%", (("integer",) * 2, ("integer", "float"), ("float",) * 2)),
    **dict.fromkeys(("floor", "ceil", "round", "sqrt", "sign"), (("integer",), ("float",))),
    **dict.fromkeys(("negative", "abs", "isnan"), (("integer",), ("float",))),
    **dict.fromkeys(("lower", "upper", "trim", "ltrim", "rtrim", "length"), (("string",),)),
    **dict.fromkeys(("contains", "startswith", "endswith"), (("string",) * 2,)),
    **dict.fromkeys(("year", "month", "day"), (("date",), ("moment",))),
    **dict.fromkeys(("hour", "minute", "second"), (("moment",),)),
    **{name: tuple((k,) for k in _ANY) for name in ("is null", "is not null")},
    "not": (("boolean",),),
    "div": (("integer",) * 2,),
    "in": tuple((k,) * 3 for k in _ANY),
    "between": tuple((k,) * 3 for k in _ANY),
    "if": tuple(("boolean", k, k) for k in _ANY),
    "case": tuple(c for k in _ANY for c in (("boolean", k), ("boolean", k, "boolean", k, k))),
    "replace": (("string",) * 3,),
    "concat": (("string",) * 2, ("string",) * 3),
    "substring": (("string", "integer"), ("string", "integer", "integer")),
}


def calls_by_function() -> dict[str, list[Expr]]:
    """Calls of every function that the engines agree on to the last bit, by its name.

    Each argument is a column or a constant, in every mixture: kernels have ways of their own for
    constants.
    """
    calls = {
        name: [Call(name, args) for kinds in signatures for args in _mixtures(kinds)]
        for name, signatures in _TAKES.items()
    }
    s = Column(None, "s")
    for name, patterns in (("like", PATTERNS), ("ilike", PATTERNS), ("rlike", REGEXES)):
        calls[name] = [Call(name, (s, Literal(pattern))) for pattern in patterns]
    return calls


def _mixtures(kinds: tuple[str, ...]) -> list[tuple[Expr, ...]]:
    """Columns alone; one constant among columns; one column among constants."""
    columns = [Column(None, _COLUMNS[kind][i % 2]) for i, kind in enumerate(kinds)]
    found: list[tuple[Expr, ...]] = [tuple(columns)]
    for i, kind in enumerate(kinds):
        for value in _CONSTANTS[kind]:
            found.append((*columns[:i], Literal(value), *columns[i + 1 :]))
        for constant in range(3 if len(kinds) > 1 else 0):
            others = [Literal(_CONSTANTS[k][(constant + j) % 2 + 1]) for j, k in enumerate(kinds)]
            found.append((*others[:i], columns[i], *others[i + 1 :]))
    return found


def casts() -> list[Expr]:
    """Every cast of every kind of column."""
    sources = {
        **dict.fromkeys(("bigint", "int", "double"), "bikxs"),
        "string": "bikds",
        "boolean": "biks",
        "date": "dt",
    }
    return [Cast(Column(None, name), target) for target, names in sources.items() for name in names]
