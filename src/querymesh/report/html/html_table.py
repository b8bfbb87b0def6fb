"""Rows under a head as an HTML table, and the styles that go with it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files


def table_html(head: Sequence[str], rows: Sequence[Sequence[str]], text: Sequence[int] = ()) -> str:
    """The table; columns in `text` are set to the left, all others as numbers."""

    def line(cells: Sequence[str], tag: str) -> str:
        drawn = (
            f"<{tag}{' class=text' if i in text else ''}>{escape(cell)}</{tag}>"
            for i, cell in enumerate(cells)
        )
        return f"<tr>{''.join(drawn)}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table>"


def style(name: str) -> str:
    """A style sheet of this folder."""
    return files("querymesh.report.html").joinpath(name).read_text(encoding="utf-8")
