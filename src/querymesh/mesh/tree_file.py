"""The classifier of a mesh as JSON: a decision tree, and classifiers of other kinds in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from querymesh.classify.classifier import ClassifierKind, CountsClasses
from querymesh.classify.classifiers import CLASSIFIERS
from querymesh.classify.tree import Classes, Leaf, Member, Missing, Split, Threshold, Tree
from querymesh.errors import MeshFileError
from querymesh.mesh.json_reader import Reader, read_object

MOST_DEPTH = 64


def tree_to_json(tree: Tree) -> dict[str, Any]:
    """The tree as nested JSON objects."""
    if isinstance(tree, Leaf):
        return {"route": tree.label}
    if isinstance(tree, Classes):
        told = {"kind": tree.classifier.kind, "learned": tree.classifier.to_json(), "us": tree.us}
        return {"classifier": told, "routes": [end.label for end in tree.ends]}
    match tree.test:
        case Threshold(attribute, value, null):
            test: dict[str, Any] = {"attribute": attribute, "at_most": value, "null": null}
        case Member(attribute, values):
            test = {"attribute": attribute, "in": list(values)}
        case Missing(attribute):
            test = {"attribute": attribute, "missing": True}
    return {"test": test, "yes": tree_to_json(tree.yes), "no": tree_to_json(tree.no)}


def tree_from_json(entry: Any, learners: Sequence[ClassifierKind] = (), depth: int = 0) -> Tree:
    """The tree that `tree_to_json` gave; `learners` read classifiers of other kinds than ours."""
    read = read_object(entry, "the tree")
    if depth > MOST_DEPTH:
        raise MeshFileError(f"the tree is deeper than {MOST_DEPTH}")
    if "route" in entry:
        return Leaf(read.get("route", int))
    if "classifier" in entry:
        return _classes(read, learners)
    test = read_object(read.get("test", dict), "a test")
    attribute = test.get("attribute", str)
    content = entry["test"]
    if "at_most" in content:
        value = test.float_("at_most")
        if not math.isfinite(value):
            raise MeshFileError(f"a test: 'at_most' is {content['at_most']!r}, not a finite number")
        made: Any = Threshold(attribute, value, test.get("null", bool))
    elif "in" in content:
        values = test.list_("in")
        if not all(isinstance(v, bool | int | str) for v in values):
            raise MeshFileError(f"a test: 'in' holds {values!r}, not plain values")
        made = Member(attribute, tuple(values))
    elif "missing" in content:
        made = Missing(attribute)
    else:
        raise MeshFileError(f"a test has neither 'at_most', 'in' nor 'missing': {content!r}")
    return Split(
        made,
        tree_from_json(entry.get("yes"), learners, depth + 1),
        tree_from_json(entry.get("no"), learners, depth + 1),
    )


def _classes(read: Reader, learners: Sequence[ClassifierKind]) -> Classes:
    content = read_object(read.get("classifier", dict), "the classifier")
    kind, us = content.get("kind", str), content.float_("us")
    known = {**CLASSIFIERS, **{each.kind: each for each in learners}}
    if kind not in known:
        raise MeshFileError(
            f"the mesh asks a classifier of kind {kind!r}, which is none of ours: give what makes "
            "them, classifiers=[...]"
        )
    routes = read.list_("routes")
    if len(routes) < 2 or any(type(label) is not int for label in routes) or not us >= 0:
        raise MeshFileError(
            "the classifier: 'routes' must hold a route for each of two or more classes, and 'us' "
            "the time of telling one"
        )
    try:
        made = known[kind].from_json(content.get("learned", dict))
    except (ValueError, TypeError, KeyError) as problem:
        raise MeshFileError(f"the classifier of kind {kind!r}: {problem}") from problem
    if isinstance(made, CountsClasses) and made.class_count > len(routes):
        raise MeshFileError(
            f"the classifier of kind {kind!r} tells {made.class_count} classes, but 'routes' has "
            f"{len(routes)}: it must have one for each"
        )
    return Classes(made, tuple(Leaf(label) for label in routes), us)
