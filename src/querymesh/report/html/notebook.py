"""What notebooks show of the things people hold: a line, and a small picture where there is one."""

from __future__ import annotations

from html import escape

from querymesh.mesh.join_mesh import JoinMesh
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.placement.advice import Advice
from querymesh.query.model import Query
from querymesh.query.predicate.predicate import Predicate
from querymesh.query.render import to_text
from querymesh.report.explain import text_of
from querymesh.report.html.html_table import style, table_html
from querymesh.report.html.html_tree import tree_html
from querymesh.report.text.figures import micros, percent, seconds, times
from querymesh.runtime.run import Run


def mesh_html(mesh: Mesh) -> str:
    """The mesh: its tree and its operators."""
    return _small(f"Mesh of {mesh.headline}", mesh.why, _mesh(mesh))


def join_mesh_html(mesh: JoinMesh) -> str:
    """The meshes of a join, each stream's folded away but for its line."""
    streams = "".join(
        _folded(f"{alias}: {each.headline}", _mesh(each)) for alias, each in mesh.meshes.items()
    )
    return _small(f"Join of {', '.join(mesh.meshes)}", "", streams)


def run_html(run: Run) -> str:
    """A run: its mesh, and all that `explain()` says folded away."""
    picture = ""
    if run.tree is None and run.cube is None and not run.router_loops and run.plan_loop is None:
        picture = _mesh(run.view.mesh)
    problems = "".join(f"<li>{escape(problem)}</li>" for problem in run.problems)
    if problems:
        picture += f"<p>problems</p><ul>{problems}</ul>"
    told = _folded("explain()", f"<pre>{escape(text_of(run))}</pre>")
    return _small(f"Run of policy {run.policy} on engine {run.engine}", "", picture + told)


def query_html(query: Query) -> str:
    """The SQL, and its conditions one by one."""
    conditions = [(str(number), to_text(each)) for number, each in enumerate(query.conjuncts, 1)]
    listed = table_html(("#", "condition"), conditions, text=(1,)) if conditions else ""
    return _small("Query", "", f"<pre>{escape(query.sql.strip())}</pre>{listed}")


def predicate_html(predicate: Predicate) -> str:
    """The predicate with what the optimizer knows of it."""
    rows = [
        ("columns", ", ".join(predicate.columns) or "named where it is called"),
        ("called", "with whole arrays" if predicate.vectorised else "row by row"),
        ("cost", "measured" if predicate.cost_us is None else f"{micros(predicate.cost_us)} µs"),
        ("after", ", ".join(predicate.after) or "anything"),
    ]
    return _small(f"Predicate {predicate.name}", "", table_html(("", ""), rows, text=(0, 1)))


def advice_html(advice: Advice) -> str:
    """The answer, what is to be gained, and all the rest folded away."""
    gains = [
        (f"by {gain.by}", micros(gain.us), seconds(advice.job.seconds(gain.us)), gain.note)
        for gain in advice.gains
    ]
    table = table_html(("to be gained", "µs a row", "this job", ""), gains, text=(0, 3))
    picture = table if gains else ""
    title = f"{advice.verdict.value}: {advice.engine}"
    if advice.expected_us < advice.plain_us:
        title += f", {times(advice.plain_us / advice.expected_us)} as fast as plain Spark"
    told = _folded("explain()", f"<pre>{escape(text_of(advice))}</pre>")
    return _small(title, advice.why, picture + told)


def _mesh(mesh: Mesh) -> str:
    if not mesh.operators:
        return ""
    rows = [
        (str(number), op.name, micros(op.cost_us), percent(op.pass_rate))
        for number, op in enumerate(mesh.operators, 1)
    ]
    return tree_html(mesh) + table_html(("#", "operator", "µs a row", "passes"), rows, text=(1,))


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def _small(title: str, why: str, body: str) -> str:
    """A piece that brings its own style and touches nothing else of the notebook."""
    styled = f"<style>.querymesh {{\n{style('notebook.css')}{style('pieces.css')}}}</style>"
    said = f'<div class="quiet">{escape(why)}</div>' if why else ""
    return f'<div class="querymesh">{styled}<b>{escape(title)}</b>{said}{body}</div>'
