"""The table of functions: how many arguments each takes, of which types, and its Spark SQL."""

import pyarrow as pa
import pytest

from querymesh.errors import QueryError, SchemaError
from querymesh.query.bind.infer import infer
from querymesh.query.expr import Call, Column, Expr
from querymesh.query.functions import ALIASES, CALLABLE, FUNCTIONS
from querymesh.query.parse.query import condition_of

ARITIES = {
    (1, 1): """not / is null / is not null / negative / abs / floor / ceil / round / sqrt / exp / ln
        / sign / isnan / length / lower / upper / trim / ltrim / rtrim / year / month / day / hour
        / minute / second / negative decimal / abs decimal / floor decimal / ceil decimal""",
    (2, 2): """= / <> / < / <= / > / >= / <=> / + / - / * / % / div / power / nullif / like / ilike
        / rlike / contains / startswith / endswith""",
    (3, 3): "between / if / replace",
    (2, 3): "substring",
    (1, None): "coalesce / concat",
    (2, None): "and / or / in / case / greatest / least",
}


def test_every_function_takes_so_many_arguments() -> None:
    arities = {f.name: f.arity for f in FUNCTIONS.values()}
    expected = {name.strip(): k for k, names in ARITIES.items() for name in names.split(" / ")}
    expected["/"] = (2, 2)
    assert arities == expected


# LIKE and its kin are operators to the parser, which does not get as far as counting.
@pytest.mark.parametrize("name", sorted(CALLABLE - {"like", "ilike", "rlike"}))
def test_too_few_or_too_many_arguments_are_refused(name: str) -> None:
    least, most = FUNCTIONS[ALIASES.get(name, name)].arity
    wrong = [least - 1] if most is None else [least - 1, most + 1]
    for count in wrong:
        with pytest.raises(QueryError, match=f"takes .* arguments?, not {count}"):
            condition_of(f"{name}({', '.join(['x'] * count)})", {})


def test_the_names_that_can_be_called() -> None:
    assert not CALLABLE & {"and", "or", "not", "in", "between", "case", "div", "=", "is null"}
    assert {"if", "coalesce", "pow", "len", "regexp_like", "like", "is_nan"} <= CALLABLE
    assert set(ALIASES.values()) <= FUNCTIONS.keys()


TYPES = {
    "b": pa.bool_(),
    "i": pa.int32(),
    "k": pa.int64(),
    "x": pa.float64(),
    "f": pa.float32(),
    "m": pa.decimal128(9, 2),
    "s": pa.string(),
    "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "r": pa.timestamp("us"),
    "n": pa.null(),
    "o": pa.list_(pa.int64()),
}


def result(name: str, columns: str) -> pa.DataType | None:
    """The type of a call on columns by their letters; None where it is refused."""
    expr: Expr = Call(name, tuple(Column(None, letter) for letter in columns))
    try:
        return infer(expr, lambda column: TYPES[column.name], {})
    except SchemaError:
        return None


BOOLEAN, BIGINT, DOUBLE, STRING = pa.bool_(), pa.int64(), pa.float64(), pa.string()


@pytest.mark.parametrize(
    ("names", "given", "expected"),
    [
        ("= < between", "bbb iii ikx ssn ddd ttt rrr nnn dtd xmx nss", BOOLEAN),
        ("= < between in", "bki ksk sds tsn trt ooo ono", None),
        ("and or", "bb bn nn bbb", BOOLEAN),
        ("and or not", "k s o", None),
        ("and or", "bk sb", None),
        ("is null is not null", "b s o n t", BOOLEAN),
        ("+ - * %", "ik kk kn nn ni", BIGINT),
        ("+ - * % /", "ix xx xm mf fx", DOUBLE),
        ("+ -", "mk km", pa.decimal128(23, 2)),
        ("+ -", "mi im", pa.decimal128(13, 2)),
        ("+ -", "mm nm", pa.decimal128(10, 2)),
        ("*", "mi im", pa.decimal128(20, 2)),
        ("*", "mm", pa.decimal128(19, 4)),
        ("/", "mm", pa.decimal128(21, 12)),
        ("/", "mk", pa.decimal128(30, 23)),
        ("%", "mk km", pa.decimal128(9, 2)),
        ("/ power", "ik kk xn nn", DOUBLE),
        ("+ - * / % div power", "ks bb kd to ob", None),
        ("div", "ik kn nn", BIGINT),
        ("div", "kx xx", None),
        ("negative abs", "i n", BIGINT),
        ("negative abs round", "x f", DOUBLE),
        ("negative abs", "m", pa.decimal128(9, 2)),
        ("floor ceil", "i k x n", BIGINT),
        ("floor ceil round", "m", pa.decimal128(8, 0)),
        ("floor ceil round negative", "s b d o", None),
        ("sqrt exp ln sign", "i x m n", DOUBLE),
        ("isnan", "i x n", BOOLEAN),
        ("isnan", "s b d o", None),
        ("coalesce nullif greatest least", "ii in ik", BIGINT),
        ("coalesce greatest least", "ix nx xm", DOUBLE),
        ("coalesce greatest least", "nm mn mm", pa.decimal128(9, 2)),
        ("coalesce greatest least", "mi im", pa.decimal128(12, 2)),
        ("nullif", "ix im", BIGINT),
        ("nullif", "xi xm", DOUBLE),
        ("nullif", "mi mx mn", pa.decimal128(9, 2)),
        ("coalesce nullif greatest least", "ss sn", STRING),
        ("coalesce nullif greatest least", "si ob oo", None),
        ("coalesce greatest least", "dt", None),
        ("nullif", "dt", pa.date32()),
        ("if", "bik nii bkn", BIGINT),
        ("if", "bix", DOUBLE),
        ("if", "kii sss bis boo", None),
        ("case", "bi bibk bibkn biniK".replace("K", "k"), BIGINT),
        ("case", "ki biki bibs bisk", None),
        ("length", "s n", BIGINT),
        ("lower upper trim ltrim rtrim", "s n", STRING),
        ("length lower trim", "k b d o", None),
        ("contains startswith endswith", "ss sn", BOOLEAN),
        ("contains startswith", "sk bs", None),
        ("concat replace", "sss sns", STRING),
        ("concat replace", "ssk kss", None),
        ("substring", "si sik nn skn", STRING),
        ("substring", "ks sx sis six ssi", None),
        ("year month day", "d t r n", BIGINT),
        ("hour minute second", "t r n", BIGINT),
        ("hour minute second", "d k s", None),
        ("year month day", "k s b o", None),
    ],
)
def test_every_function_has_one_rule_of_types(
    names: str, given: str, expected: pa.DataType | None
) -> None:
    names = names.replace("is null is not null", "is-null is-not-null")
    for name in (each.replace("-", " ") if len(each) > 1 else each for each in names.split()):
        least, most = FUNCTIONS[name].arity
        for columns in given.split():
            wanted = columns[: most or None].ljust(least, columns[-1])
            assert result(name, wanted) == expected, (name, wanted)


@pytest.mark.parametrize(
    ("name", "columns", "wanted"),
    [
        ("=", "ik", "ik"),  # integers keep their width, so that Spark can still push them down
        ("=", "ix", "Ix"),
        ("=", "mm", "mm"),
        ("=", "mi", "MI"),
        ("=", "mx", "Mx"),
        ("=", "dt", "dt"),
        ("+", "ik", "Ik"),
        ("coalesce", "ix", "Ix"),
    ],
)
def test_arguments_are_cast_where_they_must_be(name: str, columns: str, wanted: str) -> None:
    signature = FUNCTIONS[name].rule([TYPES[letter] for letter in columns])
    assert signature is not None
    cast = [
        letter.upper() if dtype not in (None, TYPES[letter]) else letter
        for letter, dtype in zip(columns, signature.wanted, strict=True)
    ]
    assert "".join(cast) == wanted


SPARK = {
    "= <> < <= > >= <=>": "({0} {name} {1})",
    "+": "try_add({0}, {1})",
    "-": "try_subtract({0}, {1})",
    "*": "try_multiply({0}, {1})",
    "/": "try_divide({0}, {1})",
    "%": "try_mod({0}, {1})",
    "div": "CASE WHEN {1} = -1L THEN try_subtract(0L, {0}) ELSE ({0} DIV nullif({1}, 0L)) END",
    "negative": "try_multiply({0}, -1)",
    "abs": "CASE WHEN {0} < 0 THEN try_multiply({0}, -1) ELSE {0} END",
    "floor ceil": (
        "CASE WHEN isnan({0}) THEN 0L WHEN try_cast({0} AS BIGINT) IS NOT NULL THEN {name}({0}) END"
    ),
    "round sqrt exp ln sign isnan lower upper trim ltrim rtrim": "{name}({0})",
    "power nullif contains startswith endswith": "{name}({0}, {1})",
    "coalesce concat greatest least if replace": "{name}({0}, {1}, {2})",
    "length year month day hour minute second": "CAST({name}({0}) AS BIGINT)",
    "and": "({0} AND {1} AND {2})",
    "or": "({0} OR {1} OR {2})",
    "not": "(NOT {0})",
    "in": "({0} IN ({1}, {2}))",
    "between": "({0} BETWEEN {1} AND {2})",
    "like": "({0} LIKE {1})",
    "ilike": "({0} ILIKE {1})",
    "rlike": "({0} RLIKE {1})",
    "substring": "substring({0}, try_cast({1} AS INT), try_cast({2} AS INT))",
    "case": "CASE WHEN {0} THEN {1} ELSE {2} END",
}


def test_every_function_has_its_spark_sql() -> None:
    texts = {name: text for names, text in SPARK.items() for name in names.split()}
    for function in FUNCTIONS.values():
        if function.name not in texts:
            continue
        args = ["a", "b", "c"][: function.arity[1] or 3]
        assert function.spark(*args) == texts[function.name].format(*args, name=function.name)
    spaced = {"is null", "is not null"}
    spaced |= {f"{name} decimal" for name in ("negative", "abs", "floor", "ceil")}
    assert FUNCTIONS.keys() - texts.keys() == spaced
    for name in ("negative", "abs", "floor", "ceil"):
        assert FUNCTIONS[f"{name} decimal"].spark("a") == f"{name}(a)"
    assert FUNCTIONS["is null"].spark("a") == "(a IS NULL)"
    assert FUNCTIONS["is not null"].spark("a") == "(a IS NOT NULL)"


def test_case_without_else_and_lists_with_a_zero_for_spark() -> None:
    assert FUNCTIONS["case"].spark("a", "b", "c", "d") == "CASE WHEN a THEN b WHEN c THEN d END"
    assert FUNCTIONS["in"].spark("a", "0.0D") == "(a IN (0.0D, -0.0D))"
    assert FUNCTIONS["in"].spark("a", "-0.0D") == "(a IN (-0.0D, 0.0D))"
