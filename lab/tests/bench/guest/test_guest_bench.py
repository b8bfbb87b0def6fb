"""The grid, and some of its cells end to end on small data."""

import pytest

import querymesh as qm
from querymesh.errors import QueryMeshError
from querymesh_lab.bench.data.real_folder import DATA
from querymesh_lab.bench.guest import contest, guest_bench
from querymesh_lab.bench.guest.cases import durations, tpch
from querymesh_lab.bench.guest.guest_bench import GRID, GROUPS, chosen, run_guest

CONTENDERS = {
    contest.WRITTEN, contest.BEST, contest.OURS, contest.AGAIN, "A/A control",
}  # fmt: skip


def test_the_grid_has_every_family_and_no_name_twice():
    assert GROUPS == (
        "predicate_eval", "security", "tpch", "partitioned", "durations", "first task",
    )  # fmt: skip
    names = [cell.name for cell in GRID]
    assert len(set(names)) == len(names) == 26 + 21 + 4 + 3 + 9 + 1


def test_security_is_asked_in_sql_python_and_both():
    kinds = {
        (cell.name.split()[0], cell.name.split()[1]) for cell in GRID if cell.group == "security"
    }
    for data in ("csic", "kdd", "weblog", "honeypot"):
        assert {(data, how) for how in ("sql", "rows", "arrays", "mixed")} <= kinds


def test_cases_and_groups_are_chosen_by_name():
    assert [cell.name for cell in chosen(["drift 80"], None)] == ["drift 80"]
    assert len(chosen(None, ["tpch"])) == 4
    assert len(chosen(["drift 80"], ["tpch"])) == 5
    assert chosen(None, None) == list(GRID)
    with pytest.raises(QueryMeshError, match=r"unknown case 'drift 8'.*did you mean 'drift 8[01]'"):
        chosen(["drift 8"], None)
    with pytest.raises(QueryMeshError, match="unknown group 'tpcds'"):
        chosen(None, ["tpcds"])


def test_rows_for_a_duration_lie_on_the_line_through_two_sizes():
    assert durations.rows_for(1, (1000, 3000), (0.5, 1.5)) == 2000
    assert durations.rows_for(0.1, (1000, 3000), (0.5, 1.5)) == 1000
    assert durations.rows_for(60, (1000, 3000), (0.5, 0.5)) == durations.MOST_ROWS


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_a_case_of_python_functions_is_measured_whole(spark, monkeypatch):
    monkeypatch.setattr(durations, "QUICK_ROWS", 400)
    said: list[str] = []
    saved: list[int] = []
    rows = run_guest(True, ["1 s python"], None, said.append, lambda done: saved.append(len(done)))
    row, at = rows[0], rows[0]["details"]
    assert "failed" not in at, at
    assert row["value"] == at["ratio_best"] > 0
    assert row["target"] == "≥ 3 ×"
    assert row["met"] == (row["value"] >= 3)
    assert set(at["median_seconds"]) >= CONTENDERS
    assert at["rows"] == durations.QUICK_ROWS
    assert at["engine"] in ("fabric", "native", "plain")
    assert at["plain_way"] in at["plain_ways_seconds"]
    assert sorted(at["best_order"].split(", ")) == ["1", "2", "3", "4"]
    assert len(at["selectivities"]) == 4
    assert {"native", "fabric"} == set(at["ours_over_own"])
    assert {row["case"] for row in rows[1:]} == {"all"}
    assert saved == [len(rows)]
    assert any("1 of 1" in line for line in said)


def test_a_case_written_to_the_noop_sink_keeps_its_partitions(spark):
    (row, *_) = run_guest(True, ["week mixed"], None, lambda _: None)
    assert "failed" not in row["details"], row["details"]
    assert isinstance(row["details"]["partitions_pruned"], bool)
    assert row["details"]["sink"] == "noop"


def test_the_first_task_is_seen_from_within(spark):
    (row,) = run_guest(True, ["first task"], None, lambda _: None)
    assert "failed" not in row["details"], row["details"]
    assert row["target"] == "≤ 1 s"
    assert all(seconds > 0 for seconds in row["details"]["median_seconds"].values())


def test_what_is_not_here_is_skipped_and_said(spark, monkeypatch, tmp_path):
    monkeypatch.setenv(DATA, str(tmp_path))
    monkeypatch.setattr(tpch.shutil, "which", lambda _: None)
    monkeypatch.setattr(tpch.sys, "executable", str(tmp_path / "python"))
    said: list[str] = []
    rows = run_guest(True, ["kdd sql", "lineitem Q6"], None, said.append)
    assert [row["details"]["skipped"] for row in rows] == [
        f"no KDD connections here; {DATA}=folder says where the data are",
        "no tpchgen-cli here; pip install 'querymesh-lab[tpch]' brings it",
    ]
    assert sum("skipped" in line for line in said) == 2


def test_a_cell_that_fails_is_reported_and_the_others_run(spark, monkeypatch):
    def refuse(*conditions, **options):
        raise QueryMeshError("not today")

    monkeypatch.setattr(qm, "where", refuse)
    rows = run_guest(True, ["drift 80", "drift 81"], None, lambda _: None)
    cells = [row for row in rows if row["case"] != "all"]
    assert [row["details"]["failed"] for row in cells] == ["QueryMeshError: not today"] * 2
    assert not any(row["met"] for row in cells)
    assert not any(row["met"] for row in rows if "lowest" in row["claim"])


def test_a_where_with_other_rows_is_found_out(spark, monkeypatch):
    monkeypatch.setattr(qm, "where", lambda *conditions, **options: lambda df: df)
    monkeypatch.setattr(guest_bench.contest.qm, "inspect", lambda out: _Told())
    rows = run_guest(True, ["drift 80"], None, lambda _: None)
    assert rows[0]["details"]["failed"].startswith("RivalsDisagreeError: where answered 20000")


class _Told:
    engine = "none"

    def explain(self) -> str:
        return ""
