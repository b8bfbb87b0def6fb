"""What a probing kernel needs to know of the partition it looks into."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from querymesh.arrays import Bytes, Ints, Shorts

NO_INTS: Ints = np.empty(0, np.int64)
NO_SHORTS: Shorts = np.empty(0, np.int32)
NO_BYTES: Bytes = np.empty(0, np.uint8)
"""How kernels are told that an array is not there."""


class Stored(NamedTuple):
    """Times and serials of the rows, the bounds of the times, and the first row's id."""

    times: Ints
    serials: Ints
    first: int
    last: int
    base: int
