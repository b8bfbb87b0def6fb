"""Values of any Arrow type as bytes: equal bytes where no function could tell two values apart.

::

    fixed width    1 │ the value's bytes            NULL  0 │ zeros
    texts, bytes   length │ bytes                         -1 │
    lists, maps    length │ element element ...           -1 │
    structs        1 │ field field ...                    0 │ fields, all NULL

Each value says how long it is, so that the bytes of several behind each other mean one row only.
Bits count: 0.0 is not -0.0, and a NaN equals those of the same bits. How an array holds its values
does not count: as a dictionary or plain, with long or short offsets, cut from a longer one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from querymesh.arrays import Bytes, Ints

_TYPES = pa.types
_JOINED_BY_NOTHING = pa.scalar(b"", pa.large_binary())
_UNKNOWN_BYTES = 16
_TEXTS = frozenset({"string", "large_string", "string_view"})
_BYTES = frozenset({"binary", "large_binary", "binary_view"})


def canonical_rows(args: Sequence[pa.Array]) -> pa.LargeBinaryArray:
    """The bytes of each row of one array or more."""
    return _joined([_canonical(arg) for arg in args])


def type_name(kind: pa.DataType) -> str:
    """A type by what its values are; no two with different values share a name.

    >>> type_name(pa.large_string()) == type_name(pa.dictionary(pa.int8(), pa.string()))
    True
    """
    if _TYPES.is_dictionary(kind) or _TYPES.is_run_end_encoded(kind):
        return type_name(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return f"{kind.extension_name!r}{type_name(kind.storage_type)}"
    if str(kind) in _TEXTS:
        return "string"
    if str(kind) in _BYTES:
        return "binary"
    if _TYPES.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return f"struct{[(field.name, type_name(field.type)) for field in fields]!r}"
    if _TYPES.is_map(kind):
        return f"map{[type_name(kind.key_type), type_name(kind.item_type)]!r}"
    if _is_list(kind):
        return f"list{[type_name(kind.value_type)]!r}"
    return str(kind)


def _canonical(array: pa.Array) -> pa.LargeBinaryArray:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _canonical(array.storage)
    if _TYPES.is_run_end_encoded(kind):
        return _canonical(pc.run_end_decode(array))
    if _TYPES.is_dictionary(kind):
        return _of_dictionary(array)
    if _TYPES.is_struct(kind):
        # `flatten`: the fields of a NULL are NULL, whatever is beneath it.
        return _joined([_of_fixed(array, 0), *(_canonical(field) for field in array.flatten())])
    if _TYPES.is_map(kind):
        offsets = pa.array(np.array(array.offsets))
        array = pa.ListArray.from_arrays(offsets, array.values, mask=array.is_null())
        return _of_lists(array)
    if _is_list(kind):
        return _of_lists(array)
    if str(kind) in _TEXTS:
        return _with_lengths(array.cast(pa.large_string()).cast(pa.large_binary()))
    if str(kind) in _BYTES:
        return _with_lengths(array.cast(pa.large_binary()))
    if _TYPES.is_boolean(kind):
        return _of_fixed(array.cast(pa.uint8()), 1)
    if _TYPES.is_null(kind):
        return _of_fixed(array, 0)
    if _TYPES.is_union(kind):
        return _all_different(len(array))
    return _of_fixed(array, kind.bit_width // 8)


def _is_list(kind: pa.DataType) -> bool:
    tests = (
        _TYPES.is_list, _TYPES.is_large_list, _TYPES.is_fixed_size_list,
        _TYPES.is_list_view, _TYPES.is_large_list_view,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def _of_fixed(array: pa.Array, width: int) -> pa.LargeBinaryArray:
    """Values that take so many bytes each, behind a byte that says whether there is one."""
    rows = len(array)
    out = np.zeros((rows, 1 + width), dtype=np.uint8)
    out[:, 0] = array.is_valid()
    if width and rows:
        buffer = array.buffers()[1]
        content = np.frombuffer(buffer, np.uint8, rows * width, array.offset * width)
        np.multiply(content.reshape(rows, width), out[:, :1], out=out[:, 1:])
    return _cut(out, np.full(rows, 1 + width))


def _of_lists(array: pa.Array) -> pa.LargeBinaryArray:
    lengths = np.asarray(pc.list_value_length(array).fill_null(0))
    elements = _canonical(array.flatten())  # without those beneath a NULL
    ends = np.concatenate([[0], np.cumsum(lengths)])
    starts = np.concatenate([[0], np.cumsum(np.asarray(pc.binary_length(elements)))])
    bodies = _cut(elements.buffers()[2] or b"", np.diff(starts[ends]))
    return _with_lengths(pc.if_else(array.is_valid(), bodies, None))


def _of_dictionary(array: pa.DictionaryArray) -> pa.LargeBinaryArray:
    null = pa.nulls(1, array.type.value_type)
    values = _canonical(pa.concat_arrays([array.dictionary, null]))
    indices = array.indices.cast(pa.int64()).fill_null(len(array.dictionary))
    return values.take(indices)


def _all_different(rows: int) -> pa.LargeBinaryArray:
    """Where values cannot be compared, none equals another: what is asked is right, if too much."""
    return _cut(os.urandom(rows * _UNKNOWN_BYTES), np.full(rows, _UNKNOWN_BYTES))


def _with_lengths(bodies: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    lengths = np.asarray(pc.binary_length(bodies).fill_null(-1)).astype("<i8")
    return _joined([_cut(lengths.view(np.uint8), np.full(len(bodies), 8)), bodies])


def _joined(parts: Sequence[pa.LargeBinaryArray]) -> pa.LargeBinaryArray:
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(
        *parts, _JOINED_BY_NOTHING, null_handling="replace", null_replacement=b""
    )


def _cut(content: Bytes | bytes | pa.Buffer, lengths: Ints) -> pa.LargeBinaryArray:
    """Bytes in a row as values of such lengths."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    buffer = content if isinstance(content, pa.Buffer) else pa.py_buffer(content)
    buffers = [None, pa.py_buffer(offsets), buffer]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(lengths), buffers)
