import time

import pyarrow as pa
import pytest

from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.row_predicate import RowPredicate
from querymesh_lab.bench.guest.cases import predicate_eval
from querymesh_lab.bench.guest.condition import Sql, matches
from querymesh_lab.bench.guest.other_orders import (
    ENGINES,
    _measured,
    forced,
    in_dialect,
    orders_of_others,
)
from querymesh_lab.bench.guest.tables import stored


@pytest.mark.parametrize("engine", ENGINES)
def test_a_forced_order_keeps_the_rows_of_the_query_as_written(engine: str, tmp_path):
    table = pa.table({"id": range(100), "s": [f"n{k}" for k in range(100)]})
    start, regex = ENGINES[engine]
    ask = start(stored(table, tmp_path / "t").folder)
    texts = [in_dialect(c, regex) for c in (Sql("id < 50"), matches("s", "[48]$"))]
    assert ask(" AND ".join(texts)) == ask(forced(texts)) == ask(forced(texts[::-1])) == 10


def test_only_sql_runs_on_other_engines():
    with pytest.raises(TypeError, match="only SQL runs on other engines, not f"):
        in_dialect(RowPredicate("f", ("id",), bool), "")


def test_each_engine_has_a_ratio_of_worst_to_chosen(tmp_path):
    folder = stored(predicate_eval.drifting(20_000), tmp_path / "t").folder
    found = orders_of_others(folder, predicate_eval.CASES[-1].conditions, Bench(quick=True))
    assert set(found) == set(ENGINES)
    for of in found.values():
        assert of["ratio"] > 0
        assert {of["worst_forced"], of["best_forced"]} == {"1, 2", "2, 1"}
        assert of["worst_written"] in ("1, 2", "2, 1")


def test_the_price_of_a_forced_order_itself_does_not_count():
    """An engine whose CASE takes ten times as long in any order gains nothing by choosing."""

    def ask(condition: str) -> int:
        time.sleep(0.2 if "CASE" in condition else 0.02)
        return 1

    of = _measured(ask, ["a", "b"], Bench(quick=True))
    assert of["median_seconds"]["worst forced"] > 5 * of["median_seconds"]["chosen"]
    assert of["ratio"] < 5
