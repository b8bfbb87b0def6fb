from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.accumulators import Accumulator, AddingAccumulatorParam, _deserialize_accumulator
from pyspark.sql.types import BooleanType, LongType, StructField, StructType
from pyspark.util import PythonEvalType

from querymesh.spark.udfs import loaded_function
from querymesh.spark.udfs.spark_function import SparkFunction

happened: list[str] = []


class Model:
    """Something in a closure that tells when it is unpickled."""

    def __reduce__(self) -> Any:
        return _unpickled, ()


def _unpickled() -> Model:
    happened.append("unpickled")
    return Model()


class Counter:
    """Stands for an accumulator of the driver's, which pickles as Spark's do."""

    def __reduce__(self) -> Any:
        return _deserialize_accumulator, (77, 0, AddingAccumulatorParam(0))


@pytest.fixture(autouse=True)
def a_new_worker() -> None:
    happened.clear()
    loaded_function._functions.clear()


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Says in which task the function is called."""

    def in_task(number: int) -> None:
        monkeypatch.setattr(loaded_function, "task_attempt", lambda: number)

    in_task(1)
    return in_task


def function_of(fn: Any, eval_type: int) -> SparkFunction:
    return SparkFunction(
        commands=(cloudpickle.dumps((fn, BooleanType())),),
        eval_type=eval_type,
        keywords=(None,),
        arguments=StructType([StructField("_0", LongType())]),
        returns=BooleanType(),
        settings={},
    )


NUMBERS = pa.array([1, 5, None])


def test_a_function_is_unpickled_once_by_a_worker(task: Any) -> None:
    model = Model()

    def known(a: int | None) -> bool | None:
        return None if a is None else isinstance(model, Model) and a > 3

    function = function_of(known, PythonEvalType.SQL_ARROW_BATCHED_UDF)
    for number in (1, 1, 2):
        task(number)
        assert function(NUMBERS).to_pylist() == [False, True, None]
    assert happened == ["unpickled"]


def test_a_function_with_an_accumulator_is_unpickled_by_every_task(task: Any) -> None:
    model, counter = Model(), Counter()

    def counted(a: int | None) -> bool:
        assert isinstance(model, Model)
        assert isinstance(counter, Accumulator)
        return True

    function = function_of(counted, PythonEvalType.SQL_ARROW_BATCHED_UDF)
    for number in (1, 1, 2):
        task(number)
        function(NUMBERS)
    assert happened == ["unpickled", "unpickled"]


def told_parts(parts: Iterator[pa.Array]) -> Iterator[pa.Array]:
    """An iterator UDF that says when it begins and ends."""
    happened.append("begin")
    for part in parts:
        yield pa.array([True] * len(part))
    happened.append("end")


def test_an_iterator_udf_lives_as_long_as_its_task(task: Any) -> None:
    function = function_of(told_parts, PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF)
    assert function(NUMBERS).to_pylist() == [True] * 3
    assert len(function(NUMBERS.slice(1))) == 2
    assert happened == ["begin"]
    loaded_function.end_task()
    assert happened == ["begin", "end"]
    task(2)
    function(NUMBERS)
    task(3)  # the second was broken off: what it left open ends now
    function(NUMBERS)
    assert happened == ["begin", "end", "begin", "end", "begin"]


def ends_badly(parts: Iterator[pa.Array]) -> Iterator[pa.Array]:
    for part in parts:
        yield pa.array([True] * len(part))
    raise ValueError("after all")


def test_what_an_iterator_udf_raises_after_its_last_batch_is_logged(
    task: Any, caplog: pytest.LogCaptureFixture
) -> None:
    function_of(ends_badly, PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF)(NUMBERS)
    loaded_function.end_task()
    assert "after its last batch" in caplog.text
    assert "after all" in caplog.text


def test_functions_of_other_bytes_types_or_settings_are_told_apart() -> None:
    one = function_of(told_parts, PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF)
    same = function_of(told_parts, PythonEvalType.SQL_SCALAR_ARROW_ITER_UDF)
    assert one.key == same.key
    assert cloudpickle.loads(cloudpickle.dumps(one)).key == one.key
    other = SparkFunction(**{**one.__getstate__(), "settings": {"spark.sql.session.timeZone": "Z"}})
    assert other.key != one.key
