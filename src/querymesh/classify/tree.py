"""The decision tree, as data: what it asks, where a tuple goes, and how it reads.

The tree is the classifier of a mesh (QM § 4.4). Its three readings must agree on every tuple:
`leaves_of` on Arrow arrays in the fabric, `as_condition` as an expression for Catalyst, `as_text`
for people. Where a classifier of another kind is asked (`classifier.py`), its classes are the ends
of a node: what Catalyst evaluates has none of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bools, Ints
from querymesh.classify.attributes import as_floats, null_mask
from querymesh.classify.classifier import Classifier, ColumnOf, classes_of
from querymesh.query.expr import Call, Column, Expr, Literal


@dataclass(frozen=True, slots=True)
class Threshold:
    """`attribute <= value`; NULL answers `null`. NaN, the greatest number, answers no."""

    attribute: str
    value: float
    null: bool


@dataclass(frozen=True, slots=True)
class Member:
    """`attribute IN values`; everything else answers no: NULL, and values the sample never had."""

    attribute: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """`attribute IS NULL`."""

    attribute: str


Test = Threshold | Member | Missing


@dataclass(frozen=True, slots=True)
class Leaf:
    """The end of a path. `label` is what the tree was induced to tell: for a mesh, a route."""

    label: int


@dataclass(frozen=True, slots=True)
class Split:
    """A test and its two answers."""

    test: Test
    yes: Tree
    no: Tree


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes that a classifier tells: class c ends at leaf `ends[c]`. Telling takes `us` a
    tuple."""

    classifier: Classifier
    ends: tuple[Leaf, ...]
    us: float


Tree = Leaf | Split | Classes

Label = TypeVar("Label")

FEW_VALUES = 16


def leaves(tree: Tree) -> Iterator[tuple[Leaf, int]]:
    """The leaves from left to right, each with the number of tests before it."""
    for leaf, tests, _ in _ends(tree, 0, 0.0):
        yield leaf, tests


def _ends(tree: Tree, tests: int, us: float) -> Iterator[tuple[Leaf, int, float]]:
    """The leaves, each with the tests before it and the time of classifiers asked on its path."""
    match tree:
        case Leaf():
            yield tree, tests, us
        case Split(_, yes, no):
            yield from _ends(yes, tests + 1, us)
            yield from _ends(no, tests + 1, us)
        case Classes(_, ends, own_us):
            for end in ends:
                yield end, tests, us + own_us


def paths_us(tree: Tree, node_us: float) -> Iterator[tuple[Leaf, float]]:
    """The leaves from left to right, each with what it takes to tell that a tuple belongs there,
    where a test takes `node_us`: c(DT | r) of QM eq. 2."""
    for leaf, tests, us in _ends(tree, 0, 0.0):
        yield leaf, tests * node_us + us


def relabelled(tree: Tree, labels: Sequence[int]) -> Tree:
    """The tree with these labels at its leaves, left to right.

    >>> relabelled(Split(Missing("a"), Leaf(0), Leaf(0)), [2, 1])
    Split(test=Missing(attribute='a'), yes=Leaf(label=2), no=Leaf(label=1))
    """
    remaining = iter(labels)

    def walk(node: Tree) -> Tree:
        if isinstance(node, Leaf):
            return Leaf(next(remaining))
        if isinstance(node, Classes):
            return replace(node, ends=tuple(Leaf(next(remaining)) for _ in node.ends))
        yes = walk(node.yes)
        return Split(node.test, yes, walk(node.no))

    return walk(tree)


def only_used(tree: Tree, routes: tuple[Label, ...]) -> tuple[Tree, tuple[Label, ...]]:
    """The tree and what its labels index, without what no leaf points to.

    >>> only_used(Split(Missing("a"), Leaf(2), Leaf(0)), ("x", "y", "z"))[1]
    ('z', 'x')
    """
    found = [leaf.label for leaf, _ in leaves(tree)]
    used = list(dict.fromkeys(found))
    labels = [used.index(label) for label in found]
    return relabelled(tree, labels), tuple(routes[label] for label in used)


def attributes_of(tree: Tree) -> frozenset[str]:
    """The columns the tree asks about."""
    asked = frozenset(test.attribute for test in tests_of(tree))
    return asked.union(*(classifier.columns for classifier in classifiers_of(tree)))


def tests_of(tree: Tree) -> Iterator[Test]:
    """Every test of the tree."""
    if isinstance(tree, Split):
        yield tree.test
        yield from tests_of(tree.yes)
        yield from tests_of(tree.no)


def classifiers_of(tree: Tree) -> Iterator[Classifier]:
    """Every classifier of another kind that the tree asks."""
    if isinstance(tree, Classes):
        yield tree.classifier
    elif isinstance(tree, Split):
        yield from classifiers_of(tree.yes)
        yield from classifiers_of(tree.no)


def answerable(test: Test, kind: pa.DataType) -> bool:
    """Whether a column of this type has answers to the test."""
    try:
        answers(test, pa.array([None], kind))
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return not isinstance(test, Threshold) or _is_number(kind)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def leaves_of(tree: Tree, column: ColumnOf, rows: int) -> list[Ints]:
    """The row numbers that reach each leaf, left to right; every row is in exactly one list."""
    if isinstance(tree, Leaf):
        return [np.arange(rows, dtype=np.int64)]
    found: list[Ints] = []
    _descend(tree, column, None, found, rows)
    return found


def _descend(tree: Tree, column: ColumnOf, here: Ints | None, found: list[Ints], rows: int) -> None:
    """`here` are the rows that reach the node; None at the root, which all of them reach."""
    if isinstance(tree, Leaf):
        assert here is not None
        found.append(here)
        return
    if isinstance(tree, Classes):
        found += _by_class(tree, column, here, rows)
        return
    values = column(tree.test.attribute)
    if here is not None:
        values = values.take(pa.array(here))
    yes = answers(tree.test, values)
    for below, positions in ((tree.yes, np.flatnonzero(yes)), (tree.no, np.flatnonzero(~yes))):
        _descend(below, column, positions if here is None else here[positions], found, rows)


def _by_class(node: Classes, column: ColumnOf, here: Ints | None, rows: int) -> list[Ints]:
    """The rows of each class, of those that are `here`."""
    of_node = column if here is None else lambda name: column(name).take(pa.array(here))
    every = np.arange(rows) if here is None else here
    told = classes_of(node.classifier, of_node, len(every), len(node.ends))
    return [every[told == number] for number in range(len(node.ends))]


def answers(test: Test, values: pa.Array) -> Bools:
    """The test on a column, as booleans."""
    match test:
        case Missing():
            return null_mask(values)
        case Member(_, wanted):
            return _is_among(values, pa.array(wanted, values.type))
        case Threshold(_, value, null):
            yes = as_floats(values) <= value
            return np.where(null_mask(values), null, yes) if values.null_count else yes


def _is_among(values: pa.Array, wanted: pa.Array) -> Bools:
    """Which values are among those wanted. A few whole numbers are compared one by one, which
    takes a tenth of the time of a hash table."""
    if not pa.types.is_integer(values.type) or len(wanted) > FEW_VALUES:
        return np.asarray(pc.is_in(values, value_set=wanted), dtype=bool)
    numbers = np.asarray(values.fill_null(0) if values.null_count else values)
    among = np.zeros(len(numbers), dtype=bool)
    for value in np.asarray(wanted):
        among |= numbers == value
    return among & ~null_mask(values) if values.null_count else among


def as_condition(test: Test, relation: str | None = None) -> Expr:
    """The test as a condition that is never NULL."""
    column = Column(relation, test.attribute)
    absent = Call("is null", (column,))
    match test:
        case Missing():
            return absent
        case Member(_, wanted):
            present = Call("not", (absent,))
            return Call("and", (present, Call("in", (column, *(Literal(v) for v in wanted)))))
        case Threshold(_, value, null):
            yes = Call("<=", (column, Literal(value)))
            if null:
                return Call("or", (absent, yes))
            return Call("and", (Call("not", (absent,)), yes))


def as_text(test: Test, answer: bool = True) -> str:
    """The test for people, as one of its answers: `price <= 10.5`, `sector not in {Tech}`."""
    name = test.attribute
    match test:
        case Missing():
            return f"{name} is NULL" if answer else f"{name} is not NULL"
        case Member(_, wanted):
            return f"{name} {'in' if answer else 'not in'} {_set_text(wanted)}"
        case Threshold(_, value, null):
            text = f"{name} {'<=' if answer else '>'} {value:g}"
            return f"{text} or NULL" if null and answer else text


def branches(node: Split | Classes) -> list[tuple[str, Tree]]:
    """The ways on from a node, each with what people read of it."""
    if isinstance(node, Split):
        return [(as_text(node.test, True), node.yes), (as_text(node.test, False), node.no)]
    return [(f"{node.classifier.kind} tells class {n}", end) for n, end in enumerate(node.ends)]


def _set_text(values: tuple[Any, ...], most: int = 6) -> str:
    names = [str(value) for value in values]
    shown = names[:most] + ([f"… {len(names) - most} more"] if len(names) > most else [])
    return "{" + ", ".join(shown) + "}"
