from __future__ import annotations

import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import meshes
from querymesh.classify.tree import Leaf, Member, Split
from querymesh.errors import QueryMeshError, SetupError
from querymesh.report.comparison import Comparison, Contender
from querymesh.report.html import plots
from querymesh.report.html.mesh_page import mesh_page, write_mesh_page
from querymesh.report.live.progress import BatchProgress

HOSTILE = "<script>alert('&')</script>"
COMPARISON = Comparison(
    1000,
    (
        Contender("mesh", "three routes", (1.0, 2.0, 1.0), 10, "ff", 1500),
        Contender("plain", HOSTILE, (2.0, 3.0, 4.0), 10, "ff", None),
    ),
    (1.1, 2.0, 1.0),
)
STREAM = [BatchProgress(i, 100, 50.0, 80.0, 2.5, i // 2, 1 + i // 2) for i in range(4)]


class Balance(HTMLParser):
    """Counts what is opened and not closed."""

    VOID = frozenset({"meta", "br", "path", "rect", "line", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def check(page: str) -> None:
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    assert balance.links == [], "the page must stand alone"
    assert "<script" not in page


def test_a_page_with_everything_is_whole_and_stands_alone() -> None:
    page = mesh_page(
        meshes.three_kinds(),
        metrics=meshes.a_run(),
        comparison=COMPARISON,
        progress=STREAM,
        title="Stocks & more",
    )
    check(page)
    assert page.count("<svg") == 5
    assert "Stocks &amp; more" in page


@pytest.mark.parametrize("make", [meshes.one_route, meshes.untrained, meshes.no_operators])
def test_a_mesh_without_a_choice_still_makes_a_page(make) -> None:  # type: ignore[no-untyped-def]
    page = mesh_page(make())
    check(page)
    assert "nan" not in page.lower()


def test_text_of_the_user_is_escaped_wherever_it_appears() -> None:
    mesh = meshes.three_kinds()
    operators = tuple(replace(op, name=HOSTILE) for op in mesh.operators)
    tree = Split(Member("sector", (HOSTILE,)), Leaf(0), Leaf(1))
    query = replace(mesh.query, sql=HOSTILE)
    hostile = replace(
        mesh, query=query, operators=operators, tree=tree, leaves=mesh.leaves[:2], why=HOSTILE
    )
    check(mesh_page(hostile, metrics=meshes.a_run(), title=HOSTILE))


def test_the_page_is_written_to_its_path(tmp_path: Path) -> None:
    write_mesh_page(meshes.three_kinds(), tmp_path / "mesh.html")
    assert (tmp_path / "mesh.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(QueryMeshError, match="nowhere"):
        write_mesh_page(meshes.untrained(), tmp_path / "nowhere" / "mesh.html")


def test_missing_plots_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    plots.altair_and_converter.cache_clear()
    with pytest.raises(SetupError, match=r"pip install 'querymesh\[report\]'"):
        mesh_page(meshes.three_kinds())


def test_ratios_are_medians_within_rounds() -> None:
    assert COMPARISON.ratio(COMPARISON.contenders[1]) == 2.0
    assert COMPARISON.control == 1.0
    assert COMPARISON.same_results
    figures = COMPARISON.as_json()
    assert figures["contenders"][0]["evaluations_per_row"] == 1.5
    assert figures["contenders"][1]["evaluations_per_row"] is None
