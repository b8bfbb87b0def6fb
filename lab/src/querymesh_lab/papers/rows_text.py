"""Rows of `querymesh reproduce` as a table for people, and as Markdown for the documentation.

A row whose details have a `cell` is one cell of a grid: it stands in a table of its own figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

Rows = Sequence[dict[str, Any]]

FEW = 2
"""Claims that a note names; of more it names the figures."""

COLOURS = {
    "exceeds": "green",
    "overshoots": "magenta",
    "direction": "yellow",
    "undecided": "dim",
    "contradicts": "red",
    "not yet": "dim",
}
HEAD = ("figure", "claim", "paper", "here", "limit", "A/A", "verdict")


def print_rows(rows: Rows, console: Console) -> None:
    """The rows as a table for people, with the notes below."""
    table = Table(title="querymesh reproduce", title_justify="left")
    for name in HEAD:
        wide = name in ("claim", "verdict")
        right = name in ("paper", "here", "limit", "A/A")
        table.add_column(
            name, overflow="fold" if wide else "ellipsis", justify="right" if right else "left"
        )
    for row in rows:
        *words, verdict = _words(row)
        table.add_row(*words, f"[{COLOURS[row['verdict']]}]{verdict}[/]")
    console.print(table)
    for note, claims in _noted(rows).items():
        console.print(Text(f"{'; '.join(claims)}: {note}"), soft_wrap=True)


def markdown(rows: Rows) -> str:
    """The rows as tables for the documentation: the claims, and a table for each grid."""
    claims = [row for row in rows if "cell" not in row["details"]]
    parts = []
    if claims:
        parts.append(_pipes(HEAD, [[*_words(row, paper=False)] for row in claims]))
    grids: dict[tuple[str, tuple[str, ...]], list[dict[str, Any]]] = {}
    for row in rows:
        if "cell" in row["details"]:
            key = (row["figure"], tuple(row["details"]["cell"]))
            grids.setdefault(key, []).append(row)
    for (figure, names), cells in grids.items():
        lines = [
            [*(_cell_text(row["details"]["cell"][name]) for name in names), _verdict(row)]
            for row in cells
        ]
        parts.append(f"Figure {figure}\n\n" + _pipes((*names, "verdict"), lines))
    notes = [f"- {'; '.join(of)}: {note}" for note, of in _noted(claims).items()]
    return "\n\n".join([*parts, "\n".join(notes)]).strip()


def _pipes(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *lines))


def _words(row: dict[str, Any], paper: bool = True) -> Iterator[str]:
    """What a row says under `HEAD`."""
    unit = f" {row['unit']}".rstrip()
    yield f"{row['paper']} {row['figure']}" if paper else row["figure"]
    yield row["claim"]
    bound = {"at least": "≥ ", "at most": "≤ "}.get(row["sense"], "")
    ours = " (ours)" if row["whose"] == "project" else ""
    stated = row["paper_value"]
    yield "–" if stated is None else f"{bound}{stated:g}{unit}{ours}"
    half = row["half_interval"]
    around = "" if half is None else f" ± {shown(half)}"
    yield "–" if row["our_value"] is None else f"{shown(row['our_value'])}{around}{unit}"
    yield "" if row["limit"] is None else f"{shown(row['limit'])}{unit}"
    yield "" if row["a_a"] is None else f"{row['a_a']:.2f}"
    yield _verdict(row)


def _verdict(row: dict[str, Any]) -> str:
    return f"{row['verdict']}, fitted" if row["fitted"] else str(row["verdict"])


def _cell_text(value: object) -> str:
    if isinstance(value, float):
        return shown(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def shown(value: float) -> str:
    """Three digits; five from a hundred on, where three would leave no place behind the point.

    >>> shown(1.4444), shown(697.524)
    ('1.44', '697.52')
    """
    return f"{value:.5g}" if abs(value) >= 100 else f"{value:.3g}"


def _noted(rows: Rows) -> dict[str, list[str]]:
    """The notes and what was fitted, each with the claims it belongs to, or their figures if there
    are many of them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for note in (row["note"], row["fitted"] and f"fitted: {row['fitted']}"):
            if note:
                found.setdefault(note, []).append(row)
    return {
        note: [f"{row['figure']} {row['claim']}" for row in of]
        if len(of) <= FEW
        else [f"{figure}, {len([row for row in of if row['figure'] == figure])} rows"
              for figure in dict.fromkeys(row["figure"] for row in of)]
        for note, of in found.items()
    }  # fmt: skip
