"""The first principal component of label distributions, by which categories are ordered (QM § 4.4).

A tree that tells labels by a category has 2^(n-1) ways to split n values in two. For two labels the
best is a prefix of the values ordered by the share of one label; for more, a prefix of their order
along the first principal component of their label distributions comes close (Coppersmith, Hong and
Hosking, "Partitioning nominal attributes in decision trees", 1999)::

             labels
           ┌────────┐       The component is the greatest eigenvector of T·Tᵀ (bins by bins), or T
           │        │       times that of Tᵀ·T (labels by labels): the same direction, from the
    bins   │   T    │       shorter side. Categories may be ten thousand, labels are a few.
           │        │
           └────────┘
"""

from __future__ import annotations

import numpy as np

from querymesh.arrays import Floats

ONE_THREAD_PRODUCTS = 1 << 17
"""Up to twice as many products OpenBLAS multiplies matrices on one thread. A node's tables are
small: threads would wait for each other longer than they work, on a busy machine a hundred times as
long. LAPACK's eigenvectors take threads from a side of 26 on, whence powers instead."""
MOST_SQUARINGS = 50
"""The power 2^50 tells eigenvalues apart that differ by rounding; some ten squarings are usual."""
NEARLY_ONE = 1.0 - 1e-8


def first_component(tables: Floats) -> Floats:
    """For each of several tables of bins by labels, the place of every bin along the first
    principal component: the first left singular vector, up to its length and sign.

    No array is larger than the tables, or than the square of their shorter side.

    >>> along = first_component(np.array([[[3.0, 0.0], [-6.0, 0.0], [0.0, 1.0]]]))[0]
    >>> (along / along[0]).round(9).tolist()
    [1.0, -2.0, 0.0]
    """
    bins, labels = tables.shape[1:]
    if bins <= labels:
        return _greatest(_squared(tables))
    direction = _greatest(_squared(tables.transpose(0, 2, 1)))
    return np.asarray(np.einsum("tbl,tl->tb", tables, direction))


def _greatest(matrices: Floats) -> Floats:
    """The eigenvector of the greatest eigenvalue of each symmetric matrix: the power method, by
    squaring. A high power of a matrix is the product of that vector with itself."""
    power = _by_trace(matrices)
    for _ in range(MOST_SQUARINGS):
        square = _squared(power)
        power = _by_trace(square)
        # The sum of the squares of the eigenvalues' shares; 0 where a table has no spread at all.
        together = square.trace(axis1=1, axis2=2)
        if ((together > NEARLY_ONE) | (together == 0)).all():
            break
    largest = power.diagonal(axis1=1, axis2=2).argmax(axis=1)
    return np.asarray(power[np.arange(len(power)), largest])


def _by_trace(matrices: Floats) -> Floats:
    whole = matrices.trace(axis1=1, axis2=2)
    return np.asarray(matrices / np.where(whole > 0, whole, 1.0)[:, None, None])


def _squared(tables: Floats) -> Floats:
    """Each table times its transpose, summed over pieces that are multiplied on one thread."""
    rows, columns = tables.shape[1:]
    step = max(1, ONE_THREAD_PRODUCTS // (rows * rows))
    if columns <= step:
        return np.asarray(tables @ tables.transpose(0, 2, 1))
    pieces = (tables[:, :, start : start + step] for start in range(0, columns, step))
    return np.asarray(sum(piece @ piece.transpose(0, 2, 1) for piece in pieces))
