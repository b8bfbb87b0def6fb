"""What UDFs without Arrow may return, and what Spark makes of it: asked of Spark itself."""

import datetime
import decimal
import enum
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, _parse_datatype_string

from querymesh.spark.udfs.pickled_results import is_known_to_pickle, results_of_pickle


class Plain:
    """An object that pickle makes without arguments."""


class Color(enum.Enum):
    RED = 1


class Wide(int):
    """An integer of a kind of its own."""


VALUES: list[Any] = [
    *(True, False, None, 0, 1, -1, 127, 128, -129, 300, 40000, 2**31, -(2**31) - 1, 2**63 - 1),
    *(2**63, 2**70, 0.0, 1.5, -2.25, 1e300, float("nan"), float("inf"), "true", "", "1", b"1"),
    *(bytearray(b"x"), decimal.Decimal("1.5"), [True], (1,), {"a": 1}, {1}, 1j, Plain()),
    *(datetime.timedelta(1),),
]
KINDS = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double"]


def through_spark(spark: SparkSession, values: list[Any], kind: str) -> list[Any]:
    give = F.udf(lambda number: values[number], kind, useArrow=False)
    return [row[0] for row in spark.range(len(values)).coalesce(1).select(give("id")).collect()]


def through_ours(values: list[Any], kind: str) -> list[Any]:
    returns = _parse_datatype_string(kind)
    arrow = to_arrow_type(returns, timezone="UTC")
    converted = [returns.toInternal(value) for value in values]
    return results_of_pickle(converted, returns, arrow).to_pylist()


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_do_not_fit_become_what_spark_makes_of_them(
    spark: SparkSession, kind: str
) -> None:
    expected = through_spark(spark, VALUES, kind)
    assert [repr(value) for value in through_ours(VALUES, kind)] == [repr(v) for v in expected]
    assert None in expected
    assert any(expected)


@pytest.mark.parametrize("kind", ["date", "timestamp_ntz"])
def test_days_and_times_come_back_as_they_were(spark: SparkSession, kind: str) -> None:
    values = [None, datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.datetime(1969, 12, 31)]
    assert through_ours(values, kind) == through_spark(spark, values, kind)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.bool_(True),
        lambda: np.float64(1.5),
        lambda: re.search("a", "a"),
        lambda: Color.RED,
        lambda: lambda: True,
        lambda: Wide(3),
    ],
    ids=["numpy bool", "numpy float", "match", "enum", "function", "own integer"],
)
def test_what_spark_cannot_read_is_an_error(spark: SparkSession, make: Callable[[], Any]) -> None:
    give = F.udf(lambda _: make(), "boolean", useArrow=False)
    with pytest.raises((PythonException, Py4JJavaError)):
        spark.range(1).select(give("id")).collect()
    with pytest.raises(Exception, match=r"pickle|without Arrow"):
        through_ours([make()], "boolean")


def test_text_is_not_among_the_types_whose_rules_are_kept_here() -> None:
    assert not is_known_to_pickle(StringType())
