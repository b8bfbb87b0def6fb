import pytest

from querymesh.errors import QueryError
from querymesh.query.model import Window
from querymesh.query.parse.query import query
from querymesh.query.render import to_text

SECOND = 1_000_000
HOUR = 3600 * SECOND


def windows_of(sql: str) -> list[Window | None]:
    return [relation.window for relation in query(sql).relations]


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("[RANGE 60 SECONDS]", Window("range", 60 * SECOND)),
        ("[range 1 hour]", Window("range", HOUR)),
        ("[1 hour]", Window("range", HOUR)),
        ("[RANGE 250 ms]", Window("range", 250_000)),
        ("[RANGE 0.5 s]", Window("range", SECOND // 2)),
        ("[RANGE 2 days]", Window("range", 48 * HOUR)),
        ("[RANGE 10 microseconds]", Window("range", 10)),
        ("[RANGE 3 min]", Window("range", 180 * SECOND)),
        ("[ROWS 100]", Window("rows", 100)),
        ("[ROWS 100 rows]", Window("rows", 100)),
    ],
)
def test_windows_are_read_after_a_name_or_an_alias(written: str, window: Window) -> None:
    assert windows_of(f"SELECT * FROM News{written}") == [window]
    assert windows_of(f"SELECT * FROM News AS n {written} WHERE n.a = 1") == [window]
    assert windows_of(f"SELECT * FROM Stock s, News n {written}") == [None, window]
    assert windows_of(f"SELECT * FROM News {written} AS n JOIN u ON n.a = u.a") == [window, None]


@pytest.mark.parametrize(
    ("units", "size_us"),
    [
        ("us microsecond microseconds", 1),
        ("ms millisecond milliseconds", 1_000),
        ("s sec secs second seconds", SECOND),
        ("min minute minutes", 60 * SECOND),
        ("h hour hours", HOUR),
        ("d day days", 24 * HOUR),
    ],
)
def test_units_of_time(units: str, size_us: int) -> None:
    for unit in units.split():
        assert windows_of(f"SELECT * FROM t [RANGE 3 {unit}]") == [Window("range", 3 * size_us)]


def test_a_trailing_window_is_for_every_relation_without_its_own() -> None:
    sql = "SELECT * FROM Stock s, News n [ROWS 5] WHERE s.a = n.a WINDOW 60 seconds"
    assert windows_of(sql) == [Window("range", 60 * SECOND), Window("rows", 5)]
    assert windows_of("SELECT * FROM Stock WINDOW 10000;") == [Window("rows", 10000)]


def test_brackets_elsewhere_are_not_windows() -> None:
    (output,) = query("SELECT x[0] FROM t").outputs or ()
    assert to_text(output.expr) == "x[0]"
    joined = query("SELECT * FROM t JOIN u [ROWS 5] ON t.a = x[1]")
    assert [to_text(each) for each in joined.conjuncts] == ["t.a = x[1]"]
    assert joined.relations[1].window == Window("rows", 5)
    distinct = query("SELECT extract(day FROM d) FROM t WHERE a IS DISTINCT FROM x[1]")
    assert [to_text(each) for each in distinct.conjuncts] == ["a IS DISTINCT FROM x[1]"]
    assert query("SELECT '[ROWS 5]' AS w FROM t").relations[0].window is None


@pytest.mark.parametrize(
    ("sql", "said", "column"),
    [
        ("SELECT * FROM t [RANGE 0 SECONDS]", "must be positive", 24),
        ("SELECT * FROM t [ROWS -5]", "must be positive", 23),
        ("SELECT * FROM t [RANGE 5 parsecs]", "unknown unit 'parsecs'", 26),
        ("SELECT * FROM t [RANGE 5]", "5 of what", 24),
        ("SELECT * FROM t [ROWS 5 seconds]", "takes no unit", 25),
        ("SELECT * FROM t [ROWS 2.5]", "whole number", 23),
        ("SELECT * FROM t [RANGE SECONDS]", "a window is", 17),
        ("SELECT * FROM t []", "a window is", 17),
        ("SELECT * FROM t [RANGE 5 SECONDS", "not closed", 17),
        ("SELECT * FROM t WINDOW 60 parsecs", "unknown unit", 27),
        ("SELECT * FROM t WINDOW 0", "must be positive", 24),
        ("SELECT * FROM t [RANGE 0.4 us]", "at least a microsecond", 24),
        ("SELECT * FROM t [RANGE 1e400 SECONDS]", "write a smaller number", 24),
        ("SELECT * FROM t [RANGE 1e300 DAYS]", "write a smaller number", 24),
        ("SELECT * FROM t [ROWS 1e400]", "write a smaller number", 23),
    ],
)
def test_a_bad_window_is_shown_where_it_stands(sql: str, said: str, column: int) -> None:
    with pytest.raises(QueryError, match=f"(?s){said}.*column {column}\n"):
        query(sql)


def test_positions_after_a_window_stay_right() -> None:
    with pytest.raises(QueryError, match=r"column 48\n  SELECT \* FROM t \[RANGE"):
        query("SELECT * FROM t [RANGE 60 SECONDS] WHERE t.a = = 3")
