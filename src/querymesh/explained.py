"""What people can ask to explain itself. Who draws it is imported when asked: see `report/explain`.

This is the one place where a lower room reaches up to `report/`.
"""

from __future__ import annotations

import os


class Shown:
    """Has a small picture of itself for notebooks, beside the one line of its `repr`."""

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from querymesh.report.explain import html_of

        return html_of(self)


class Explained(Shown):
    """Has `explain()`: itself as text and, where there is one, as an HTML page."""

    def explain(self, html: str | os.PathLike[str] | None = None) -> str:
        """What this is, as text; with `html=` it is also written as one page that needs no network.

        Pages with plots need the `report` extra.
        """
        from querymesh.report.explain import text_of, write_page

        if html is not None:
            write_page(self, html)
        return text_of(self)

    def __str__(self) -> str:
        return self.explain()


class Drawn(Explained):
    """Has `draw()` too: itself as an SVG file."""

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Write a picture of this, as SVG."""
        from querymesh.report.explain import write_drawing

        write_drawing(self, path)


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 route`, `1,200 rows`.

    >>> counted(1, "route"), counted(1200, "row")
    ('1 route', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(text: str, most: int = 100) -> str:
    """A text on one line, cut where it is long.

    >>> one_line("SELECT *\\n  FROM t"), one_line("abcdefgh", most=4)
    ('SELECT * FROM t', 'abc…')
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
