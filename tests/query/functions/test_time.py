import datetime as dt

import pyarrow as pa
import pytest

from meaning import computed, value_of

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
