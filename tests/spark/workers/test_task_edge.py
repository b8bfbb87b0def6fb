import gc
import sys
import traceback
import weakref
from collections.abc import Iterator
from types import ModuleType

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import querymesh as qm
from querymesh.errors import PredicateError
from querymesh.spark.workers import loaded
from querymesh.spark.workers.task_edge import at_the_edge, tells_plainly


def test_an_error_of_ours_leaves_a_task_with_its_text_alone() -> None:
    def results() -> Iterator[int]:
        yield 1
        try:
            raise KeyError("inner")
        except KeyError as cause:
            raise PredicateError("what was wrong") from cause

    edge = at_the_edge(results())
    assert next(edge) == 1
    with pytest.raises(PredicateError) as error:
        next(edge)
    shown = "".join(traceback.format_exception(error.value))
    assert "KeyError" not in shown
    assert "in results" not in shown
    assert "PredicateError: what was wrong" in shown


def test_other_errors_keep_their_frames() -> None:
    def results() -> Iterator[int]:
        raise KeyError("ours to mend")
        yield 1

    with pytest.raises(KeyError) as error:
        list(at_the_edge(results()))
    assert "in results" in "".join(traceback.format_exception(error.value))


def test_a_function_that_raises_on_the_driver_is_shown_without_our_frames() -> None:
    @tells_plainly
    def run(values: list[int]) -> list[int]:
        predicate = qm.predicate(lambda v: 1 / v > 0, name="p", vectorised=False)
        return predicate.apply([pa.array(values)], len(values)).to_pylist()

    assert run([1]) == [True]
    with pytest.raises(PredicateError) as error:
        run([1, 0])
    frames = [frame.name for frame in traceback.extract_tb(error.value.__traceback__)]
    assert "apply" not in frames
    assert error.value.__cause__ is None


def test_what_a_worker_has_imported_is_not_collected_after_every_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_set_aside(made: list[int], attempt: int | None) -> bool:
        monkeypatch.setattr(loaded, "task_attempt", lambda: attempt)
        assert list(at_the_edge(iter([1]))) == [1]
        return not any(each is made for each in gc.get_objects())

    monkeypatch.setattr(loaded, "_modules_set_aside", 0)
    first = [1]
    assert not is_set_aside(first, None), "this is the driver"
    assert is_set_aside(first, 7)
    second = [2]
    assert not is_set_aside(second, 8), "nothing was imported since"
    monkeypatch.setitem(sys.modules, "one_more_module", ModuleType("one_more_module"))
    assert is_set_aside(second, 9)


def test_a_function_that_raises_in_a_task_is_shown_once_without_our_frames(
    spark: SparkSession,
) -> None:
    def unlucky(number: int) -> bool:
        return 1 / (number - 77) > 0

    numbers = spark.range(100)
    first = qm.predicate(unlucky, columns=["id"], vectorised=False)
    second = qm.predicate(lambda n: n > 3, name="large", columns=["id"], vectorised=False)
    sample = spark.range(50)
    run = numbers.transform(
        qm.where(first, second, engine="fabric", policy="single", sample=sample)
    )
    with pytest.raises(Exception, match="unlucky") as error:
        run.collect()
    text = str(error.value)
    assert "predicate unlucky raised ZeroDivisionError on the row id=77" in text
    assert text.count("in unlucky") == 1
    assert text.count("Traceback") == 1
    assert "fabric" not in text.replace('engine="fabric"', "")


class _Ring:
    """Refers to itself: only a collection of garbage frees it."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_is_collected_before_the_rest_is_put_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loaded, "_modules_set_aside", 0)
    monkeypatch.setattr(loaded, "task_attempt", lambda: 7)
    ring = weakref.ref(_Ring())
    try:
        list(at_the_edge(iter([1])))
    finally:
        gc.unfreeze()
    assert ring() is None
