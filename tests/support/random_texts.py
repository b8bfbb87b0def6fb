"""Conditions as a user of Spark writes them, at random, and a table of odd values to try them on.

Unlike `random_expressions` these are texts: Spark reads them by itself, with its own rules of
coercion, and so does the package.
"""

import datetime as dt
import math
import random
from decimal import Decimal

import pyarrow as pa

_NAN, _INF = math.nan, math.inf
_DAY, _OLD, _LATE = dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)
_MOMENTS = [
    None, dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 23, 59, 59, 999999),
    dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2018, 11, 4, 2, 30), dt.datetime(1900, 6, 1),
    dt.datetime(9999, 12, 30, 1), dt.datetime(2024, 3, 10, 7, 30), dt.datetime(2024, 2, 29),
]  # fmt: skip
_MOST = "99999999999999999999.999999999999999999"
VALUES: dict[str, tuple[pa.DataType, list[object]]] = {
    "b": (pa.bool_(), [None, True, False]),
    "c": (pa.bool_(), [True, None, False, False]),
    "a": (pa.int8(), [None, 0, 1, -1, 127, -128, 5]),
    "h": (pa.int16(), [1, None, 0, -3, 32767, -32768, 100]),
    "i": (pa.int32(), [None, 0, 1, -1, 2, 7, 100, 2**31 - 1, -(2**31)]),
    "j": (pa.int32(), [3, None, 0, -7, 12, 1]),
    "k": (pa.int64(), [None, 0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63), 10, 2**53]),
    "l": (pa.int64(), [2, None, -10, 3, 0, 2**53 + 1, 1000]),
    "m": (pa.decimal128(10, 2), ["1.00", None, "0.00", "-2.50", "99999999.99", "0.10", "7.00"]),
    "n": (pa.decimal128(38, 18), [None, "2.5", _MOST, f"-{_MOST}", "0", "1e-18", "3", "0.1"]),
    "o": (pa.decimal128(38, 0), ["3", None, "0", "9" * 38, "-" + "9" * 38, "9007199254740993"]),
    "p": (pa.decimal128(20, 0), [None, "9007199254740993", "9223372036854775807", "0", "-1", "3"]),
    "q": (pa.decimal128(5, 4), ["1.0000", None, "0.0000", "-9.9999", "0.1000", "2.5000", "3.0001"]),
    "r": (pa.decimal128(18, 6), ["2.5", "0.1", None, "999999999999.999999", "-0.000001", "7"]),
    "x": (pa.float64(), [None, 0.0, -0.0, 1.0, -1.5, 2.5, 0.1, _NAN, _INF, -_INF, 1e300]),
    "y": (pa.float64(), [2.5, None, _NAN, 0.0, 3.0, 0.1, -7.25, 9007199254740993.0]),
    "f": (pa.float32(), [None, 0.1, -0.0, 1.5, _NAN, _INF, 3.0, 3e38, 16777217.0]),
    "g": (pa.float32(), [0.2, None, 0.0, 2.5, -_INF, 1.1, 3e38]),
    "s": (pa.string(), [None, "", "a", "A", "ab%", " a b ", "é", "ß", "😀x", "12", " -7 ", "1.5",
                        "true", "a\nb", "İ"]),
    "u": (pa.string(), ["a", None, "", "B", "12", "日本", "a_b", "a\\b", "ſ", "2024-02-29"]),
    "d": (pa.date32(), [None, dt.date(1970, 1, 1), _DAY, dt.date(1969, 12, 31), _OLD, _LATE]),
    "e": (pa.date32(), [_DAY, None, dt.date(2018, 11, 4), dt.date(2024, 3, 10)]),
    "t": (pa.timestamp("us", "UTC"), _MOMENTS),
    "v": (pa.timestamp("us", "UTC"), _MOMENTS[::-1]),
    "w": (pa.timestamp("us"), _MOMENTS),
    "z": (pa.timestamp("us"), _MOMENTS[::-1]),
}  # fmt: skip
ROWS = 60
_STRIDES = (1, 3, 5, 7, 2, 11)


def odd_table() -> pa.Table:
    """Every value beside many others: each column steps through its list at its own stride."""
    columns = {"id": pa.array(range(ROWS), pa.int64())}
    for number, (name, (dtype, values)) in enumerate(VALUES.items()):
        stride = _STRIDES[number % len(_STRIDES)]
        picked = [values[(row * stride + row // 7) % len(values)] for row in range(ROWS)]
        if pa.types.is_decimal(dtype):
            picked = [value if value is None else Decimal(str(value)) for value in picked]
        columns[name] = pa.array(picked, dtype)
    return pa.table(columns)


_LITERALS = {
    "boolean": ["true", "false", "NULL"],
    "integer": ["0", "1", "-1", "2", "7", "100", "5L", "9223372036854775807", "3000000000", "NULL"],
    "decimal": ["0.0", "2.5", "-2.5", "0.10", ".5", "3.", "9007199254740992.5", "0.05", "1.0BD",
                "9223372036854775808", "123456789012345678901234567890.12345678", "-0.000001"],
    "double": ["0D", "2.5D", "1e3", "1.5E-2", "-0.0D", "0.1D", "9007199254740993D"],
    "float": ["0.1F", "2.5F", "3F"],
    "string": ["''", "'a'", "'A%'", "'é'", "'12'", "' -7 '", "'true'", "'😀'", "'it''s'",
               r"'a\\b'"],
    "date": ["DATE '2024-02-29'", "DATE'1970-01-01'", "'2018-11-04'"],
    "moment": ["TIMESTAMP '2024-02-29 23:59:59.999999'", "'1970-01-01 00:00:00'", "'2018-11-04'",
               "TIMESTAMP '2024-03-10 02:30:00'", "'2018-11-04 00:00:00'",
               "TIMESTAMP'1970-01-01 00:00:00+01:00'"],
    "clock": ["TIMESTAMP_NTZ '2024-02-29 23:59:59.999999'", "'1970-01-01 00:00:00'",
              "'2018-11-04'"],
}  # fmt: skip
_COLUMNS = {
    "boolean": "bc", "integer": "ahijkl", "decimal": "mnopqr", "double": "xy", "float": "fg",
    "string": "su", "date": "de", "moment": "tv", "clock": "wz",
}  # fmt: skip
_NUMBERS = ("integer", "decimal", "double", "float")
_KINDS = tuple(_COLUMNS)


class TextMaker:
    """Draws texts from one source of chance."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def text(self, kind: str, depth: int) -> str:
        """An expression that Spark takes for one of this kind, or for NULL."""
        if depth == 0 or self.rng.random() < 0.15:
            if self.rng.random() < 0.65:
                return self.rng.choice(_COLUMNS[kind])
            return self.rng.choice(_LITERALS[kind])
        makers = getattr(self, f"_{kind}")
        return str(self.rng.choice(makers)(self, depth - 1))

    def _one_of(self, words: str) -> str:
        return self.rng.choice(words.split())

    def number(self, depth: int) -> str:
        return self.text(self.rng.choice(_NUMBERS), depth)

    def _same(self, depth: int, count: int) -> list[str]:
        kind = self.rng.choice((*_KINDS, "number", "number", "number", "number"))
        if kind == "number":
            return [self.number(depth) for _ in range(count)]
        return [self.text(kind, depth) for _ in range(count)]

    def _compared(self, depth: int) -> str:
        a, b = self._same(depth, 2)
        if self.rng.random() < 0.05:
            a, b = self.text("date", depth), self.text(self.rng.choice(("moment", "clock")), depth)
        return f"({a} {self.rng.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {b})"

    def _tested(self, depth: int) -> str:
        x, a, b = self._same(depth, 3)
        return self.rng.choice(
            [f"({x} IN ({a}, {b}))", f"({x} NOT IN ({a}, {b}, {a}))", f"({x} BETWEEN {a} AND {b})",
             f"({x} NOT BETWEEN {a} AND {b})", f"({x} IS NULL)", f"({x} IS NOT NULL)"]
        )  # fmt: skip

    def _logic(self, depth: int) -> str:
        a, b = self.text("boolean", depth), self.text("boolean", depth)
        return self.rng.choice([f"({a} AND {b})", f"({a} OR {b})", f"(NOT {a})"])

    def _matched(self, depth: int) -> str:
        s = self.text("string", depth)
        test = self.rng.choice(
            ["LIKE 'a%'", "LIKE '%b'", "LIKE '_'", "ILIKE 'É'", "ILIKE 'ss'", "ILIKE 'S'",
             "LIKE ''", "RLIKE 'a|b'", "RLIKE '^[A-Z]'", r"RLIKE '\\d+'", "RLIKE '.'",
             "RLIKE '(?i)s'", r"RLIKE '\\w'"]
        )  # fmt: skip
        return f"({s} {test})"

    def _found(self, depth: int) -> str:
        name = self.rng.choice(["contains", "startswith", "endswith"])
        return f"{name}({self.text('string', depth)}, {self.text('string', depth)})"

    def _chosen(self, kind: str, depth: int) -> str:
        a, b, c = (self.text(kind, depth) for _ in range(3))
        test = self.text("boolean", depth)
        if kind in _NUMBERS and self.rng.random() < 0.3:
            b = self.number(depth)
            return f"nullif({a}, {b})"
        return self.rng.choice(
            [f"CASE WHEN {test} THEN {a} ELSE {b} END", f"CASE WHEN {test} THEN {a} END",
             f"if({test}, {a}, {b})", f"coalesce({a}, {b})", f"nvl({a}, {b})", f"nullif({a}, {b})",
             f"greatest({a}, {b}, {c})", f"least({a}, {b})"]
        )  # fmt: skip

    def _cast(self, depth: int, sources: tuple[str, ...], targets: tuple[str, ...]) -> str:
        source = self.text(self.rng.choice(sources), depth)
        verb = self.rng.choice(["CAST", "try_cast"])
        return f"{verb}({source} AS {self.rng.choice(targets)})"

    def _operated(self, depth: int, kinds: tuple[str, ...], operators: str) -> str:
        a, b = (self.text(self.rng.choice(kinds), depth) for _ in range(2))
        return f"({a} {self.rng.choice(operators.split())} {b})"

    def _called(self, names: str, depth: int, *kinds: str) -> str:
        args = ", ".join(self.text(kind, depth) for kind in kinds)
        return f"{self.rng.choice(names.split())}({args})"

    _boolean = (
        *(_compared,) * 3, *(_tested,) * 2, _logic, _matched, _found,
        lambda self, depth: self._chosen("boolean", depth),
        lambda self, depth: self._called("isnan", depth, self.rng.choice(_NUMBERS)),
        lambda self, depth: self._cast(depth, ("integer", "string", "decimal"), ("BOOLEAN",)),
    )  # fmt: skip
    _integer = (
        lambda self, depth: self._operated(depth, ("integer",), "+ - * % DIV"),
        lambda self, depth: self._called("abs negative round", depth, "integer"),
        lambda self, depth: self._called("floor ceil", depth, self._one_of("integer double float")),
        lambda self, depth: self._called("length", depth, "string"),
        lambda self, depth: self._called("year month day", depth, self._one_of("date clock")),
        lambda self, depth: self._called("hour minute second", depth, self._one_of("moment clock")),
        lambda self, depth: self._chosen("integer", depth),
        lambda self, depth: self._cast(
            depth, (*_NUMBERS, "string", "boolean"), ("INT", "BIGINT", "SMALLINT", "TINYINT")
        ),
    )  # fmt: skip
    _decimal = (
        lambda self, depth: self._operated(depth, ("integer", "decimal"), "+ - * / %"),
        lambda self, depth: self._operated(depth, ("decimal",), "+ - * / %"),
        lambda self, depth: self._called("abs negative round floor ceil", depth, "decimal"),
        lambda self, depth: f"(- {self.text('decimal', depth)})",
        lambda self, depth: self._chosen("decimal", depth),
        lambda self, depth: self._cast(
            depth, ("integer", "decimal", "string", "boolean"),
            ("DECIMAL(10,2)", "DECIMAL(38,10)", "DECIMAL(3)", "DECIMAL"),
        ),
    )  # fmt: skip
    _double = (
        lambda self, depth: self._operated(depth, (*_NUMBERS, "double"), "+ - * / %"),
        lambda self, depth: self._operated(depth, ("float", "decimal", "double"), "+ - * / %"),
        lambda self, depth: self._called("abs negative round", depth, "double"),
        lambda self, depth: self._called("sqrt sign", depth, self.rng.choice(_NUMBERS)),
        lambda self, depth: self._chosen("double", depth),
        lambda self, depth: self._cast(depth, (*_NUMBERS, "string", "boolean"), ("DOUBLE",)),
    )
    _float = (
        lambda self, depth: self._operated(depth, ("float",), "+ - * %"),
        lambda self, depth: self._called("abs negative round", depth, "float"),
        lambda self, depth: self._chosen("float", depth),
        lambda self, depth: self._cast(depth, (*_NUMBERS, "boolean"), ("FLOAT",)),
    )
    _string = (
        lambda self, depth: self._called("lower upper trim ltrim rtrim", depth, "string"),
        lambda self, depth: (
            f"substring({self.text('string', depth)}, {self._one_of('1 0 -2 i')}, "
            f"{self._one_of('1 2 j')})"
        ),
        lambda self, depth: self._called("replace", depth, "string", "string", "string"),
        lambda self, depth: self._called("concat", depth, "string", "string"),
        lambda self, depth: f"({self.text('string', depth)} || {self.text('string', depth)})",
        lambda self, depth: self._chosen("string", depth),
        lambda self, depth: self._cast(
            depth, ("integer", "boolean", "date", "decimal", "string"), ("STRING",)
        ),
    )
    _date = (
        lambda self, depth: self._chosen("date", depth),
        lambda self, depth: self._cast(depth, ("moment", "clock", "date"), ("DATE",)),
    )
    _moment = (
        lambda self, depth: self._chosen("moment", depth),
        lambda self, depth: self._cast(depth, ("moment",), ("TIMESTAMP",)),
    )
    _clock = (
        lambda self, depth: self._chosen("clock", depth),
        lambda self, depth: self._cast(depth, ("moment", "clock", "date"), ("TIMESTAMP_NTZ",)),
    )


def random_texts(seed: int, count: int, depth: int = 2) -> list[str]:
    """So many expressions, most of them conditions."""
    rng = random.Random(seed)
    maker = TextMaker(rng)
    kinds = [rng.choice(("boolean", "boolean", *_KINDS)) for _ in range(count)]
    return [maker.text(kind, rng.randint(1, depth)) for kind in kinds]
