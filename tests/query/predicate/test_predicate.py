import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from querymesh.errors import OptionError, PredicateError, QueryError
from querymesh.query.predicate.decorators import function, predicate
from querymesh.query.predicate.predicate import Predicate

PORTS = pa.array([22, 80, None, 445])


def test_the_decorator_and_the_plain_call_make_the_same_predicate() -> None:
    def low(port: pa.Array) -> pa.Array:
        return pc.less(port, 100)

    decorated = predicate(columns=["port"], cost_us=2.0, after=["seen"])(low)
    called = predicate(low, columns=["port"], cost_us=2.0, after=["seen"])
    assert decorated == called
    assert decorated == Predicate(low, "low", ("port",), 2.0, ("seen",))
    assert decorated(PORTS).to_pylist() == [True, True, None, False]


@pytest.mark.parametrize(
    "result",
    [
        [True, None, False, True],
        pa.array([True, None, False, True]),
        pa.chunked_array([[True, None], [False, True]]),
        np.array([True, None, False, True], dtype=object),
        pd.Series([True, None, False, True], dtype="boolean"),
    ],
    ids=lambda result: type(result).__name__,
)
def test_booleans_of_every_usual_kind_are_taken(result: object) -> None:
    applied = predicate(lambda port: result, name="p").apply([PORTS], 4)
    assert applied.equals(pa.array([True, None, False, True]))


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ([True], "returned 1 values, expected 4"),
        (True, "returned bool"),
        (None, "returned NoneType"),
        ([1, 0, 1, 0], "type int64, expected 4 values of type bool"),
        (np.array([0.1, 0.2, 0.3, 0.4]), "type double.*compare it"),
        (np.ones((2, 2), bool), r"shape \(2, 2\)"),
        ([True, "x", None, 3], "not of one type"),
        (["a"] * 4, "type string"),
    ],
)
def test_a_wrong_length_or_type_names_the_predicate(result: object, said: str) -> None:
    with pytest.raises(PredicateError, match=f"(?s)predicate p.*{said}"):
        predicate(lambda port: result, name="p").apply([PORTS], 4)
    with pytest.raises(PredicateError, match=f"(?s)predicate p.*{said}"):
        predicate(lambda port: result, name="p").apply_dropping([PORTS], 4)


def test_a_predicate_that_raises_shows_the_row_the_traceback_and_the_remedies() -> None:
    calls = []

    def guarded(port: pa.Array) -> list[bool]:
        calls.append(len(port))
        return [1 / (value - 600) > 0 for value in port.to_pylist()]

    ports = pa.array(range(1000))
    with pytest.raises(PredicateError) as error:
        predicate(guarded, columns=["port"]).apply([ports], 1000)
    text = str(error.value)
    assert "predicate guarded raised ZeroDivisionError on the row port=600" in text
    assert "in guarded" in text
    assert "after=" in text
    assert 'on_error="drop"' in text
    assert isinstance(error.value.__cause__, ZeroDivisionError)
    assert len(calls) < 25
    assert str(pickle.loads(pickle.dumps(error.value))) == text


def test_long_values_are_abbreviated() -> None:
    def fails(payload: pa.Array) -> None:
        raise ValueError

    with pytest.raises(PredicateError) as error:
        predicate(fails, columns=["payload"]).apply([pa.array(["x" * 10_000])], 1)
    assert len(str(error.value)) < 2000


def test_a_function_that_fails_only_once_is_blamed_for_the_batch() -> None:
    calls = []

    def moody(port: pa.Array) -> list[bool]:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("not today")
        return [True] * len(port)

    with pytest.raises(PredicateError, match=r"(?s)a batch of 4 rows.*not today"):
        predicate(moody).apply([PORTS], 4)


@pytest.mark.parametrize("vectorised", [True, False])
def test_dropping_makes_raising_rows_null_and_tells_which(vectorised: bool) -> None:
    def inverse(values: pa.Array) -> list[bool]:
        return [1 / value > 0 for value in values.to_pylist()]

    def one(value: int) -> bool:
        return 1 / value > 0

    checked = predicate(inverse if vectorised else one, vectorised=vectorised)
    applied, dropped = checked.apply_dropping([pa.array([1, 0, -1, 0, 5, 0])], 6)
    assert applied.to_pylist() == [True, None, False, None, True, None]
    assert dropped.tolist() == [False, True, False, True, False, True]


def test_row_by_row_functions_get_python_values() -> None:
    checked = predicate(lambda port, name: (port, name) == (80, "b"), name="p", vectorised=False)
    applied = checked.apply([PORTS, pa.array(["a", "b", "c", None])], 4)
    assert applied.to_pylist() == [False, True, False, False]


def test_an_empty_batch_does_not_call_the_function() -> None:
    def fails(*_: object) -> None:
        raise AssertionError

    assert len(predicate(fails).apply([PORTS.slice(0, 0)], 0)) == 0
    assert predicate(fails).apply_dropping([PORTS.slice(0, 0)], 0)[1].tolist() == []


def test_functions_give_values_of_their_declared_type() -> None:
    score = function(lambda port: pc.divide(port, 2), name="score", returns=pa.float64())
    assert score.apply([PORTS], 4).type == pa.float64()
    with pytest.raises(PredicateError, match="type double, expected 4 values of type string"):
        function(lambda port: [0.5] * 4, name="f", returns=pa.string()).apply([PORTS], 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": ""}, "cannot name a predicate"),
        ({"name": "a b"}, "cannot name a predicate"),
        ({}, "<lambda>"),
        ({"name": "p", "cost_us": 0}, "cost_us must be positive"),
        ({"name": "p", "cost_us": float("nan")}, "cost_us must be positive"),
        ({"name": "p", "columns": [1]}, "columns= takes names"),
        ({"name": "p", "after": [None]}, "after= takes names"),
    ],
)
def test_bad_settings_are_refused_at_once(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(QueryError, match=said):
        predicate(lambda x: x, **arguments)  # type: ignore[call-overload]


@pytest.mark.parametrize("wrong", ["Pandas", "arrow", None, 1, 0, "true"])
def test_a_wrong_value_of_vectorised_names_the_three(wrong: object) -> None:
    with pytest.raises(OptionError, match=r'vectorised is True .*"pandas" .*False .*not'):
        predicate(lambda x: x, name="p", vectorised=wrong)  # type: ignore[call-overload]
