"""The facts of predicate_eval: how many queries, and how many rows each condition keeps."""

import duckdb
import pyarrow as pa
import pytest

from querymesh_lab.bench.guest.cases import predicate_eval
from querymesh_lab.bench.guest.cases.predicate_eval import (
    CASES,
    FACTORS,
    FIVE_MARKERS,
    LEAST_ROWS,
    THREE_MARKERS,
    Marker,
)
from querymesh_lab.bench.guest.condition import Condition, label
from querymesh_lab.bench.guest.other_orders import ENGINES, in_dialect

_, DUCKDB = ENGINES["duckdb"]
BY_NAME = {case.name: case for case in CASES}


def share(table: pa.Table, *conditions: Condition | str) -> float:
    """The share of rows that all conditions keep, by DuckDB."""
    asked = [c if isinstance(c, str) else in_dialect(c, DUCKDB) for c in conditions]
    query = f"SELECT avg(CAST({' AND '.join(asked)} AS INT)) FROM t"
    row = duckdb.connect().register("t", table).execute(query).fetchone()
    assert row is not None
    return float(row[0])


def test_there_are_26_queries_under_the_numbers_of_the_benchmark():
    numbers = [int(case.name.split()[-1]) for case in CASES]
    assert len(CASES) == 26
    assert sorted(numbers) == [
        1, 2, 3, 10, 11, 20, 21, 30, 31, 32, 33, 40, 41, 42, 50, 51, 52, 53, 60, 61, 70, 71, 72,
        73, 80, 81,
    ]  # fmt: skip


@pytest.mark.parametrize("marker", [*FIVE_MARKERS, *THREE_MARKERS], ids=lambda m: m.text)
def test_a_marker_stands_in_exactly_its_share_of_the_rows(marker: Marker):
    made = (
        predicate_eval.five_markers(LEAST_ROWS)
        if marker in FIVE_MARKERS
        else predicate_eval.cheap_and_costly(LEAST_ROWS)
    )
    assert share(made, f"regexp_matches(s, '{marker.pattern}')") == pytest.approx(marker.share)


def test_markers_have_the_shares_of_the_benchmark():
    shares = {marker.text: marker.share for marker in (*FIVE_MARKERS, *THREE_MARKERS)}
    assert shares == {
        "aaa": 0.9, "bbb": 0.86, "ccc": 0.8, "ddd": 0.75, "rare": 0.001, "ten": 0.1,
    }  # fmt: skip


def test_fillers_grow_and_shares_stay():
    for width in predicate_eval.WIDTHS.values():
        table = predicate_eval.five_markers(LEAST_ROWS, width)
        assert len(table.column("s")[0].as_py()) > 5 * width
        found = [share(table, c) for c in BY_NAME["width 40"].conditions]
        assert found == pytest.approx([0.9, 0.86, 0.8, 0.75, 0.001])


def test_sixteen_columns_are_uniform_below_100():
    table = predicate_eval.sixteen(LEAST_ROWS)
    for k in range(len(FACTORS)):
        counts = table.column(f"c{k}").value_counts()
        assert len(counts) == 100
        assert {entry["counts"].as_py() for entry in counts} == {LEAST_ROWS // 100}


def test_the_selective_regex_is_last_in_one_query_and_first_in_the_next():
    first, second = BY_NAME["costsel 1"].conditions, BY_NAME["costsel 2"].conditions
    assert set(first) == set(second)
    assert "are'" in label(first[-1])
    assert first[-1] == second[0]


@pytest.mark.parametrize(("number", "count"), [(30, 1), (31, 3), (32, 7), (33, 15)])
def test_cardinality_has_that_many_conditions_of_90_before_one_of_5(number: int, count: int):
    table = predicate_eval.sixteen(LEAST_ROWS)
    shares = [share(table, c) for c in BY_NAME[f"cardinality {number}"].conditions]
    assert shares == pytest.approx([0.9] * count + [0.05])


@pytest.mark.parametrize("number", [60, 61])
def test_neutral_conditions_keep_as_many_rows_each(number: int):
    table = predicate_eval.alike(LEAST_ROWS)
    shares = [share(table, c) for c in BY_NAME[f"neutral {number}"].conditions]
    assert shares == pytest.approx([0.5] * 4)


def test_pairs_are_the_same_opposite_and_independent():
    table = predicate_eval.correlated(LEAST_ROWS)
    together = {n: share(table, *BY_NAME[f"correlation {n}"].conditions) for n in (70, 71, 72)}
    assert together == pytest.approx({70: 0.3, 71: 0.0, 72: 0.09})


def test_only_joint_outcomes_tell_the_fourth_text_from_the_others():
    table = predicate_eval.hidden(LEAST_ROWS)
    first, *regexes = BY_NAME["correlation 73"].conditions
    assert [share(table, c) for c in (first, *regexes)] == pytest.approx([0.3] * 5)
    assert [share(table, first, c) for c in regexes] == pytest.approx([0.3, 0.3, 0.3, 0.09])


def test_shares_turn_round_after_the_first_tenth():
    table = predicate_eval.drifting(LEAST_ROWS)
    tenth = LEAST_ROWS // 10
    early, late = table.slice(0, tenth), table.slice(tenth)
    assert [share(early, "a_sel = 0"), share(early, "b_sel = 0")] == pytest.approx([0.001, 0.5])
    assert [share(late, "a_sel = 0"), share(late, "b_sel = 0")] == pytest.approx([0.5, 0.001])
    assert BY_NAME["drift 80"].conditions == BY_NAME["drift 81"].conditions[::-1]


def test_others_orders_are_measured_where_the_issue_is_the_order():
    assert [case.name for case in CASES if case.orders_of_others] == [
        "correlation 73", "drift 80", "drift 81",
    ]  # fmt: skip
