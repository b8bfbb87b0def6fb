"""Rows of the grid repeat as the real tables do; what a clairvoyant pays is known."""

import pyarrow as pa
import pytest

from querymesh_lab.bench.costly import inputs
from querymesh_lab.bench.costly.cells import orders
from querymesh_lab.bench.data import reviews
from querymesh_lab.bench.data.real_folder import data_folder, holds

needs_reviews = pytest.mark.skipif(
    not holds(data_folder(), reviews.FILES), reason="no reviews here"
)


def test_all_rows_of_an_input_are_taken_or_none() -> None:
    table = pa.table({"id": range(300), "kind": [f"kind {row % 60}" for row in range(300)]})
    drawn = inputs.whole_kinds(table, ["kind"], 50)
    assert drawn.num_rows == 50
    assert inputs.distinct(inputs.inputs_of(drawn, ["kind"])) == 10
    assert drawn.column("id").to_pylist() == sorted(drawn.column("id").to_pylist())


def test_one_flood_is_not_the_whole_table() -> None:
    kinds = ["flood"] * 900 + [f"kind {row}" for row in range(100)]
    drawn = inputs.whole_kinds(pa.table({"id": range(1000), "kind": kinds}), ["kind"], 100)
    assert drawn.column("kind").to_pylist().count("flood") <= 10


def test_an_input_of_several_columns_is_a_list() -> None:
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    assert inputs.inputs_of(table, ["a", "b"]) == [[1, "x"], [2, "y"]]
    assert inputs.inputs_of(table, ["b"]) == ["x", "y"]


@pytest.mark.parametrize("asked", inputs.ASKED, ids=lambda asked: asked.name)
def test_every_question_holds_for_some_real_rows_and_not_for_others(asked: inputs.Asked) -> None:
    if not holds(data_folder(), asked.files):
        pytest.skip(f"no {asked.name} here")
    table = asked.rows(640)
    assert 0 < asked.found(table) < table.num_rows == 640


@needs_reviews
def test_reviews_have_the_columns_of_their_films() -> None:
    rows = orders.distinct_reviews(None)
    assert len(rows) == 1_864
    assert {row["rating"] for row in rows} >= {"R", "PG-13"}
    assert 0.7 < sum(row["positive"] for row in rows) / len(rows) < 0.8


def test_the_clairvoyant_asks_the_cheapest_question_that_does_not_hold() -> None:
    limits = orders.prices([[True, True, True], [True, False, False], [False, True, False]])
    assert limits[()] == 7 + 2 + 1
    assert limits[0, 1, 2] == 7 + 3 + 1
    assert limits[2, 1, 0] == 7 + 4 + 4
