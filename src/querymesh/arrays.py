"""The kinds of numpy arrays that travel between modules, each under one name."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Shorts: TypeAlias = npt.NDArray[np.int32]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Bools: TypeAlias = npt.NDArray[np.bool_]
Integers: TypeAlias = npt.NDArray[np.integer]
"""Of any width: row numbers, for example."""
Array: TypeAlias = npt.NDArray[Any]
"""Of any type: for what only carries arrays."""
