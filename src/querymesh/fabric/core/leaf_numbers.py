"""The classifier compiled: the leaf of each tuple, in one pass over the tests it meets.

A test reads a column of numbers; what is no number, or may be NULL, is answered by Arrow before, as
`classify.tree.leaves_of` does, and read as a column of answers. Tests are numbered depth first::

    kind = 3 ?                    nodes   0  MEMBER     column 0    yes 1  no 2
      yes  leaf 0                         1  LEAF 0
      no   price <= 10.5 ?                2  THRESHOLD  column 1    yes 3  no 4
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from querymesh.arrays import Array, Floats, Ints
from querymesh.classify.attributes import as_floats
from querymesh.classify.tree import FEW_VALUES, Leaf, Member, Test, Threshold, Tree, answers
from querymesh.index.kernels.compiled import (
    FLOATS,
    INT,
    INTS,
    INTS_OUT,
    Whole,
    address_reader,
    kernel,
    value_at,
)
from querymesh.index.store.partition import address

LEAF, THRESHOLD, MEMBER, ANSWERED = 0, 1, 2, 3
N_KIND, N_COLUMN, N_BEGIN, N_END, N_YES, N_NO, N_WIDTH = 0, 1, 2, 3, 4, 5, 6

Column = Callable[[str], pa.Array]


@address_reader("int64")
def number_at(address: int, index: Whole) -> int:
    """The whole number at an index of the array at an address."""
    return int(value_at("int64", address, index))


@address_reader("float64")
def float_at(address: int, index: Whole) -> float:
    """The number at an index of the array at an address."""
    return float(value_at("float64", address, index))


@address_reader("uint8")
def byte_at(address: int, index: Whole) -> int:
    """The byte at an index of the array at an address."""
    return int(value_at("uint8", address, index))


@kernel(INTS, FLOATS, INTS, INTS, INT, INTS_OUT)
def walk(nodes: Ints, limits: Floats, values: Ints, columns: Ints, rows: int, leaves: Ints) -> None:
    """Each row from the root to its leaf."""
    for row in range(rows):
        at = 0
        while nodes[at * N_WIDTH + N_KIND] != LEAF:
            of = at * N_WIDTH
            kind = nodes[of + N_KIND]
            column = columns[nodes[of + N_COLUMN]]
            yes = False
            if kind == THRESHOLD:
                yes = float_at(column, row) <= limits[at]
            elif kind == MEMBER:
                number = number_at(column, row)
                for n in range(nodes[of + N_BEGIN], nodes[of + N_END]):
                    yes |= values[n] == number
            else:
                yes = byte_at(column, row) != 0
            at = nodes[of + N_YES] if yes else nodes[of + N_NO]
        leaves[row] = nodes[at * N_WIDTH + N_BEGIN]


@dataclass(frozen=True)
class LeafNumbers:
    """A decision tree that tells each row the number of its leaf, from left to right."""

    tree: Tree

    @cached_property
    def _nodes(self) -> tuple[list[list[int]], list[Test | None]]:
        """Kind, column and range of values are filled in for the columns of a batch."""
        nodes: list[list[int]] = []
        tests: list[Test | None] = []
        leaves = 0

        def walk(tree: Tree) -> int:
            nonlocal leaves
            own = len(nodes)
            nodes.append([LEAF, 0, leaves, 0, 0, 0])
            tests.append(None if isinstance(tree, Leaf) else tree.test)
            if isinstance(tree, Leaf):
                leaves += 1
            else:
                nodes[own][N_YES] = walk(tree.yes)
                nodes[own][N_NO] = walk(tree.no)
            return own

        walk(self.tree)
        return nodes, tests

    def of(self, column: Column, rows: int) -> Ints:
        """The leaf of each row."""
        leaves = np.zeros(rows, np.int64)
        if isinstance(self.tree, Leaf) or not rows:
            return leaves
        known, tests = self._nodes
        nodes, limits = np.array(known, np.int64), np.zeros(len(known))
        values: list[int] = []
        arrays: list[Array] = []
        numbered: dict[tuple[int, str], int] = {}
        for at, test in enumerate(tests):
            if test is None:
                continue
            kind, array = _asked(test, column(test.attribute))
            nodes[at, N_KIND] = kind
            key = kind, test.attribute
            if kind == ANSWERED or key not in numbered:
                numbered[key] = len(arrays)
                arrays.append(array)
            nodes[at, N_COLUMN] = numbered[key]
            if isinstance(test, Threshold):
                limits[at] = test.value
            elif isinstance(test, Member) and kind == MEMBER:
                nodes[at, N_BEGIN] = len(values)
                values += test.values
                nodes[at, N_END] = len(values)
        columns = np.array([address(array) for array in arrays], np.int64)
        walk(nodes.ravel(), limits, np.array(values, np.int64), columns, rows, leaves)
        return leaves


def _asked(test: Test, values: pa.Array) -> tuple[int, Array]:
    """How the compiled tree answers a test on a column, and what it reads."""
    if isinstance(test, Threshold) and not values.null_count:
        return THRESHOLD, np.ascontiguousarray(as_floats(values))
    if (
        isinstance(test, Member)
        and pa.types.is_signed_integer(values.type)
        and not values.null_count
        and len(test.values) <= FEW_VALUES
    ):
        return MEMBER, np.ascontiguousarray(np.asarray(values), np.int64)
    return ANSWERED, np.ascontiguousarray(answers(test, values)).view(np.uint8)
