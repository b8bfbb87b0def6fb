"""The one table of built-in functions: each has one type rule, one Arrow and one Spark reading."""

from __future__ import annotations

from querymesh.query.functions.arithmetic import ARITHMETIC
from querymesh.query.functions.comparison import COMPARISON
from querymesh.query.functions.conditional import CONDITIONAL
from querymesh.query.functions.spec import Function
from querymesh.query.functions.text import TEXT
from querymesh.query.functions.time import TIME

FUNCTIONS: dict[str, Function] = {
    function.name: function for function in (*COMPARISON, *ARITHMETIC, *CONDITIONAL, *TEXT, *TIME)
}

TESTS = frozenset(function.name for function in COMPARISON)
"""Those that compare, and give a BOOLEAN."""

ALIASES = {
    "btrim": "trim",
    "ceiling": "ceil",
    "char_length": "length",
    "character_length": "length",
    "dayofmonth": "day",
    "ifnull": "coalesce",
    "is_nan": "isnan",
    "isnotnull": "is not null",
    "isnull": "is null",
    "lcase": "lower",
    "len": "length",
    "mod": "%",
    "nvl": "coalesce",
    "pow": "power",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "signum": "sign",
    "substr": "substring",
    "ucase": "upper",
}
"""Other names that SQL may use for the same functions."""

CALLABLE = frozenset(name for name in {*FUNCTIONS, *ALIASES} if name.replace("_", "").isalpha()) - {
    "and",
    "or",
    "not",
    "in",
    "between",
    "case",
    "div",
}
"""The names that can be written as a call, `name(...)`."""
