import datetime
import decimal
import math
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from querymesh.index.store.codes import combine, equality_codes, order_codes

FLOATS = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf]) | st.floats(width=32)
DAYS = st.dates(datetime.date(1960, 1, 1), datetime.date(2060, 1, 1))
MOMENTS = st.datetimes(datetime.datetime(1960, 1, 1), datetime.datetime(2060, 1, 1))
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


def decimals(digits):
    most = 10**digits - 1
    return st.integers(-most, most).map(lambda n: decimal.Decimal(f"{n}E-2"))


def integers(bits):
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


EXACT = {
    pa.int8(): integers(8),
    pa.int16(): integers(16),
    pa.int32(): integers(32),
    pa.int64(): integers(64),
    pa.uint8(): st.integers(0, 2**8 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.bool_(): st.booleans(),
    pa.float32(): FLOATS,
    pa.float64(): FLOATS | st.floats(),
    pa.date32(): DAYS,
    pa.date64(): DAYS,
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("ms"): MOMENTS.map(lambda moment: moment.replace(microsecond=0)),
    pa.time32("s"): st.times().map(lambda time: time.replace(microsecond=0)),
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(datetime.timedelta(-9), datetime.timedelta(9)),
    pa.decimal128(18, 2): decimals(18),
}
HASHED = {
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.string_view(): TEXT,
    pa.binary(): st.binary(max_size=20),
    pa.large_binary(): st.binary(max_size=20),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.decimal128(30, 2): decimals(30),
    pa.decimal256(60, 2): decimals(50),
    pa.list_(pa.float64()): st.lists(FLOATS, max_size=3),
}


def same(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


def less(a, b):
    return not same(a, b) and (b != b or a < b)


def slices(draw, values, kind):
    """An array that begins and ends within its buffers."""
    some = draw(st.lists(values, max_size=12))
    begin = draw(st.integers(0, len(some)))
    return pa.array(some, kind).slice(begin, draw(st.integers(0, len(some))))


@pytest.mark.parametrize("kind", [*EXACT, *HASHED], ids=str)
@given(data=st.data())
def test_codes_are_equal_exactly_where_values_are(kind, data):
    array = slices(data.draw, (EXACT | HASHED)[kind], kind)
    codes, exact = equality_codes(array)
    assert codes.dtype == np.int64
    assert exact == (kind in EXACT)
    values = array.to_pylist()
    for a, x in zip(values, codes, strict=True):
        for b, y in zip(values, codes, strict=True):
            assert same(a, b) == (x == y)


@pytest.mark.parametrize("kind", EXACT, ids=str)
@given(data=st.data())
def test_order_codes_are_in_the_order_of_the_values(kind, data):
    array = slices(data.draw, EXACT[kind], kind)
    codes = order_codes(array)
    values = array.to_pylist()
    for a, x in zip(values, codes, strict=True):
        for b, y in zip(values, codes, strict=True):
            assert less(a, b) == (x < y)


@pytest.mark.parametrize("kind", HASHED, ids=str)
def test_hashed_types_have_no_order_codes(kind):
    assert order_codes(pa.array([], kind)) is None


@given(st.lists(st.sampled_from(["", "a", "long enough for two words"]), max_size=9))
def test_a_dictionary_has_the_codes_of_its_values(values):
    plain = pa.array(values, pa.string())
    np.testing.assert_array_equal(
        equality_codes(plain.dictionary_encode()).codes, equality_codes(plain).codes
    )
    numbers = pa.array([len(value) for value in values], pa.int64())
    np.testing.assert_array_equal(order_codes(numbers.dictionary_encode()), order_codes(numbers))


def test_codes_do_not_depend_on_how_a_text_is_stored():
    texts = ["", "a", "seven b", "eight by", "nine byte", "a\0", "a\0\0"]
    kinds = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())
    codes = [equality_codes(pa.array(texts, kind)).codes.tolist() for kind in kinds]
    assert all(others == codes[0] for others in codes)
    assert len(set(codes[0])) == len(texts)


def test_codes_of_integers_do_not_depend_on_their_width():
    codes = [
        equality_codes(pa.array([0, 1, 100], kind)).codes.tolist()
        for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64())
    ]
    assert codes == [[0, 1, 100]] * len(codes)


def test_64_bit_numbers_are_not_copied():
    numbers = np.arange(10)
    codes = equality_codes(pa.array(numbers).slice(3)).codes
    assert np.shares_memory(codes, numbers)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None]),
        pa.array(["a", None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays([0, 1], pa.array(["a", None])),
        pa.nulls(2),
    ],
    ids=["number", "index", "dictionary", "null"],
)
@pytest.mark.parametrize("code", [equality_codes, order_codes])
def test_null_has_no_code(values, code):
    with pytest.raises(ValueError, match="NULL, which equals nothing"):
        code(values)


def test_a_null_outside_of_a_slice_does_no_harm():
    assert equality_codes(pa.array([None, 1, 2]).slice(1)).codes.tolist() == [1, 2]


def test_hashes_are_the_same_in_every_process():
    texts = ["", "a", "something longer", "é"]
    program = (
        "import pyarrow as pa; from querymesh.index.store.codes import combine, equality_codes;"
        f"codes = equality_codes(pa.array({texts!r})).codes; print([*codes, *combine([codes] * 3)])"
    )
    codes = equality_codes(pa.array(texts)).codes
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == str([*codes, *combine([codes] * 3)])


def test_one_code_is_combined_to_itself():
    codes = np.arange(5)
    assert combine([codes]) is codes


@given(st.lists(st.tuples(*[st.integers(-2, 2)] * 3), max_size=30, unique=True))
def test_combined_codes_of_small_numbers_do_not_collide(rows):
    columns = [np.array([row[j] for row in rows], np.int64) for j in range(3)]
    assert len(set(combine(columns).tolist())) == len(rows)
