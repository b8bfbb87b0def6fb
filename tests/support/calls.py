"""Functions over one column of integers, called in pieces as tests need it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from querymesh.query.costly.calling import Calling
from querymesh.query.costly.pieces import Piece, call_in_pieces, call_of


def pieces_of(fn: Callable[[Any], Any], rows: int, calling: Calling, **options: Any) -> list[Piece]:
    """What becomes of 0, 1, 2, … in pieces."""
    values = [pa.array(range(rows))]
    return call_in_pieces(call_of(fn, False), calling, values, rows, **options)


def results_of(pieces: Sequence[Piece]) -> list[Any]:
    """The results alone; of what raised the error."""
    return [getattr(piece.result, "error", piece.result) for piece in pieces]
