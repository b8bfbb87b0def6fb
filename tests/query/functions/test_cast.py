import datetime as dt
import math

import pyarrow as pa
import pytest

from meaning import computed, value_of
from querymesh.errors import UnsupportedError
from querymesh.query.expr import Cast, Column
from querymesh.query.functions.cast import can_cast, spark_cast
from querymesh.query.render import spark_sql


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("CAST(2147483647 AS INT)", 2**31 - 1),
        ("CAST(2147483648 AS INT)", None),
        ("CAST(-2147483648 AS INT)", -(2**31)),
        ("CAST(-2147483649 AS INT)", None),
        ("CAST('2147483648' AS INT)", None),
        ("CAST('2147483647' AS INT)", 2**31 - 1),
        ("CAST(2147483647.9 AS INT)", 2**31 - 1),
        ("CAST(2147483648.0 AS INT)", None),
        ("CAST(TRUE AS INT)", 1),
        ("CAST(NULL AS INT)", None),
        ("CAST(TRUE AS DOUBLE)", 1.0),
        ("CAST(FALSE AS BIGINT)", 0),
        ("CAST(5 AS BOOLEAN)", True),
        ("CAST(0 AS BOOLEAN)", False),
        ("CAST(TRUE AS STRING)", "true"),
        ("CAST(-12 AS STRING)", "-12"),
        ("CAST(DATE '2024-02-29' AS STRING)", "2024-02-29"),
    ],
)
def test_constants_are_cast_within_the_bounds_of_the_type(sql: str, value: object) -> None:
    found = value_of(sql)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", None),
        ("123456789012345678", 123456789012345678),
        ("999999999999999999", 999999999999999999),
        ("0000000000000000000000000007", 7),
        ("+5", 5),
        ("+-5", None),
        ("-", None),
        ("", None),
        ("1.5", None),
        ("\t 12\n", 12),
        ("\x7f12", 12),
        ("1 2", None),
        ("٣", None),
        ("\u00a012", None),
    ],
)
def test_text_becomes_a_bigint_where_it_is_one(text: str, whole: int | None) -> None:
    assert computed("CAST(s AS BIGINT)", s=pa.array([text])) == [whole]
    # A text that needs a closer look must not change what the others become.
    assert computed("CAST(s AS BIGINT)", s=pa.array(["7", text, None, "x"])) == [
        7, whole, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.5", 1.5),
        ("-0.25", -0.25),
        ("12", 12.0),
        ("+1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("1.5f", 1.5),
        ("2D", 2.0),
        (" 3.5\t", 3.5),
        ("inf", math.inf),
        ("+Infinity", math.inf),
        ("-INF", -math.inf),
        ("--inf", None),
        ("NaN", "nan"),
        ("+nan", None),
        ("-nan", None),
        ("0x1p3", 8.0),
        ("-0x1.8p1", -3.0),
        ("0x1p99999", math.inf),
        ("-0x1p99999", -math.inf),
        ("1e999", math.inf),
        ("0x10", None),
        ("1_000", None),
        ("", None),
        (".", None),
        ("e5", None),
        ("٣.5", None),
    ],
)
def test_text_becomes_a_double_where_java_would_read_one(text: str, number: object) -> None:
    assert computed("CAST(s AS DOUBLE)", s=pa.array([text])) == [number]
    assert computed("CAST(s AS DOUBLE)", s=pa.array(["0.5", text, None])) == [0.5, number, None]


@pytest.mark.parametrize("text", ["t", "TRUE", " y ", "Yes", "1"])
def test_text_that_says_yes(text: str) -> None:
    assert computed("CAST(s AS BOOLEAN)", s=pa.array([text, None])) == [True, None]


@pytest.mark.parametrize("text", ["f", "False", "N", "no\n", "0"])
def test_text_that_says_no(text: str) -> None:
    assert computed("CAST(s AS BOOLEAN)", s=pa.array([text, "maybe"])) == [False, None]


def test_a_timestamp_has_its_day_in_its_own_zone() -> None:
    late = dt.datetime(2024, 3, 1, 3, tzinfo=dt.UTC)
    february, march = dt.date(2024, 2, 29), dt.date(2024, 3, 1)
    for zone, day in (("UTC", march), ("America/New_York", february), ("Asia/Kolkata", march)):
        assert computed("CAST(t AS DATE)", t=pa.array([late], pa.timestamp("us", zone))) == [day]
    before = pa.array([dt.datetime(1969, 12, 31, 23, 59)], pa.timestamp("us"))
    assert computed("CAST(t AS DATE)", t=before) == [dt.date(1969, 12, 31)]


ARROW_TYPES = {
    "BOOLEAN": pa.bool_(),
    "BIGINT": pa.int64(),
    "SMALLINT": pa.int16(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "DATE": pa.date32(),
    "DECIMAL(9,2)": pa.decimal128(9, 2),
    "DECIMAL(38,18)": pa.decimal128(38, 18),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "NULL": pa.null(),
    "LIST": pa.list_(pa.int64()),
}


@pytest.mark.parametrize(
    ("target", "sources"),
    [
        ("bigint", "BOOLEAN BIGINT SMALLINT DECIMAL(9,2) DECIMAL(38,18) DOUBLE STRING NULL"),
        ("int", "BOOLEAN BIGINT SMALLINT DECIMAL(9,2) DOUBLE STRING NULL"),
        ("smallint", "BOOLEAN BIGINT SMALLINT DECIMAL(9,2) DOUBLE STRING NULL"),
        ("tinyint", "BOOLEAN BIGINT SMALLINT DECIMAL(9,2) DOUBLE STRING NULL"),
        ("double", "BOOLEAN BIGINT SMALLINT DECIMAL(9,2) DECIMAL(38,18) DOUBLE STRING NULL"),
        ("float", "BOOLEAN SMALLINT DECIMAL(9,2) DECIMAL(38,18) DOUBLE NULL"),
        ("decimal(9,2)", "BOOLEAN BIGINT SMALLINT DECIMAL(9,2) DECIMAL(38,18) STRING NULL"),
        ("string", "BOOLEAN BIGINT SMALLINT DECIMAL(9,2) STRING DATE NULL"),
        ("boolean", "BOOLEAN BIGINT SMALLINT DECIMAL(9,2) DECIMAL(38,18) STRING NULL"),
        ("date", "DATE TIMESTAMP TIMESTAMP_NTZ NULL"),
        ("timestamp", "TIMESTAMP"),
        ("timestamp_ntz", "DATE TIMESTAMP TIMESTAMP_NTZ NULL"),
    ],
)
def test_casts_are_those_on_which_engines_agree(target: str, sources: str) -> None:
    allowed = [name for name, dtype in ARROW_TYPES.items() if can_cast(dtype, target)]
    assert sorted(allowed) == sorted(sources.split())


def test_spark_is_asked_for_null_where_a_value_does_not_fit() -> None:
    assert spark_cast("x", "int") == "CAST(try_cast(x AS INT) AS BIGINT)"
    assert spark_cast("x", "bigint") == "try_cast(x AS BIGINT)"
    x = Column(None, "x")
    assert spark_sql(Cast(x, "double")) == "try_cast(`x` AS DOUBLE)"
    assert spark_sql(Cast(x, "double", implicit=True)) == "CAST(`x` AS DOUBLE)"


def test_another_cast_is_refused_with_a_remedy() -> None:
    with pytest.raises(UnsupportedError, match=r"from DOUBLE to STRING.*qm\.function"):
        value_of("CAST(1.5D AS STRING)")
    with pytest.raises(UnsupportedError, match=r"from DOUBLE to DECIMAL\(9,2\)"):
        value_of("CAST(1.5D AS DECIMAL(9, 2))")
