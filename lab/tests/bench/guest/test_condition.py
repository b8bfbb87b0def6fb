import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import Column

import querymesh as qm
from querymesh_lab.bench.data.row_predicate import RowPredicate
from querymesh_lab.bench.guest.condition import (
    ARRAY_WAYS,
    ArrayPredicate,
    Sql,
    as_written,
    default_way,
    for_where,
    in_order,
    matches,
    ways,
)


def even(number: int) -> bool:
    return number % 2 == 0


def small(number: int) -> bool:
    return number < 50


def even_array(numbers: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(numbers, 1), 0)


EVEN, SMALL = RowPredicate("even", ("id",), even), RowPredicate("small", ("id",), small)
EVEN_ARRAY = ArrayPredicate("even_array", ("id",), even_array)
MIXED = (EVEN, Sql("id > 10"), SMALL, matches("text", "^n[0-9]*[48]$"))
KEPT = [14, 18, 24, 28, 34, 38, 44, 48]


@pytest.fixture(scope="module")
def numbers(spark):
    return spark.range(100).selectExpr("id", "concat('n', id) AS text")


def ids(df) -> list[int]:
    return sorted(row["id"] for row in df.collect())


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("way", ways(MIXED))
def test_every_form_and_every_order_keeps_the_same_rows(numbers, way: str):
    assert ids(as_written(numbers, MIXED, way)) == KEPT
    assert ids(in_order(numbers, MIXED, (3, 0, 2, 1), way)) == KEPT


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("way", ARRAY_WAYS)
def test_functions_of_arrays_have_forms_of_their_own(numbers, way: str):
    asked = (EVEN_ARRAY, Sql("id < 7"))
    assert ids(as_written(numbers, asked, way)) == [0, 2, 4, 6]
    assert default_way(asked) == "arrow_udf"
    assert way in ways(asked)


def test_a_forced_order_keeps_python_functions_apart(numbers, capsys):
    as_written(numbers, (EVEN, SMALL), "udf, Arrow").explain()
    assert capsys.readouterr().out.count("ArrowEvalPython") == 1
    in_order(numbers, (EVEN, SMALL), (1, 0), "udf, Arrow").explain()
    plan = capsys.readouterr().out
    assert plan.count("ArrowEvalPython") == 2
    assert plan.index("even(") < plan.index("small(")


def test_sql_alone_has_no_forms():
    assert ways((Sql("id > 1"),)) == []


def test_where_gets_text_and_predicates_or_the_udfs_themselves(spark):
    text, function = for_where((Sql("id > 1"), EVEN), "predicate")
    assert text == "id > 1"
    assert isinstance(function, qm.predicate(even).__class__)
    assert not function.vectorised
    assert for_where((EVEN_ARRAY,), "predicate")[0].vectorised
    assert isinstance(for_where((EVEN,), "udf")[0], Column)
    assert isinstance(for_where((EVEN_ARRAY,), "arrow_udf")[0], Column)
