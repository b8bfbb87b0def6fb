"""The tree of a mesh as nested lists: the page's picture of which data takes which route."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from itertools import count

from querymesh.classify.tree import Leaf, Tree, branches
from querymesh.mesh.mesh import Mesh
from querymesh.mesh.route import UncertainRoute
from querymesh.report.text.figures import leaf_name, micros, percent


def tree_html(mesh: Mesh) -> str:
    """The whole tree; leaves are numbered left to right, as in `mesh.leaves`."""
    return f'<ul class="tree">{_node(mesh, mesh.tree, "all rows", count())}</ul>'


def _node(mesh: Mesh, tree: Tree, label: str, numbers: Iterator[int]) -> str:
    text = f'<span class="test mono">{escape(label)}</span>'
    if isinstance(tree, Leaf):
        return f"<li>{text}{_leaf(mesh, next(numbers))}</li>"
    below = "".join(_node(mesh, branch, said, numbers) for said, branch in branches(tree))
    return f"<li>{text}<ul>{below}</ul></li>"


def _leaf(mesh: Mesh, leaf: int) -> str:
    stats = mesh.leaves[leaf]
    share = f'<div>{percent(stats.share)}<div class="track">{_bar(stats.share)}</div></div>'
    route = f'<div class="route">{route_html(mesh, mesh.leaf_choices[leaf])}</div>'
    badge = f'<div class="badge">{leaf_name(leaf)}</div>'
    return f'<div class="leaf">{badge}{share}{route}{_costs(mesh, leaf)}</div>'


def route_html(mesh: Mesh, steps: UncertainRoute) -> str:
    """A route as a row of chips, each with its operator's number and name; choices joined by |."""

    def chip(k: int) -> str:
        name = escape(mesh.operators[k - 1].name)
        return f'<span class="chip" title="{name}"><b>{k}</b>{name}</span>'

    chips = [" | ".join(map(chip, choice)) for choice in steps]
    return " › ".join(chips) or '<span class="quiet">straight to the output</span>'


def _costs(mesh: Mesh, leaf: int) -> str:
    stats = mesh.leaves[leaf]
    if math.isnan(stats.route_us) or not mesh.operators:
        return "<div></div>"
    longest = max((max(s.route_us, s.single_us) for s in mesh.leaves), default=0.0) or 1.0
    lines = [("", stats.route_us, "µs")]
    if not mesh.is_single:
        lines.append(("single", stats.single_us, "µs single"))
    drawn = "".join(
        f'<div class="track">{_bar(us / longest, kind)}</div><span>{micros(us)} {unit}</span>'
        for kind, us, unit in lines
    )
    return f'<div class="costs">{drawn}</div>'


def _bar(share: float, kind: str = "") -> str:
    return f'<div class="bar {kind}" style="width:{100 * min(max(share, 0), 1):.1f}%"></div>'
