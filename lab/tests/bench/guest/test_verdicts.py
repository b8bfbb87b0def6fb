import pytest
from rich.console import Console

from querymesh.errors import QueryMeshError
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.guest import page
from querymesh_lab.bench.guest.verdicts import behind_percent, verdicts


def cell(name: str, kind: str, best: float, written: float, **more) -> dict:
    details = {
        "group": "g", "kind": kind, "rows": 1000, "ratio_best": best, "ratio_written": written,
        "ratio_again": 1.0, "ours_over_own": {"native": 1.0, "fabric": "cannot"}, "a_a": 1.01,
        "rival": "plain as written", "median_seconds": {"plain as written": 1.0},
        "engine": "native", "best_order": "2, 1", "plain_way": "SQL", **more,
    }  # fmt: skip
    return Finding(name, "c", best, "×", "at least", 0.95, details, timed=True).as_row("command")


def broken(name: str, word: str) -> dict:
    details = {"group": "g", "kind": "regex", word: "why"}
    return Finding(name, word, 0.0, "×", details=details).as_row("command")


CELLS = [cell("a", "sql", 1.0, 1.2), cell("b", "regex", 4.0, 6.0), cell("c", "python", 2.0, 5.0)]


def by_claim(rows: list[dict]) -> dict[str, Finding]:
    return {finding.claim: finding for finding in verdicts(rows)}


def test_targets_are_judged_against_the_rivals_best_form_and_as_written():
    found = by_claim(CELLS)
    strict = found["plain Spark in its best form over where: lowest of 3 cases"]
    assert (strict.value, strict.met, strict.details["decided_by"]) == (1.0, True, "a")
    assert found["plain Spark in its best form over where: median of 3 cases"].value == 2.0
    python = [f for claim, f in found.items() if "1 python cases" in claim]
    assert [(f.value, f.met) for f in python] == [(2.0, False), (5.0, True)]


def test_a_case_that_failed_counts_as_nothing_and_one_skipped_not_at_all():
    claims = by_claim([*CELLS, broken("d", "failed"), broken("e", "skipped")])
    lowest = claims["plain Spark in its best form over where: lowest of 4 cases"]
    assert (lowest.value, lowest.met, lowest.details["below_target"]) == (0.0, False, ["d"])


def test_the_engine_chosen_is_compared_with_the_faster_of_our_own():
    slow = cell("s", "sql", 1.0, 1.0, ours_over_own={"native": 0.9, "fabric": 1.4})
    assert behind_percent(slow) == pytest.approx(40)
    assert behind_percent(CELLS[0]) == 0
    found = by_claim([*CELLS, slow])["the engine chosen behind the best of our own, at most"]
    assert not found.met
    assert found.details == {"decided_by": "s", "above_target": ["s"]}


def test_worst_to_chosen_must_be_ahead_of_the_best_of_the_others():
    others = {"where": 2.0, "duckdb": {"ratio": 1.5}, "datafusion": {"ratio": 2.5}}
    (found,) = [
        f for f in verdicts([cell("correlation 73", "regex", 4.0, 4.0, worst_to_chosen=others)])
        if f.claim.startswith("correlation 73")
    ]  # fmt: skip
    assert (found.value, found.limit, found.met) == (2.0, 2.5, False)


def test_a_table_read_whole_is_found_out():
    rows = [cell("p", "regex", 4.0, 4.0, partitions_pruned=kept) for kept in (True, False)]
    found = by_claim(rows)["partitioned tables of which only the needed folders are read"]
    assert (found.value, found.met) == (50.0, False)


def test_the_page_gets_every_case_and_the_later_of_two_runs():
    first_task = Finding(
        "first task", "c", 0.4, "s", "at most", 1.0,
        {"group": "first task", "rows": 5, "a_a": 1.0, "median_seconds": {"plain Spark": 0.2}},
    ).as_row("command")  # fmt: skip
    again = cell("a", "sql", 0.5, 0.6)
    rows = page.merged([[*CELLS, broken("d", "failed")], [again, first_task]])
    text = page.written_into(f"# Title\n{page.BEGIN}\nold\n{page.END}\nafter\n", rows)
    assert text.startswith("# Title\n")
    assert text.endswith("after\n")
    assert "old" not in text
    lines = [line for line in text.splitlines() if line.startswith(("| a |", "| d |", "| first"))]
    lines.sort()
    assert len(lines) == 3
    assert "0.50" in lines[0]
    assert "not met" in lines[0]
    assert "failed: why" in lines[1]
    assert "0.40 s later; met" in lines[2]
    assert {line.count(" | ") for line in lines} == {len(page.HEAD) - 1}
    with pytest.raises(QueryMeshError, match="no place for tables"):
        page.written_into("# Title", rows)


def test_runs_are_laid_together_in_the_order_of_the_grid_and_quick_ones_refused():
    late, early = cell("drift 80", "sql", 1.0, 1.0), cell("costsel 1", "regex", 4.0, 4.0)
    assert [row["case"] for row in page.merged([[late], [early]])] == ["costsel 1", "drift 80"]
    early["details"]["command"] = "querymesh bench guest --quick"
    with pytest.raises(QueryMeshError, match="costsel 1: run with --quick"):
        page.merged([[late], [early]])


def test_people_see_both_tables():
    console = Console(record=True, width=400)
    page.print_rows(CELLS, console)
    text = console.export_text()
    assert "best/ours" in text
    assert "median of 3 cases" in text
