import datetime as dt
import math

import pyarrow as pa
import pytest

from meaning import computed, value_of
from querymesh.query.functions.comparison import aligned

NAN = math.nan
ORDERED = [-math.inf, -1.0, 0.0, 1.0, math.inf, NAN]
"""In SQL's order: NaN is the greatest and equals itself."""


@pytest.mark.parametrize(
    ("op", "holds"),
    [
        ("=", lambda i, j: i == j),
        ("<>", lambda i, j: i != j),
        ("<", lambda i, j: i < j),
        ("<=", lambda i, j: i <= j),
        (">", lambda i, j: i > j),
        (">=", lambda i, j: i >= j),
        ("<=>", lambda i, j: i == j),
    ],
)
def test_doubles_compare_with_nan_as_the_greatest(op, holds) -> None:
    pairs = [(i, j) for i in range(6) for j in range(6)]
    x, y = (pa.array([ORDERED[pair[side]] for pair in pairs]) for side in (0, 1))
    assert computed(f"x {op} y", x=x, y=y) == [holds(i, j) for i, j in pairs]
    for j, text in enumerate(("-1.0", "0", "1.0"), start=1):
        expected = [holds(i, j) for i in range(6)]
        assert computed(f"x {op} {text}", x=pa.array(ORDERED)) == expected
        mirrored = [holds(j, i) for i in range(6)]
        assert computed(f"{text} {op} x", x=pa.array(ORDERED)) == mirrored
    nan = "CAST('NaN' AS DOUBLE)"
    assert computed(f"x {op} {nan}", x=pa.array(ORDERED)) == [holds(i, 5) for i in range(6)]
    assert computed(f"{nan} {op} x", x=pa.array(ORDERED)) == [holds(5, i) for i in range(6)]


def test_null_takes_part_as_unknown() -> None:
    b = pa.array([True, False, None])
    assert computed("b AND NULL", b=b) == [None, False, None]
    assert computed("b OR NULL", b=b) == [True, None, None]
    assert computed("b AND TRUE AND b", b=b) == [True, False, None]
    assert computed("b OR FALSE OR b", b=b) == [True, False, None]
    assert computed("b = NULL", b=b) == [None] * 3
    assert computed("b <=> NULL", b=b) == [False, False, True]
    assert computed("b BETWEEN NULL AND FALSE", b=b) == [False, None, None]
    assert value_of("NULL = NULL") is None
    assert value_of("NULL <=> NULL") is True


def test_between_has_both_its_bounds() -> None:
    k = pa.array([0, 1, 2, 3, 4, None])
    assert computed("k BETWEEN 1 AND 3", k=k) == [False, True, True, True, False, None]
    assert computed("k NOT BETWEEN 1 AND 3", k=k) == [True, False, False, False, True, None]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("x IN (1, 2)", [True, False, False, False, None]),
        ("x IN (1, NULL)", [True, None, None, None, None]),
        ("x IN (0)", [False, True, True, False, None]),
        ("x IN (1, 0)", [True, True, True, False, None]),
        ("x IN (-0.0)", [False, True, True, False, None]),
        ("x IN (CAST('NaN' AS DOUBLE), 5)", [False, False, False, True, None]),
        ("x IN (NULL)", [None] * 5),
        ("x IN (y, 7)", [True, True, True, True, None]),
        ("x NOT IN (1, NULL)", [False, None, None, None, None]),
        ("1 IN (x, 7)", [True, False, False, False, None]),
    ],
)
def test_membership_knows_both_zeros_nan_and_null(sql: str, expected: list[object]) -> None:
    x = pa.array([1.0, 0.0, -0.0, NAN, None])
    assert computed(sql, x=x, y=x) == expected


def test_dates_and_timestamps_compare_as_moments() -> None:
    days = pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2), None])
    noon = dt.datetime(2024, 1, 1, 12)
    bare = pa.array([noon] * 3, pa.timestamp("us"))
    assert computed("t > d", t=bare, d=days) == [True, False, None]
    zoned = pa.array([noon.replace(tzinfo=dt.UTC)] * 3, pa.timestamp("us", "Asia/Tokyo"))
    assert computed("t > d", t=zoned, d=days) == [True, False, None]
    assert computed("d <= t", t=zoned, d=days) == [True, False, None]
    elsewhere = zoned.cast(pa.timestamp("us", "America/New_York"))
    assert computed("t = u", t=zoned, u=elsewhere) == [True] * 3


def test_a_text_beside_a_date_and_a_timestamp_is_read_as_a_moment() -> None:
    d, t = pa.array([dt.date(2024, 1, 1)]), pa.array([dt.datetime(2024, 1, 2)], pa.timestamp("us"))
    assert computed("'2024-01-01 12:00:00' BETWEEN d AND t", d=d, t=t) == [True]
    assert computed("'2024-01-02 12:00:00' BETWEEN d AND t", d=d, t=t) == [False]


def test_a_repeated_midnight_is_the_first() -> None:
    zone = "America/Sao_Paulo"  # on 17 February 2018 the clock went from 24:00 back to 23:00
    days = pa.array([dt.date(2018, 2, 18)])
    midnight = pa.array([dt.datetime(2018, 2, 18, 3, tzinfo=dt.UTC)], pa.timestamp("us", zone))
    assert computed("t = d", t=midnight, d=days) == [True]


def test_values_that_do_not_compare_are_an_error() -> None:
    t, s, d = pa.array([None], pa.timestamp("us")), pa.array(["a"]), pa.array([None], pa.date32())
    for args in ((t, s), (s, d), (t, d, s)):
        with pytest.raises(TypeError, match="do not compare"):
            aligned(*args)
