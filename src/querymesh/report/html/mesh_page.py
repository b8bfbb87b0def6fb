"""A mesh as one HTML file with everything in it: no network, no scripts, light and dark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TypedDict, Unpack

from querymesh.errors import QueryMeshError
from querymesh.fabric.core.metrics import Metrics
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.route import certain
from querymesh.report.comparison import Comparison, per_row
from querymesh.report.html import plots
from querymesh.report.html.html_table import style, table_html
from querymesh.report.html.html_tree import route_html, tree_html
from querymesh.report.live.progress import BatchProgress
from querymesh.report.text.figures import counted, micros, percent, times
from querymesh.report.text.run_text import metrics_text

TITLE = "Query mesh"


class PageParts(TypedDict, total=False):
    """What a page may show beside the mesh; `version` is the mesh's own in the metrics."""

    metrics: Metrics | None
    comparison: Comparison | None
    progress: Sequence[BatchProgress]
    title: str
    version: int | None


def write_mesh_page(mesh: Mesh, path: str | os.PathLike[str], **parts: Unpack[PageParts]) -> None:
    """Write the page; with metrics, a comparison or a stream's progress it shows those as well."""
    save_page(mesh_page(mesh, **parts), path)


def mesh_page(mesh: Mesh, **parts: Unpack[PageParts]) -> str:
    """The HTML of the page."""
    return page_of(parts.get("title", TITLE), mesh_sections(mesh, **parts))


def mesh_sections(
    mesh: Mesh,
    metrics: Metrics | None = None,
    comparison: Comparison | None = None,
    progress: Sequence[BatchProgress] = (),
    title: str = TITLE,
    version: int | None = None,
) -> list[str]:
    """The sections of a page on one mesh, empty where there is nothing to show."""
    return [
        _head(mesh, title),
        _section("Which data takes which route", tree_html(mesh)),
        _operators(mesh),
        _mesh_plots(mesh),
        _comparison(comparison) if comparison else "",
        _section("The stream", _progress(progress)) if len(progress) > 1 else "",
        _run(mesh, metrics, version) if metrics else "",
        _left_out(mesh),
    ]


def save_page(page: str, path: str | os.PathLike[str]) -> None:
    """Write a page to its file."""
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise QueryMeshError(f"cannot write the page to {path}: {error.strerror}") from error


def page_of(title: str, sections: Sequence[str]) -> str:
    """Sections as a page that needs nothing else."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>\n{style('page.css')}{style('pieces.css')}</style></head>\n"
        f"<body><main>\n{chr(10).join(filter(None, sections))}\n</main></body></html>\n"
    )


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _head(mesh: Mesh, title: str) -> str:
    trained = mesh.is_learned and bool(mesh.operators)
    tiles = [
        ("", str(len(mesh.routes)), "route" if mesh.is_single else "routes"),
        ("", f"{mesh.sample_rows:,}", "sampled rows"),
    ]
    if trained:
        tiles = [
            ("gain", times(mesh.gain), "expected gain over the best single route"),
            ("", f"{micros(mesh.expected_us)} µs", "expected a row, this mesh"),
            ("", f"{micros(mesh.single_us)} µs", "expected a row, best single route"),
            ("", f"{micros(mesh.bound_us)} µs", "clairvoyant bound"),
            *tiles,
        ]
    drawn = "".join(
        f'<div class="tile {kind}"><b>{escape(figure)}</b>'
        f'<span class="quiet">{escape(what)}</span></div>'
        for kind, figure, what in tiles
    )
    return (
        f'<h1>{escape(title)}</h1><p class="quiet">{escape(mesh.why)}</p>'
        f"<pre>{escape(mesh.query.sql.strip())}</pre>"
        f'<div class="tiles">{drawn}</div>'
    )


def _operators(mesh: Mesh) -> str:
    if not mesh.operators:
        return ""
    rows = [
        (str(k), op.name, micros(op.cost_us), percent(op.pass_rate), _after(op.after))
        for k, op in enumerate(mesh.operators, 1)
    ]
    table = table_html(("#", "operator", "µs an evaluation", "passes", "after"), rows, text=(1,))
    single = f"<p>Best single route: {route_html(mesh, certain(mesh.single))}</p>"
    return _section("Operators", f'<div class="panel scroll">{table}</div>{single}')


def _after(indices: frozenset[int]) -> str:
    return ", ".join(str(k) for k in sorted(indices))


def _mesh_plots(mesh: Mesh) -> str:
    if not mesh.is_learned or not mesh.operators:
        return ""
    drawn = [_figure("Cost and strictness of each operator", plots.operators(mesh))]
    if not mesh.is_single:
        caption = "Each kind of tuples on its own route and on the best single route"
        drawn.insert(0, _figure(caption, plots.leaf_costs(mesh)))
    return f'<section><div class="plots">{"".join(drawn)}</div></section>'


def _comparison(comparison: Comparison) -> str:
    rows = []
    for c in comparison.contenders:
        work = per_row(c.evaluations, comparison.rows)
        rows.append(
            (
                c.name,
                c.how,
                " ".join(f"{s:.2f}" for s in c.seconds),
                times(comparison.ratio(c)),
                "–" if work is None else f"{work:.2f}",
                f"{c.rows_out:,}",
            )
        )
    head = (
        "contender",
        "how it runs",
        "seconds, by round",
        "time",
        "evaluations a row",
        "rows out",
    )
    same = "the same rows" if comparison.same_results else "DIFFERENT rows: do not trust this"
    note = (
        f"<p>{counted(comparison.rows, 'row')} as a batch, "
        f"{counted(len(comparison.first.seconds), 'interleaved round')}; times are medians of the "
        f"ratios within a round. The same code against itself came to {times(comparison.control)}. "
        f"All contenders gave {same}.</p>"
    )
    table = f'<div class="panel scroll">{table_html(head, rows, text=(0, 1))}</div>'
    drawn = _figure("How often they had to look", plots.evaluations(comparison)) + _figure(
        "Time, and the control", plots.relative_times(comparison)
    )
    return _section("Comparison", f'{note}{table}<p></p><div class="plots">{drawn}</div>')


def _progress(batches: Sequence[BatchProgress]) -> str:
    rows = counted(sum(batch.num_input_rows for batch in batches), "row")
    caption = (
        f"{rows} in {len(batches)} batches; "
        "the dashed line is where the mesh changed, in the running query"
    )
    return f'<div class="plots">{_figure(caption, plots.progress(batches), "wide")}</div>'


def _run(mesh: Mesh, metrics: Metrics, version: int | None) -> str:
    return _section("The run", f"<pre>{escape(metrics_text(metrics, mesh, version))}</pre>")


def _left_out(mesh: Mesh) -> str:
    if not mesh.left_out:
        return ""
    rows = [(out.name, out.reason) for out in mesh.left_out]
    table = table_html(("column", "why it is no test attribute"), rows, text=(0, 1))
    return _section(
        "Columns the classifier does not ask about", f'<div class="panel">{table}</div>'
    )


def _figure(caption: str, svg: str, kind: str = "") -> str:
    return f'<figure class="panel {kind}"><figcaption>{escape(caption)}</figcaption>{svg}</figure>'
