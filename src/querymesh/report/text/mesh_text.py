"""A mesh as text: what `mesh.explain()` prints.

Every line stands for something that decides: an operator with what it costs and lets through, a
test with both answers, a leaf with its route and what that route saves, a column that was no use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from textwrap import indent

from querymesh.classify.tree import Leaf, Tree, branches, classifiers_of
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.route import uncertain_text
from querymesh.query.aggregate import aggregate_text
from querymesh.report.text.figures import leaf_name, micros, percent, table, times
from querymesh.stats.profile import route_text


def mesh_text(mesh: Mesh) -> str:
    """The whole mesh for people: operators, tree, expected cost, and why it is what it is."""
    parts = [f"mesh of {mesh.headline}"]
    if mesh.operators:
        parts += ["operators", indent(_operators(mesh), "  ")]
    legends = [_tree(mesh), *classifiers_legend(mesh), stages_legend(mesh)]
    legend = "\n".join(filter(None, legends))
    parts += ["tree", indent(legend, "  ")]
    parts += ["cost", indent(_cost(mesh), "  ")]
    if mesh.query.aggregate is not None:
        parts += ["on top", indent(aggregate_text(mesh.query.aggregate), "  ")]
    if mesh.left_out:
        rows = [(out.name, out.reason) for out in mesh.left_out]
        width = max(len(name) for name, _ in rows)
        listing = "\n".join(f"{name.ljust(width)}  {reason}" for name, reason in rows)
        parts += ["columns left out as test attributes", indent(listing, "  ")]
    first, *rest = parts
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return "\n\n".join([first, *(f"{title}\n{body}" for title, body in pairs)])


def _operators(mesh: Mesh) -> str:
    rows = [
        (
            str(index),
            op.name,
            micros(op.cost_us),
            percent(op.pass_rate),
            ", ".join(str(k) for k in sorted(op.after)),
        )
        for index, op in enumerate(mesh.operators, 1)
    ]
    if any(op.after for op in mesh.operators):
        return table(("#", "operator", "µs a row", "passes", "after"), rows, left=(1, 4))
    head = ("#", "operator", "µs a row", "passes")
    return table(head, [row[:4] for row in rows], left=(1,))


def _tree(mesh: Mesh) -> str:
    """The tree with its leaves' figures set in columns to the right of it."""
    lines = list(_branches(mesh.tree, "all rows", "", ""))
    trunk = max(len(text) for text, _ in lines)
    route_width = max(len(route_of_leaf(mesh, leaf)) for leaf in range(len(mesh.leaves)))
    drawn, leaf = [], 0
    for text, is_leaf in lines:
        if not is_leaf:
            drawn.append(text)
            continue
        figures = _leaf(mesh, leaf, route_width)
        drawn.append(f"{text.ljust(trunk)}   {figures}".rstrip())
        leaf += 1
    return "\n".join(drawn)


def _branches(tree: Tree, label: str, stem: str, below: str) -> Iterator[tuple[str, bool]]:
    """Each line of the tree, and whether it is a leaf. `stem` leads to this node, `below` on."""
    yield f"{stem}{label}", isinstance(tree, Leaf)
    if isinstance(tree, Leaf):
        return
    *others, (last_text, last) = branches(tree)
    for text, branch in others:
        yield from _branches(branch, text, f"{below}├─ ", f"{below}│  ")
    yield from _branches(last, last_text, f"{below}└─ ", f"{below}   ")


def route_of_leaf(mesh: Mesh, leaf: int) -> str:
    """`2 > 3|1 > 4` where the order of 3 and 1 is left to a lottery (QM § 5.4); `4 > [1 > 3] > 2`
    where 1 and 3 run in Python and the others in Catalyst."""
    if mesh.stages is not None and not mesh.uncertain:
        return mesh.stages.text(mesh, leaf) or "straight to the output"
    return uncertain_text(mesh.leaf_choices[leaf], " > ") or "straight to the output"


def classifiers_legend(mesh: Mesh) -> list[str]:
    """What each classifier that is no tree looks at."""
    asked = [(each.kind, ", ".join(each.columns)) for each in classifiers_of(mesh.tree)]
    return [f"{kind}: a class by all of {columns}" for kind, columns in asked]


def stages_legend(mesh: Mesh) -> str:
    """What brackets in a route mean; empty where there are none."""
    if mesh.stages is None or not any(mesh.stages.crossing):
        return ""
    inside = mesh.stages.in_python(mesh)
    if len(inside) == len(mesh.operators) and len(set(mesh.stages.splits)) == 1:
        return "[…]: in Python, on Arrow batches; nothing is left to Catalyst"
    return "[…]: in Python, on Arrow batches; what stands before and after it, in Catalyst"


def _leaf(mesh: Mesh, leaf: int, route_width: int) -> str:
    stats = mesh.leaves[leaf]
    route = route_of_leaf(mesh, leaf).ljust(route_width)
    text = f"{leaf_name(leaf)}  {percent(stats.share):>7}   {route}"
    if math.isnan(stats.route_us) or not mesh.operators:
        return text
    if mesh.is_single:
        return f"{text}   {micros(stats.route_us)} µs"
    return f"{text}   {micros(stats.route_us):>6} µs, single route {micros(stats.single_us):>6} µs"


def _cost(mesh: Mesh) -> str:
    """Expected microseconds a row: this mesh, its best single route, and what nobody can beat."""
    if not mesh.is_learned or not mesh.operators:
        return mesh.why
    single = f"single route {route_text(mesh.single)}"
    rows = [
        ("this mesh", micros(mesh.expected_us), "" if mesh.is_single else times(mesh.gain)),
        (single, micros(mesh.single_us), ""),
        ("clairvoyant bound", micros(mesh.bound_us), ""),
    ]
    head = ("", "µs a row", "" if mesh.is_single else "gain")
    lines = [table(head, rows, left=(0,)), f"why: {mesh.why}"]
    if mesh.found_by:
        lines.append(f"found by: {mesh.found_by}")
    if mesh.accuracy is not None:
        lines.append(f"accuracy: {percent(mesh.accuracy)} on tuples the sample does not hold")
    return "\n".join(lines)
