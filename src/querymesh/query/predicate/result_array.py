"""What a user's function gave back, as an Arrow array of the promised length and type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.errors import PredicateError
from querymesh.query.types import Kind, kind_of

_WIDENS = {
    (Kind.INTEGER, Kind.FLOAT),
    (Kind.INTEGER, Kind.DECIMAL),
    (Kind.DECIMAL, Kind.FLOAT),
    (Kind.FLOAT, Kind.DECIMAL),
}
"""What a function may return where it promised another kind: numbers for numbers."""


def as_array(name: str, result: Any, n: int, returns: pa.DataType, hint: str = "") -> pa.Array:
    """Check and convert; numbers are never taken for booleans, since 0.3 would silently be True.

    `hint` ends the error about a result that is no array, list or Series.
    """
    expected = f"expected {n} values of type {returns}{hint}"
    array = _to_arrow(name, result, expected)
    if len(array) != n:
        raise PredicateError(
            f"predicate {name} returned {len(array)} values, {expected}: one for each row"
        )
    if array.type == returns:
        return array
    have, want = kind_of(array.type), kind_of(returns)
    if have is Kind.NULL or (have is want and have is not Kind.OTHER) or (have, want) in _WIDENS:
        try:
            return array.cast(returns)
        except pa.ArrowInvalid as error:
            raise PredicateError(
                f"predicate {name} returned values of type {array.type}, {expected}: {error}"
            ) from error
    remedy = "; compare it, as in score > 0.5" if pa.types.is_boolean(returns) else ""
    raise PredicateError(
        f"predicate {name} returned values of type {array.type}, {expected}{remedy}"
    )


def _to_arrow(name: str, result: Any, expected: str) -> pa.Array:
    if isinstance(result, pa.Array):
        return result
    if isinstance(result, pa.ChunkedArray):
        return pa.concat_arrays(result.chunks) if result.num_chunks else pa.array([], result.type)
    if hasattr(result, "to_arrow"):
        return _to_arrow(name, result.to_arrow(), expected)
    is_pandas = type(result).__module__.partition(".")[0] == "pandas"
    if (is_pandas or isinstance(result, np.ndarray)) and getattr(result, "ndim", 1) != 1:
        kind = "pandas DataFrame" if is_pandas else "numpy array"
        raise PredicateError(
            f"predicate {name} returned a {kind} of shape {result.shape}, {expected}"
        )
    is_sequence = is_pandas or isinstance(result, (list, tuple, np.ndarray))
    if not is_sequence and not hasattr(result, "__arrow_array__"):
        if not hasattr(result, "to_numpy"):
            raise PredicateError(
                f"predicate {name} returned {type(result).__name__} ({result!r:.60}), {expected}"
            )
        result = result.to_numpy()
    try:
        # In numpy a NaN is a value; in pandas it stands for a missing one, and Arrow knows that.
        array = pa.array(result)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise PredicateError(
            f"predicate {name} returned values that are not of one type, {expected}: {error}"
        ) from error
    return _to_arrow(name, array, expected)
