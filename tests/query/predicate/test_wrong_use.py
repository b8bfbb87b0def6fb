"""Functions that were written for other values than they are given, and what the error says."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from querymesh.errors import PredicateError
from querymesh.query.predicate.decorators import predicate

TEXTS = pa.array(["Ab", "x", None, "yy"])
NUMBERS = pa.array([1, 5, None, 7])

FOR_PANDAS = {
    "str": (lambda s: s.str.contains("x"), TEXTS),
    "astype": (lambda s: s.astype(str) == "1", NUMBERS),
    "isna": (lambda s: ~s.isna(), NUMBERS),
    "fillna": (lambda s: s.fillna(0) > 3, NUMBERS),
    "apply": (lambda s: s.apply(lambda v: v == "x"), TEXTS),
    "isin": (lambda s: s.isin(["x"]), TEXTS),
    "compared": (lambda s: s > 3, NUMBERS),
    "computed": (lambda s: s % 2 == 1, NUMBERS),
}


def _decides(value: Any) -> bool:
    if value is None:
        return False
    return bool(value > 3)


FOR_VALUES = {
    "lower": (lambda v: v is not None and v.lower() == "x", TEXTS),
    "startswith": (lambda v: (v or "").startswith("x"), TEXTS),
    "compared": (_decides, NUMBERS),
    "chained": (lambda v: v is not None and 0 < v < 6, NUMBERS),
    "matched": (lambda v: v is not None and re.search("x", v) is not None, TEXTS),
    "converted": (lambda v: v is not None and int(v) > 3, NUMBERS),
    "one answer": (lambda v: v == 5, NUMBERS),
    "a length": (lambda v: v is not None and len(v) > 1, TEXTS),
}


def told(fn: Any, values: pa.Array, vectorised: Any) -> str:
    with pytest.raises(PredicateError) as error:
        predicate(fn, name="p", columns=["c"], vectorised=vectorised).apply([values], len(values))
    return str(error.value)


@pytest.mark.parametrize("name", FOR_PANDAS)
def test_a_pandas_function_given_arrow_arrays_is_told_the_one_remedy(name: str) -> None:
    fn, values = FOR_PANDAS[name]
    text = told(fn, values, True)
    assert text.count("vectorised=") == 1
    assert 'write vectorised="pandas"' in text
    assert "after=" not in text
    assert "on_error" not in text
    assert len(predicate(fn, name="p", vectorised="pandas").apply([values], 4)) == 4


@pytest.mark.parametrize(
    ("name", "given"),
    [(name, True) for name in FOR_VALUES]
    # A Series compares as a value does.
    + [(name, "pandas") for name in FOR_VALUES if name != "one answer"],
)
def test_a_function_of_single_values_given_arrays_is_told_the_one_remedy(
    name: str, given: Any
) -> None:
    fn, values = FOR_VALUES[name]
    text = told(fn, values, given)
    assert text.count("vectorised=") == 1
    assert "vectorised=False" in text
    assert "after=" not in text
    assert len(predicate(fn, name="p", vectorised=False).apply([values], 4)) == 4


@pytest.mark.parametrize("given", [False, "pandas"])
def test_an_arrow_function_given_something_else_is_told_the_one_remedy(given: Any) -> None:
    assert "write vectorised=True" in told(lambda a: a.is_valid(), NUMBERS, given)
    if given == "pandas":
        assert "write vectorised=True" in told(lambda a: pc.less(a, 3), NUMBERS, given)


def test_a_pandas_function_given_single_values_is_told_the_one_remedy() -> None:
    assert 'write vectorised="pandas"' in told(lambda s: s.str.upper() == "X", TEXTS, False)


def test_walking_through_an_arrow_array_is_told_how_to() -> None:
    assert "use .to_pylist()" in told(lambda a: [v.lower() == "x" for v in a], TEXTS, True)
    assert "use .to_pylist()" in told(lambda a: [v > 3 for v in a], NUMBERS, True)


@pytest.mark.parametrize(
    ("fn", "given"),
    [
        (lambda a: a.no_such_thing(), True),
        (lambda a: pc.less(a, 3), True),
        (lambda v: v.lower() == "x", False),
        (lambda v: v < 1 / 0, False),
    ],
)
def test_other_errors_are_not_taken_for_a_wrong_use(fn: Any, given: bool) -> None:
    assert "vectorised=" not in told(fn, TEXTS, given)


def test_only_the_frames_of_the_function_are_shown_and_only_once() -> None:
    def inner(value: int) -> bool:
        return 1 / (value - 5) > 0

    def outer(value: int | None) -> bool:
        return value is not None and inner(value)

    text = told(outer, NUMBERS, False)
    assert re.findall(r"in (\w+)$", text, re.MULTILINE) == ["outer", "inner"]
    assert text.count("ZeroDivisionError: division by zero") == 1
    assert "Traceback" not in text
    assert "During handling" not in text


def test_what_the_function_itself_handled_is_shown() -> None:
    def looked_up(value: int) -> bool:
        try:
            return {1: True}[value]
        except KeyError as missing:
            raise ValueError(f"no {value}") from missing

    text = told(looked_up, pa.array([1, 2]), False)
    assert "KeyError: 2" in text
    assert "ValueError: no 2" in text


def test_the_advice_fits_the_error() -> None:
    fails = predicate(lambda v: 1 / v > 0, name="fails", vectorised=False)
    missing = predicate(
        lambda v: v > no_such_name,  # type: ignore[name-defined]  # noqa: F821
        name="missing",
        vectorised=False,
    )
    values = pa.array([1, 0])
    with pytest.raises(PredicateError, match=r"name that one in after=; to count and drop"):
        fails.apply([values], 2)
    with pytest.raises(PredicateError) as alone:
        fails.apply([values], 2, alone=True)
    assert "after=" not in str(alone.value)
    assert 'To count and drop such rows, run with on_error="drop".' in str(alone.value)
    with pytest.raises(PredicateError) as of_the_code:
        missing.apply([values], 2)
    assert "after=" not in str(of_the_code.value)
    assert "on_error" not in str(of_the_code.value)


def test_pandas_functions_get_series_with_nulls_as_pandas_has_them() -> None:
    seen: list[pd.Series] = []

    def keep(*series: pd.Series) -> np.ndarray:
        seen.extend(series)
        return np.ones(len(series[0]), bool)

    moments = pa.array([0, None, 1, 2], pa.timestamp("us", "UTC"))
    kept = predicate(keep, vectorised="pandas").apply([NUMBERS, TEXTS, moments], 4)
    assert kept.to_pylist() == [True] * 4
    numbers, texts, times = seen
    assert numbers.dtype == "float64"
    assert [bool(each.isna()[2]) for each in (numbers, texts)] == [True, True]
    assert times.isna().tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (pd.Series([True, False, None, True]), [True, False, None, True]),
        (pd.Series([True, False, pd.NA, True], dtype="boolean"), [True, False, None, True]),
        (pd.Series([True, False, True, True], index=[9, 8, 7, 6]), [True, False, True, True]),
        (np.array([True, False, True, True]), [True, False, True, True]),
        ([True, False, None, True], [True, False, None, True]),
    ],
)
def test_pandas_functions_may_return_a_series_an_array_or_a_list(
    result: Any, expected: list[bool | None]
) -> None:
    made = predicate(lambda s: result, name="p", vectorised="pandas")
    assert made.apply([NUMBERS], 4).to_pylist() == expected


def test_a_data_frame_is_no_result() -> None:
    frame = pd.DataFrame({"a": [True] * 4})
    assert "DataFrame of shape (4, 1), expected 4 values" in told(
        lambda s: frame, NUMBERS, "pandas"
    )
    assert "returned 1 values" in told(lambda s: s[s > 6] > 0, NUMBERS, "pandas")
