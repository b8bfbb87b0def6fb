"""The oracle's reading of an expression: DuckDB SQL, written without a look at our own tables.

Where DuckDB raises or differs from Spark by design (division by zero, rounding casts), the text
spells the meaning out with CASE and TRY_CAST.
"""

import datetime as dt

from querymesh.query.expr import Call, Cast, Column, Expr, Literal


def duckdb_sql(expr: Expr, types: dict[str, str]) -> str:
    """`types` tells integer columns from others: "BIGINT", "DOUBLE" and so on."""
    match expr:
        case Column(_, name):
            return f'"{name}"'
        case Literal(value):
            return _literal(value)
        case Cast(operand, target):
            return _cast(duckdb_sql(operand, types), target)
        case Call(name, args):
            texts = [duckdb_sql(arg, types) for arg in args]
            if name in _SPECIAL:
                return _SPECIAL[name](*texts)
            if name in ("+", "-", "*", "%", "negative", "abs", "floor", "ceil", "round"):
                integral = all(_is_integer(arg, types) for arg in args)
                return (_INTEGER if integral else _DOUBLE)[name](*texts)
            return f"{name}({', '.join(texts)})"
    raise AssertionError(expr)


def _is_integer(expr: Expr, types: dict[str, str]) -> bool:
    match expr:
        case Column(_, name):
            return types[name] == "BIGINT"
        case Literal(value):
            return type(value) is int
        case Cast(_, target):
            return target in ("bigint", "int")
        case Call(name, args):
            if name in (
                "div",
                "length",
                "floor",
                "ceil",
                "year",
                "month",
                "day",
                "hour",
                "minute",
                "second",
            ):
                return True
            if name in ("/", "sqrt", "sign"):
                return False
            values = args[1::2] + args[-1:] if name in ("if", "case") else args
            if name == "if":
                values = args[1:]
            return all(_is_integer(arg, types) for arg in values)
    return False


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return f"CAST('{value}' AS BIGINT)"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.datetime():
            return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    raise AssertionError(value)


def _cast(x: str, target: str) -> str:
    white = "' ' || chr(9) || chr(10)"
    match target:
        case "bigint" | "int":
            digits = f"regexp_full_match(trim(CAST({x} AS VARCHAR), {white}), '[+-]?[0-9]+')"
            wide = f"CASE WHEN typeof({x}) <> 'VARCHAR' THEN _whole({x}) WHEN {digits} "
            wide += f"THEN TRY_CAST(trim(CAST({x} AS VARCHAR), {white}) AS HUGEINT) END"
            return f"TRY_CAST(({wide}) AS {'INTEGER' if target == 'int' else 'BIGINT'})::BIGINT"
        case "double":
            return f"TRY_CAST({x} AS DOUBLE)"
        case "string":
            return f"CAST({x} AS VARCHAR)"
        case "boolean":
            text = f"lower(trim(CAST({x} AS VARCHAR), {white}))"
            true, false = "('t', 'true', 'y', 'yes', '1')", "('f', 'false', 'n', 'no', '0')"
            return (
                f"CASE WHEN typeof({x}) <> 'VARCHAR' THEN TRY_CAST({x} AS BOOLEAN) "
                f"WHEN {text} IN {true} THEN true WHEN {text} IN {false} THEN false END"
            )
        case "date":
            return f"CAST({x} AS DATE)"
    raise AssertionError(target)


# Spark's check of DOUBLE to BIGINT lets 2^63 itself through, as the largest BIGINT.
MACROS = """
CREATE MACRO _whole(x) AS CASE
    WHEN typeof(x) = 'DOUBLE' AND TRY_CAST(x AS DOUBLE) = 9223372036854775808.0
        THEN 9223372036854775807
    WHEN typeof(x) = 'DOUBLE' THEN TRY_CAST(trunc(TRY_CAST(x AS DOUBLE)) AS HUGEINT)
    ELSE TRY_CAST(x AS HUGEINT) END
"""


def _infix(operator: str):  # type: ignore[no-untyped-def]
    return lambda *args: "(" + f" {operator} ".join(args) + ")"


def _big(text: str) -> str:
    return f"TRY_CAST({text} AS BIGINT)"


def _substring(s: str, position: str, length: str = "2147483647") -> str:
    position, length = (f"TRY_CAST({x} AS INTEGER)::BIGINT" for x in (position, length))
    start = f"(CASE WHEN {position} > 0 THEN {position} - 1 WHEN {position} < 0 "
    start += f"THEN length({s}) + {position} ELSE 0 END)"
    end = f"({start}::HUGEINT + {length})"
    low, high = f"greatest({start}, 0)", f"least({end}, length({s}))"
    part = f"array_slice({s}, ({low} + 1)::BIGINT, {high}::BIGINT)"
    return (
        f"CASE WHEN {s} IS NULL OR {position} IS NULL OR {length} IS NULL THEN NULL "
        f"WHEN {high} <= {low} OR {length} <= 0 THEN '' ELSE {part} END"
    )


def _extreme(operator: str):  # type: ignore[no-untyped-def]
    return lambda a, b: (
        f"CASE WHEN {a} IS NULL THEN {b} WHEN {b} IS NULL THEN {a} "
        f"WHEN {a} {operator} {b} THEN {a} ELSE {b} END"
    )


_INTEGER = {
    "+": lambda a, b: _big(f"({a}::HUGEINT + {b}::HUGEINT)"),
    "-": lambda a, b: _big(f"({a}::HUGEINT - {b}::HUGEINT)"),
    "*": lambda a, b: _big(f"({a}::HUGEINT * {b}::HUGEINT)"),
    "%": lambda a, b: f"CASE WHEN {b} = 0 THEN NULL ELSE ({a}::HUGEINT % {b}::HUGEINT)::BIGINT END",
    "negative": lambda a: _big(f"(- {a}::HUGEINT)"),
    "abs": lambda a: _big(f"abs({a}::HUGEINT)"),
    "floor": lambda a: f"({a}::BIGINT)",
    "ceil": lambda a: f"({a}::BIGINT)",
    "round": lambda a: f"({a}::BIGINT)",
}
_DOUBLE = {
    "+": lambda a, b: f"({a}::DOUBLE + {b}::DOUBLE)",
    "-": lambda a, b: f"({a}::DOUBLE - {b}::DOUBLE)",
    "*": lambda a, b: f"({a}::DOUBLE * {b}::DOUBLE)",
    "%": lambda a, b: f"CASE WHEN {b} = 0 THEN NULL ELSE fmod({a}::DOUBLE, {b}::DOUBLE) END",
    "negative": lambda a: f"(- {a}::DOUBLE)",
    "abs": lambda a: f"abs({a}::DOUBLE)",
    "floor": lambda a: (
        f"CASE WHEN isnan({a}::DOUBLE) THEN 0 ELSE {_big(f'_whole(floor({a}::DOUBLE))')} END"
    ),
    "ceil": lambda a: (
        f"CASE WHEN isnan({a}::DOUBLE) THEN 0 ELSE {_big(f'_whole(ceil({a}::DOUBLE))')} END"
    ),
    "round": lambda a: f"round({a}::DOUBLE)",
}
_SPECIAL = {
    "=": _infix("="),
    "<>": _infix("<>"),
    "<": _infix("<"),
    "<=": _infix("<="),
    ">": _infix(">"),
    ">=": _infix(">="),
    "<=>": _infix("IS NOT DISTINCT FROM"),
    "and": _infix("AND"),
    "or": _infix("OR"),
    "not": "(NOT {})".format,
    "in": lambda x, *items: f"({x} IN ({', '.join(items)}))",
    "between": "({0} >= {1} AND {0} <= {2})".format,
    "is null": "({} IS NULL)".format,
    "is not null": "({} IS NOT NULL)".format,
    "isnan": "coalesce(isnan({}), false)".format,
    "/": "CASE WHEN {1} = 0 THEN NULL ELSE {0}::DOUBLE / {1}::DOUBLE END".format,
    "div": lambda a, b: (
        f"CASE WHEN {b} = 0 THEN NULL ELSE {_big(f'({a}::HUGEINT // {b}::HUGEINT)')} END"
    ),
    "sqrt": "CASE WHEN {0} < 0 THEN 'nan'::DOUBLE ELSE sqrt({0}::DOUBLE) END".format,
    "sign": "CASE WHEN isnan({0}::DOUBLE) THEN 'nan'::DOUBLE ELSE sign({0})::DOUBLE END".format,
    "like": "({} LIKE {} ESCAPE '\\')".format,
    "ilike": "(lower({}) LIKE lower({}) ESCAPE '\\')".format,
    "rlike": "regexp_matches({}, {})".format,
    "startswith": "starts_with({}, {})".format,
    "endswith": "ends_with({}, {})".format,
    # DuckDB maps ß to the capital ẞ; Unicode's full mapping, and so Java's, is SS.
    "upper": "replace(upper({}), 'ẞ', 'SS')".format,
    "concat": _infix("||"),
    "trim": "trim({}, ' ')".format,
    "ltrim": "ltrim({}, ' ')".format,
    "rtrim": "rtrim({}, ' ')".format,
    "substring": _substring,
    "greatest": _extreme(">"),
    "least": _extreme("<"),
    "if": "CASE WHEN {} THEN {} ELSE {} END".format,
    "case": lambda *args: (
        "CASE "
        + " ".join(f"WHEN {c} THEN {v}" for c, v in zip(args[0::2], args[1::2], strict=False))
        + (f" ELSE {args[-1]}" if len(args) % 2 else "")
        + " END"
    ),
    "nullif": "CASE WHEN {0} = {1} THEN NULL ELSE {0} END".format,
    **{
        name: f"{name}(CAST({{}} AS TIMESTAMP))".format
        for name in ("year", "month", "day", "hour", "minute", "second")
    },
}
