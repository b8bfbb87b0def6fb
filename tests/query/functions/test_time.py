import datetime as dt

import pyarrow as pa
import pytest

from meaning import computed, value_of
from querymesh.errors import UnsupportedError

MOMENT = dt.datetime(2023, 12, 31, 20, 15, 42, 999999, tzinfo=dt.UTC)
PARTS = ("year", "month", "day", "hour", "minute", "second")


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", [2023, 12, 31, 20, 15, 42]),
        ("Asia/Kolkata", [2024, 1, 1, 1, 45, 42]),
        ("-05:00", [2023, 12, 31, 15, 15, 42]),
        (None, [2023, 12, 31, 20, 15, 42]),
    ],
)
def test_parts_are_read_in_the_zone_of_the_column(zone: str | None, expected: list[int]) -> None:
    bare = pa.array([MOMENT.replace(tzinfo=None), None], pa.timestamp("us"))
    t = bare if zone is None else pa.array([MOMENT, None], pa.timestamp("us", zone))
    for part, value in zip(PARTS, expected, strict=True):
        assert computed(f"{part}(t)", t=t) == [value, None]


@pytest.mark.parametrize(
    ("zone", "clock"),
    [("+05:30", "2024-01-01 01:45:42"), ("-03:00", "2023-12-31 17:15:42")],
)
def test_a_moment_in_words_is_read_in_the_offset_of_the_column(zone: str, clock: str) -> None:
    t = pa.array([MOMENT.replace(microsecond=0)], pa.timestamp("us", zone))
    assert computed(f"t = '{clock}'", t=t) == [True]
    assert computed("t = '2023-12-31 20:15:42+00:00'", t=t) == [True]


def test_a_zone_with_seconds_in_its_offset_is_read_to_the_second() -> None:
    # Until 1906 Kolkata was 5:53:28 ahead of Greenwich.
    early = pa.array([dt.datetime(1854, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "Asia/Kolkata"))
    assert computed("hour(t)", t=early) == [5]
    assert computed("minute(t)", t=early) == [53]
    assert computed("second(t)", t=early) == [28]


def test_dates_and_null_have_parts_too() -> None:
    d = pa.array([dt.date(1969, 12, 31), None])
    assert [computed(f"{part}(d)", d=d) for part in PARTS[:3]] == [
        [1969, None], [12, None], [31, None],
    ]  # fmt: skip
    assert [value_of(f"{part}(NULL)") for part in PARTS] == [None] * 6


@pytest.mark.parametrize(
    "sql",
    [
        "hour(TIMESTAMP '2024-03-10 02:30:00')",
        "hour(TIMESTAMP '2024-03-10 02:30:00+01:00')",
        "CAST(TIMESTAMP '2024-03-10 02:30:00' AS DATE)",
        "CAST(TIMESTAMP '2024-03-10 02:30:00+01:00' AS DATE)",
        "coalesce(TIMESTAMP '2024-03-10 02:30:00', NULL)",
        "n < TIMESTAMP '2024-03-10 02:30:00'",
        "d < TIMESTAMP '2024-03-10 02:30:00'",
        "d < TIMESTAMP '2024-03-10 00:00:00+01:00'",
    ],
)
def test_what_depends_on_the_sessions_zone_is_left_to_spark(sql: str) -> None:
    n = pa.array([dt.datetime(2024, 3, 10, 2, 45)], pa.timestamp("us"))
    with pytest.raises(UnsupportedError, match=r"session|no meaning that all engines share"):
        computed(sql, n=n, d=pa.array([dt.date(2024, 3, 10)]))


def test_literals_beside_zoneless_times_and_dates_are_readings_of_the_clock() -> None:
    n = pa.array([dt.datetime(2024, 3, 10, 2, 30), None], pa.timestamp("us"))
    d = pa.array([dt.date(2024, 3, 10), None])
    assert computed("n = '2024-03-10 02:30:00'", n=n) == [True, None]
    assert computed("n = TIMESTAMP_NTZ '2024-03-10 02:30:00'", n=n) == [True, None]
    assert computed("n > d", n=n, d=d) == [True, None]
    assert computed("d = '2024-03-10 23:00:00'", d=d) == [True, None], "its time is left out"
    assert computed("d = TIMESTAMP '2024-03-10 00:00:00'", d=d) == [True, None]
