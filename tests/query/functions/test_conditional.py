import datetime as dt
import math

import pyarrow as pa
import pytest

from meaning import computed, value_of

B = pa.array([True, False, None])
K = pa.array([1, 2, None])
DAY = dt.date(2024, 1, 1)


def test_case_takes_the_first_arm_that_holds() -> None:
    assert computed("CASE WHEN b THEN 1 END", b=B) == [1, None, None]
    assert computed("CASE WHEN b THEN 1 ELSE 2 END", b=B) == [1, 2, 2]
    both = "CASE WHEN b THEN 1 WHEN k > 0 THEN 2 ELSE 3 END"
    assert computed(both, b=B, k=K) == [1, 2, 3]
    assert computed("CASE WHEN TRUE THEN k WHEN b THEN 9 END", b=B, k=K) == [1, 2, None]
    assert computed("CASE WHEN b THEN 1 WHEN k = 2 THEN 0.5 END", b=B, k=K) == [1.0, 0.5, None]
    assert computed("CASE k WHEN 2 THEN 'two' ELSE 'other' END", k=K) == ["other", "two", "other"]
    assert computed("if(b, k, 7)", b=B, k=K) == [1, 7, 7]


def test_the_first_value_that_is_there() -> None:
    assert computed("coalesce(k, 5)", k=K) == [1, 2, 5]
    assert computed("coalesce(k)", k=K) == [1, 2, None]
    assert computed("coalesce(NULL, k, 0.5)", k=K) == [1.0, 2.0, 0.5]
    assert computed("nullif(k, 2)", k=K) == [1, None, None]
    assert computed("nullif(k, NULL)", k=K) == [1, 2, None]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("coalesce(d, '2024-01-31')", [DAY, dt.date(2024, 1, 31)]),
        ("nullif(d, '2024-01-01')", [None, None]),
        ("greatest(d, '2024-01-31')", [dt.date(2024, 1, 31)] * 2),
        ("least(d, '2024-01-31')", [DAY, dt.date(2024, 1, 31)]),
        ("d = '2024-01-01'", [True, None]),
        ("d IN ('2024-01-01')", [True, None]),
        ("d BETWEEN '2024-01-01' AND '2024-01-31'", [True, None]),
    ],
)
def test_a_text_beside_a_date_is_read_as_one(sql: str, expected: list[object]) -> None:
    assert computed(sql, d=pa.array([DAY, None])) == expected


def test_the_greatest_and_the_least_leave_null_out_and_have_nan_last() -> None:
    x, y = pa.array([1.0, math.nan, None, None, 2.0]), pa.array([3.0, 5.0, 5.0, None, 2.0])
    assert computed("greatest(x, y)", x=x, y=y) == [3.0, "nan", 5.0, None, 2.0]
    assert computed("greatest(y, x)", x=x, y=y) == [3.0, "nan", 5.0, None, 2.0]
    assert computed("least(x, y)", x=x, y=y) == [1.0, 5.0, 5.0, None, 2.0]
    assert computed("least(y, x, 1.5)", x=x, y=y) == [1.0, 1.5, 1.5, 1.5, 1.5]
    assert value_of("greatest(2, 7, 5)") == 7
