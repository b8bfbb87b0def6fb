"""The join core measured without Spark: every policy on every case gives the same results."""

from pathlib import Path

import pytest

import querymesh_lab
from querymesh.errors import QueryMeshError
from querymesh_lab.bench.joins import core_bench, core_worker
from querymesh_lab.bench.measure import silent

HERE = Path(querymesh_lab.__file__).parents[3]


@pytest.mark.parametrize("case", core_worker.CASES)
def test_a_small_grid_has_a_row_for_every_policy(case):
    rows = core_bench.run_core_grid(quick=True, cases=[case], log=silent)
    assert [row["claim"] for row in rows] == [*core_worker.POLICIES]
    assert len({row["details"]["results"] for row in rows}) == 1
    assert all(row["value"] > 0 for row in rows)


def test_an_earlier_release_runs_beside_this_one():
    rows = core_bench.run_core_grid(quick=True, cases=["5-way skewed"], log=silent, before=HERE)
    by_name = {row["claim"]: row["details"] for row in rows}
    assert by_name["mesh"]["times_as_fast_as_before"] > 0
    assert by_name["before: mesh"]["results"] == by_name["mesh"]["results"]


def test_a_case_that_is_not_there_is_named():
    with pytest.raises(QueryMeshError, match="5-way skewed"):
        core_bench.run_core_grid(quick=True, cases=["5-way skewd"], log=silent)
