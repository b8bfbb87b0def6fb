import inspect

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from querymesh.index.kernels import kernels, kernels_numpy

NUMBERS = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-3, 3)


def ints(values):
    return np.array(values, np.int64)


def same_results(name, *arguments):
    compiled = getattr(kernels, name)(*arguments)
    plain = getattr(kernels_numpy, name)(*arguments)
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(one, other)
    return compiled


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=9))
def test_folding_is_as_in_numpy(rows):
    left, right = ints([a for a, _ in rows]), ints([b for _, b in rows])
    same_results("fold", left, right)


@given(st.lists(st.binary(max_size=30), max_size=6), st.binary(max_size=3))
def test_hashing_is_as_in_numpy(pieces, before):
    data = np.frombuffer(before + b"".join(pieces), np.uint8)
    offsets = len(before) + np.cumsum([0, *map(len, pieces)])
    same_results("hash_bytes", data, offsets)


@given(st.lists(NUMBERS | SMALL, max_size=40), st.integers(0, 6))
def test_rows_by_bucket_are_as_in_numpy_and_stable(codes, bits):
    codes = ints(codes)
    offsets, order, marks, in_order = kernels.by_bucket(codes, bits)
    plain = kernels_numpy.by_bucket(codes, bits)
    np.testing.assert_array_equal(offsets, plain[0])
    np.testing.assert_array_equal(marks, plain[2])
    assert in_order == plain[3]
    if not in_order:
        np.testing.assert_array_equal(order, plain[1])
    assert offsets.dtype == order.dtype == np.int32


@given(
    st.lists(st.integers(0, 5), max_size=6) | st.lists(st.integers(1, 5), min_size=33, max_size=50),
    st.lists(st.integers(-1, 20) | st.integers(0, 12) | st.integers(0, 200), max_size=20),
)
def test_rows_by_partition_are_as_in_numpy(sizes, rows):
    same_results("by_partition", ints(rows), np.cumsum([0, *sizes]))


@given(st.lists(NUMBERS, min_size=1, max_size=9), st.randoms(), st.booleans())
def test_scattering_is_as_in_numpy(column, random, in_order):
    local = ints([random.randrange(len(column)) for _ in range(7)])
    place = ints([] if in_order else random.sample(range(9), 7))
    outs = np.zeros(9, np.int64), np.zeros(9, np.int64)
    kernels.scatter(ints(column), local, place, outs[0])
    kernels_numpy.scatter(ints(column), local, place, outs[1])
    np.testing.assert_array_equal(*outs)


def test_mixing_is_as_in_numpy():
    numbers = ints([0, 1, -1, 2**63 - 1, -(2**63)])
    assert [kernels.mix(number) for number in numbers] == kernels_numpy.mix(numbers).tolist()


def test_each_kernel_has_a_version_in_numpy():
    public = [
        name
        for name, value in vars(kernels).items()
        if getattr(value, "__module__", "").startswith("querymesh.index.kernels.compiled")
        and callable(value)
        and not inspect.isfunction(value)
    ]
    assert len(public) == 8
    assert all(hasattr(kernels_numpy, name) for name in public)
