"""UDFs as Spark runs them and as we call them: the same values, whatever they are given."""

import re
from collections.abc import Callable
from collections.abc import Iterator as Parts
from typing import Any
from zlib import crc32

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf, pandas_udf

from querymesh.query.predicate.predicate import Predicate
from querymesh.spark.context import analysed, column_of
from querymesh.spark.udfs.unwrap import (
    SparkFunctionCall,
    as_predicate,
    loads_on_driver,
    unwrapped,
    why_left_to_spark,
)

# PySpark's hints ask for kinds of functions where ours say theirs by their own hints.
by_arrow: Any = arrow_udf
by_pandas: Any = pandas_udf

ODD = """
select id as a,
  if(id % 4 = 0, null, concat('ß', repeat('x', cast(id as int)))) as b,
  if(id % 5 = 1, null, struct(id as x, if(id % 3 = 0, null, 'q') as y)) as st,
  if(id % 7 = 2, null, array(id, null, -id)) as ar,
  if(id % 7 = 3, null, map('k', id, 'l', null)) as m,
  array(struct(cast(id as decimal(38, 10)) as d, timestamp_micros(id * 7654321987654) as t))
    as nested,
  cast(if(id % 4 = 1, null, id - 9007199254740993) as decimal(38, 3)) as d,
  if(id % 6 = 5, null, timestamp'2024-03-31 00:15:00' + cast(id as int) * interval 1 hour) as ts,
  timestamp_micros(-8520336000000000 + id) as old,
  if(id % 3 = 0, null, cast('1901-02-03 04:05:06.789' as timestamp_ntz)) as nt,
  date_add(date'0001-01-01', cast(id * 9876 as int)) as dt,
  if(id % 3 = 2, null, cast(concat('b', id) as binary)) as bi,
  case when id = 3 then double('NaN') when id = 4 then double('Infinity') when id = 5 then null
       else id / 3 end as f,
  cast(id / 3 as float) as f4,
  if(id % 2 = 0, null, id % 3 = 0) as boo,
  cast(if(id % 4 = 3, null, id) as tinyint) as i1,
  make_dt_interval(cast(id as int), 1, 2, 3.5) as iv
from range(24)
"""


@pytest.fixture(scope="module")
def odd(spark: SparkSession) -> DataFrame:
    return spark.sql(ODD).cache()


def call_of(df: DataFrame, column: Column) -> SparkFunctionCall:
    call = unwrapped(df.sparkSession, analysed(df, [column])[0])
    assert call is not None
    return call


def ours(df: DataFrame, column: Column) -> Column:
    """The same UDF by way of our function, inside an Arrow function as the fabric has it."""
    call = call_of(df, column)
    function = call.function

    def values(*arrays: pa.Array) -> pa.Array:
        first, rest = ([array.slice(*cut) for array in arrays] for cut in ((0, 5), (5,)))
        return pa.concat_arrays([function(*part) for part in (first, rest) if len(part[0])])

    values.__annotations__ = {"arrays": pa.Array, "return": pa.Array}
    arguments = [column_of(df.sparkSession, each.expression) for each in call.arguments]
    return by_arrow(values, function.returns)(*arguments)


def agree(df: DataFrame, *columns: Column) -> list[tuple[Any, ...]]:
    """What Spark makes of the columns, after it was found that ours makes the same of them."""
    expected = df.select(*columns).collect()
    found = df.select(*(ours(df, column) for column in columns)).collect()
    # As text, since a NaN is not equal to itself.
    assert [repr(tuple(row)) for row in found] == [repr(tuple(row)) for row in expected]
    return [tuple(row) for row in expected]


def as_number(*values: Any, **named: Any) -> int:
    """A number that tells values and their types: text from UDFs without Arrow is Spark's own."""
    return crc32(repr([(type(value), value) for value in (*values, named)]).encode())


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> Any:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize("use_arrow", [True, False])
def test_row_by_row_udfs_get_the_values_that_spark_gives_them(
    odd: DataFrame, zone: str, use_arrow: bool
) -> None:
    number = F.udf(as_number, "long", useArrow=use_arrow)
    names = odd.columns if use_arrow else [name for name in odd.columns if name != "m"]
    told = agree(odd, *(number(name) for name in names), number(*names))
    assert all(len(set(column)) > 1 for column in zip(*told, strict=True))


def test_pandas_udfs_get_the_values_that_spark_gives_them(odd: DataFrame, zone: str) -> None:
    @by_pandas("long")
    def number(values: pd.Series) -> pd.Series:
        return pd.Series([as_number(str(values.dtype), value) for value in values])

    @by_pandas("string")
    def fields(struct: pd.DataFrame, other: pd.Series) -> pd.Series:
        return struct["y"].fillna("none") + other.astype(str)

    simple = [name for name in odd.columns if name not in ("st", "iv")]
    agree(odd, *(number(name) for name in simple), fields("st", "a"))


def test_arrow_udfs_get_the_arrays_that_spark_gives_them(odd: DataFrame, zone: str) -> None:
    @by_arrow("string")
    def shown(values: pa.Array) -> pa.Array:
        return pa.array([f"{values.type} {value}" for value in values.to_pylist()])

    agree(odd, *(shown(name) for name in odd.columns))


def test_iterator_udfs_of_one_and_of_several_columns_are_fed_batch_by_batch(
    odd: DataFrame,
) -> None:
    @by_pandas("boolean")
    def one(parts: Parts[pd.Series]) -> Parts[pd.Series]:
        for part in parts:
            yield part > 3

    @by_pandas("boolean")
    def two(parts: Parts[tuple[pd.Series, pd.Series]]) -> Parts[pd.Series]:
        for a, b in parts:
            yield (a > 3) & b.isna()

    @by_arrow("boolean")
    def arrow_one(parts: Parts[pa.Array]) -> Parts[pa.Array]:
        for part in parts:
            yield pc.greater(part, 3)

    @by_arrow("boolean")
    def arrow_two(parts: Parts[tuple[pa.Array, pa.Array]]) -> Parts[pa.Array]:
        for a, b in parts:
            yield pc.and_kleene(pc.greater(a, 3), pc.is_valid(b))

    @by_arrow("boolean")
    def reads_ahead(parts: Parts[pa.Array]) -> Parts[pa.Array]:
        last = None
        for part in parts:
            if last is not None:
                yield last
            last = pc.greater(part, 3)
        yield last

    agree(odd, one("a"), two("a", "b"), arrow_one("a"), arrow_two("a", "b"), reads_ahead("a"))


@pytest.mark.parametrize("use_arrow", [True, False])
def test_arguments_may_be_any_expression_named_left_out_or_none_at_all(
    odd: DataFrame, use_arrow: bool
) -> None:
    def called(a: Any = 1, b: Any = 2, *rest: Any, c: Any = 3) -> int:
        return as_number(a, b, rest, c)

    number = F.udf(called, "long", useArrow=use_arrow)
    agree(
        odd,
        number(),
        number(F.col("a") + 1, F.upper("b"), F.lit("x"), F.col("st.y")),
        number("a", c="b"),
        number(c=F.col("a") * 2, b="b"),
        number("a", "a"),
    )


def test_pandas_and_arrow_udfs_take_named_arguments(odd: DataFrame) -> None:
    @by_pandas("boolean")
    def larger(a: pd.Series, f: pd.Series) -> pd.Series:
        return a > f

    @by_arrow("boolean")
    def arrow_larger(a: pa.Array, f: pa.Array) -> pa.Array:
        return pc.greater(pc.cast(a, pa.float64()), f)

    agree(odd, larger(f="f", a="a"), larger("a", f="f"), arrow_larger(f="f", a="a"))


def test_a_registered_name_in_sql_is_the_same_udf(spark: SparkSession, odd: DataFrame) -> None:
    spark.udf.register("is_long", lambda text, n: text is not None and len(text) > n, "boolean")
    column = F.expr("is_long(b, 3 + 4)")
    assert call_of(odd, column).name == "is_long"
    assert {True, False} == {value for (value,) in agree(odd, column)}


def test_broadcasts_and_large_closures_come_along(spark: SparkSession, odd: DataFrame) -> None:
    known = spark.sparkContext.broadcast({3, 4, 17})
    large = {number: str(number) * 300 for number in range(5, 2000)}

    @F.udf("boolean")
    def is_known(a: int) -> bool:
        return a in known.value

    @F.udf("boolean")
    def is_large(a: int) -> bool:
        return a in large

    @F.udf("boolean", useArrow=False)
    def is_either(a: int) -> bool:
        return a in large or a in known.value

    agreed = agree(odd, is_known("a"), is_large("a"), is_either("a"))
    assert [sum(column) for column in zip(*agreed, strict=True)] == [3, 19, 21]
    for column in (is_known("a"), is_large("a")):
        call = call_of(odd, column)
        assert len(call.function.broadcasts) == 1
        assert not loads_on_driver(call)


def test_what_a_udf_adds_to_an_accumulator_comes_back_from_every_task(
    spark: SparkSession, odd: DataFrame
) -> None:
    seen = spark.sparkContext.accumulator(0)

    @F.udf("boolean")
    def counted(a: int) -> bool:
        seen.add(1)
        return True

    call = call_of(odd, counted("a"))
    assert not loads_on_driver(call)
    assert as_predicate(call, "counted", ["a"]).memo is False, "it is to count rows, not inputs"
    ours_counted = ours(odd, counted("a"))
    for _ in range(3):
        odd.repartition(4).select(ours_counted).collect()
    assert seen.value == 3 * 24


def test_a_plain_udf_can_be_called_on_the_driver(odd: DataFrame) -> None:
    call = call_of(odd, F.udf(lambda a: a > 3, "boolean")("a"))
    assert loads_on_driver(call)
    assert call.function(pa.array([1, 5], pa.int64())).to_pylist() == [False, True]


@pytest.mark.parametrize("kind", ["arrow", "pickle", "pandas", "arrow_array"])
def test_udfs_called_with_one_another_are_chained_as_spark_chains_them(
    odd: DataFrame, kind: str
) -> None:
    # The inner function is declared as text and gives numbers: only chained, the outer sees them.
    inner: Any
    outer: Any
    if kind in ("arrow", "pickle"):
        inner = F.udf(lambda a: a, "string", useArrow=kind == "arrow")
        outer = F.udf(lambda a: isinstance(a, int), "boolean", useArrow=kind == "arrow")
    elif kind == "pandas":

        @by_pandas("string")
        def inner(a: pd.Series) -> pd.Series:
            return a

        @by_pandas("boolean")
        def outer(a: pd.Series) -> pd.Series:
            return pd.Series([isinstance(value, int) for value in a])
    else:

        @by_arrow("string")
        def inner(a: pa.Array) -> pa.Array:
            return a

        @by_arrow("boolean")
        def outer(a: pa.Array) -> pa.Array:
            return pa.array([pa.types.is_integer(a.type)] * len(a))

    agree(odd, outer(inner("a")), outer(outer(inner("a"))))


def test_udfs_that_spark_does_not_chain_are_left_to_it(odd: DataFrame) -> None:
    one = F.udf(lambda *a: True, "boolean")
    other = F.udf(lambda *a: True, "boolean", useArrow=False)
    for column in (one(other("a")), one(~one("a")), one("a", one("a"))):
        (expression,) = analysed(odd, [column])
        assert "another UDF" in str(why_left_to_spark(expression.tree))
        assert unwrapped(odd.sparkSession, expression) is None


def test_what_is_no_call_of_a_udf_is_told_apart(spark: SparkSession, odd: DataFrame) -> None:
    in_sql = F.udf(lambda a: a > 3, "boolean")("a") & F.col("boo")
    (expression,) = analysed(odd, [in_sql])
    assert why_left_to_spark(expression.tree) == "it is not the call of a UDF"
    assert unwrapped(spark, expression) is None
    (part,) = [
        expression.part(way)
        for node, way in expression.tree.conjuncts()
        if node.kind == "PythonUDF"
    ]
    assert unwrapped(spark, part) is not None


def test_types_that_only_spark_carries_are_left_to_it(spark: SparkSession, odd: DataFrame) -> None:
    months = F.expr("make_ym_interval(1, 2)")
    text = F.udf(lambda a: 0.1, "string", useArrow=False)("a")
    in_javas_order = F.udf(lambda m: True, "boolean", useArrow=False)("m")
    for column in (F.udf(lambda a: True, "boolean")(months), text, in_javas_order):
        assert unwrapped(spark, analysed(odd, [column])[0]) is None


def test_a_udf_that_spark_runs_as_sql_is_left_to_it(spark: SparkSession, odd: DataFrame) -> None:
    spark.conf.set("spark.sql.experimental.optimizer.transpilePyUDFs", "true")
    try:
        (expression,) = analysed(odd, [F.udf(_is_three, "boolean", useArrow=False)("a")])
    finally:
        spark.conf.unset("spark.sql.experimental.optimizer.transpilePyUDFs")
    assert "as SQL" in str(why_left_to_spark(expression.tree))
    assert unwrapped(spark, expression) is None


def test_a_random_udf_says_so(odd: DataFrame) -> None:
    is_odd = F.udf(lambda a: a % 2 == 1, "boolean")
    assert call_of(odd, is_odd("a")).deterministic
    assert not call_of(odd, is_odd.asNondeterministic()("a")).deterministic
    assert not call_of(odd, F.udf(lambda a: True, "boolean")(F.rand())).deterministic


def test_a_udf_becomes_a_predicate_over_the_columns_of_its_arguments(odd: DataFrame) -> None:
    @F.udf("boolean")
    def is_odd(a: int) -> bool:
        return a % 2 == 1

    predicate = as_predicate(call_of(odd, is_odd("a")), "is_odd", ["argument"])
    assert isinstance(predicate, Predicate)
    assert (predicate.columns, predicate.returns) == (("argument",), pa.bool_())
    assert predicate.apply([pa.array([1, 2])], 2).to_pylist() == [True, False]


@pytest.mark.parametrize(
    "make",
    [
        lambda: F.udf(lambda a: 1 / (a - 3) > 0, "boolean"),
        lambda: F.udf(lambda a: 1 / (a - 3) > 0, "boolean", useArrow=False),
        lambda: by_arrow(_short, "boolean"),
        lambda: by_arrow(_late, "boolean"),
    ],
)
def test_a_udf_that_fails_in_spark_fails_with_the_same_error(
    odd: DataFrame, make: Callable[[], Any]
) -> None:
    column = make()("a")
    with pytest.raises(PythonException) as expected:
        odd.select(column).collect()
    with pytest.raises(PythonException) as found:
        odd.select(ours(odd, column)).collect()
    # Rows are counted by batch, and ours are smaller.
    assert _last_line(found.value) == _last_line(expected.value)


def _last_line(error: BaseException) -> str:
    return re.sub(r"\d+", "n", str(error).splitlines()[-1])


def _is_three(a):  # type: ignore[no-untyped-def]
    return a == 3


def _short(a: pa.Array) -> pa.Array:
    return pc.greater(a.slice(1), 3)


def _late(parts: Parts[pa.Array]) -> Parts[pa.Array]:
    for part in parts:
        yield pc.greater(part, 3)
        raise ValueError("too late")
