import io
import json

import pytest
from rich.console import Console

from querymesh.errors import QueryMeshError
from querymesh_lab.papers import papers, rows_text
from querymesh_lab.papers.claim import Claim, Result

GAIN = Result(Claim("qm", "10a", "output rate", 1.44), 1.5, 1.01, "by processor time")
KEPT = Result(
    Claim("cbr", "6", "calls", 5.0, "%", "at most", 0.0, "project"), 4.0, half_interval=0.25,
    fitted="the streams", limit=3.0,
)  # fmt: skip
CELL = Result(
    Claim("qm", "10 grid", "3 kinds", None), 1.2, 1.01,
    details={"cell": {"kinds": 3, "rows": 20_000, "× single": 1.234}},
)  # fmt: skip


def rows(*results):
    return [result.as_row("a command") for result in results]


def test_markdown_has_a_table_of_claims_and_the_notes_below():
    text = rows_text.markdown(rows(GAIN, KEPT))
    assert text.splitlines()[:4] == [
        "| figure | claim | paper | here | limit | A/A | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| 10a | output rate | 1.44 × | 1.5 × |  | 1.01 | exceeds |",
        "| 6 | calls | ≤ 5 % (ours) | 4 ± 0.25 % | 3 % |  | exceeds, fitted |",
    ]
    assert "- 10a output rate: by processor time" in text
    assert "- 6 calls: fitted: the streams" in text


def test_a_note_of_many_claims_names_their_figures():
    many = [Result(Claim("qm", "11", f"claim {n}", None), 1.0, note="one note") for n in range(3)]
    assert "- 11, 3 rows: one note" in rows_text.markdown(rows(*many))


def test_cells_of_a_grid_have_a_table_of_their_own():
    text = rows_text.markdown(rows(GAIN, CELL))
    assert "| kinds | rows | × single | verdict |" in text
    assert "| 3 | 20,000 | 1.23 | direction |" in text
    assert "| 10 grid |" not in text


def test_people_see_the_same_words():
    console = Console(width=200, file=io.StringIO())
    rows_text.print_rows(rows(GAIN, KEPT, CELL), console)
    shown = console.file.getvalue()
    assert "qm 10a" in shown
    assert "exceeds, fitted" in shown
    assert "3 kinds" in shown


def test_rows_of_several_files_are_put_together_and_the_later_counts(tmp_path):
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_text(json.dumps(rows(GAIN, KEPT)))
    later = Result(GAIN.claim, 1.7, 1.0)
    second.write_text(json.dumps(rows(later, CELL)))
    found = papers.read_rows("qm", [first, second])
    assert [(row["figure"], row["our_value"]) for row in found] == [("10a", 1.7), ("10 grid", 1.2)]
    assert len(papers.read_rows("all", [first, second])) == 3
    assert [row["figure"] for row in papers.read_rows("all", [first], ["6"])] == ["6"]


def test_a_file_without_rows_is_named(tmp_path):
    with pytest.raises(QueryMeshError, match="nowhere"):
        papers.read_rows("qm", [tmp_path / "nowhere.json"])
