import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from querymesh.classify import principal
from querymesh.classify.principal import first_component


def by_eigenvectors_of_bins(tables):
    """The plain form: the greatest eigenvector of a matrix of bins by bins."""
    return np.linalg.eigh(tables @ tables.transpose(0, 2, 1))[1][:, :, -1]


def lengthened(vector, like):
    """A vector with the length and the sign of another."""
    return vector * (vector @ like) / (vector @ vector)


SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9))


@given(SHAPES, st.integers(0, 2**32 - 1), st.sampled_from([1e-9, 1.0, 1e9]))
def test_the_first_component_is_the_greatest_eigenvector_of_bins_by_bins(shape, seed, scale):
    tables = np.random.default_rng(seed).normal(size=shape) * scale
    spread = np.linalg.svd(tables, compute_uv=False)
    assume(shape[2] == 1 or shape[1] == 1 or (spread[:, 1] < 0.999 * spread[:, 0]).all())
    found, plain = first_component(tables), by_eigenvectors_of_bins(tables)
    assert found.shape == shape[:2]
    for one, other in zip(found, plain, strict=True):
        assert lengthened(one, other) == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize(("bins", "labels"), [(40, 3), (3, 40), (30, 31)])
@pytest.mark.parametrize("products", [1, 9, 10, 40, 117, 10_000])
def test_products_in_pieces_are_those_of_the_whole(bins, labels, products, monkeypatch):
    tables = np.random.default_rng(1).normal(size=(2, bins, labels))
    monkeypatch.setattr(principal, "ONE_THREAD_PRODUCTS", products)
    found, plain = first_component(tables), by_eigenvectors_of_bins(tables)
    for one, other in zip(found, plain, strict=True):
        assert lengthened(one, other) == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize("turned", [False, True])
def test_the_first_component_by_hand(turned):
    # Two rows that are orthogonal: the longer is the component, whichever comes first.
    table = np.array([[0.0, 1.0], [3.0, 0.0], [-6.0, 0.0], [0.0, 2.0]])
    (along,) = first_component((table[:, ::-1] if turned else table)[None])
    assert (along / along[1]).tolist() == [0, 1, -2, 0]


def test_components_that_spread_nearly_alike_are_still_told_apart():
    (along,) = first_component(np.diag([1.0, 1.0 + 1e-9])[None])
    assert abs(along[0]) < 1e-9 * abs(along[1])


def test_of_components_that_spread_alike_any_will_do():
    table = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    (along,) = first_component(table[None])
    assert np.linalg.norm(along) > 0
    assert along[2:] == pytest.approx([0, 0], abs=1e-12)


def test_a_table_without_spread_has_no_component_and_leaves_the_others_theirs():
    tables = np.zeros((2, 4, 2))
    tables[1, :, 1] = [1, 2, 3, 4]
    empty, other = first_component(tables)
    assert empty.tolist() == [0, 0, 0, 0]
    assert (other / other[0]).round(12).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("shape", [(2, 10_000, 5), (2, 5, 10_000)])
def test_ten_thousand_bins_take_no_array_larger_than_the_tables(shape):
    tables = np.random.default_rng(2).normal(size=shape)
    tracemalloc.start()
    first_component(tables)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 1.5 * tables.nbytes


class Counted(np.ndarray):
    """Tables that note how many products a multiplication of two of them takes."""

    noted: list[int]

    def __array_finalize__(self, made_from):
        self.noted = getattr(made_from, "noted", [])

    def __matmul__(self, other):
        self.noted.append(self.shape[1] * self.shape[2] * other.shape[2])
        return np.asarray(self) @ np.asarray(other)


@pytest.mark.parametrize(("bins", "pieces"), [(65, 1), (512, 1), (513, 2), (10_000, 20)])
def test_a_piece_is_as_large_as_one_thread_multiplies_and_no_larger(bins, pieces):
    tables = np.random.default_rng(3).normal(size=(2, bins, 16)).view(Counted)
    first_component(tables)
    assert len(tables.noted) == pieces
    assert max(tables.noted) == min(bins, 512) * 16 * 16


@pytest.mark.parametrize(
    ("spread", "squarings"),
    [
        # The shares of the whole are 2^(2^k) to 1 after k squarings: 2^32 is nearly all.
        ((2.0**0.5, 1.0), 6),
        ((1.0, 0.0), 1),
        ((0.0, 0.0), 1),
        ((1.0, 1.0), 50),
    ],
)
def test_squaring_ends_as_soon_as_one_component_is_left(spread, squarings, monkeypatch):
    calls = []
    squared = principal._squared
    monkeypatch.setattr(principal, "_squared", lambda each: calls.append(1) or squared(each))
    first_component(np.diag(spread)[None])
    assert len(calls) - 1 == squarings, "but for the first, which makes the matrix"
