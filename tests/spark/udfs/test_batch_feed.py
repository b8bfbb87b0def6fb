from collections.abc import Iterator

import pyarrow as pa
import pytest

from querymesh.spark.udfs.batch_feed import FedFunction

started: list[str] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    started.clear()


def batch(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"v": list(values)})


def values(parts: list[pa.RecordBatch]) -> list[int]:
    return [value for part in parts for value in part["v"].to_pylist()]


def test_a_function_is_started_once_and_left_waiting_at_its_yield() -> None:
    def each(_: int, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started.append("begin")
        yield from parts
        started.append("end")

    fed = FedFunction(each)
    assert [values(fed(batch(1, 2))), values(fed(batch(3))), values(fed(batch(4, 5)))] == [
        [1, 2],
        [3],
        [4, 5],
    ]
    assert started == ["begin"]
    fed.end()
    assert started == ["begin", "end"]
    fed.end()
    assert values(fed(batch(6))) == [6]
    assert started == ["begin", "end", "begin"]


def test_a_function_that_asks_for_more_before_it_answers_is_told_that_there_is_no_more() -> None:
    def reads_ahead(_: int, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started.append("begin")
        yield from list(parts)

    fed = FedFunction(reads_ahead)
    assert [values(fed(batch(1, 2))), values(fed(batch(3)))] == [[1, 2], [3]]
    assert started == ["begin", "begin"]


def test_answers_may_come_in_several_parts_and_empty_ones() -> None:
    def cut(_: int, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started.append("begin")
        for part in parts:
            yield part.slice(0, 0)
            yield part.slice(0, 1)
            yield part.slice(1)

    fed = FedFunction(cut)
    assert [values(fed(batch(1, 2, 3))), values(fed(batch(4, 5)))] == [[1, 2, 3], [4, 5]]
    assert started == ["begin"]


def test_after_an_error_the_function_is_started_anew() -> None:
    def fails_on_three(_: int, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started.append("begin")
        for part in parts:
            if 3 in part["v"].to_pylist():
                raise ValueError("three")
            yield part

    fed = FedFunction(fails_on_three)
    assert values(fed(batch(1))) == [1]
    with pytest.raises(ValueError, match="three"):
        fed(batch(3))
    assert values(fed(batch(4))) == [4]
    assert started == ["begin", "begin"]
