"""Typed access to the JSON of saved meshes, with errors that name what is out of place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from querymesh.errors import MeshFileError


class Reader:
    """Typed access to a JSON object, with errors that name the key."""

    def __init__(self, content: Mapping[str, Any], where: str = "") -> None:
        self._content = content
        self._where = where

    def get(self, key: str, kind: type) -> Any:
        """The value of a key, of this type."""
        if key not in self._content:
            raise MeshFileError(f"{self._where}{key!r} is missing")
        value = self._content[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise MeshFileError(f"{self._where}{key!r} is {value!r}, not of type {kind.__name__}")
        return value

    def list_(self, key: str) -> list[Any]:
        """The value of a key, which is a list."""
        return list(self.get(key, list))

    def float_(self, key: str) -> float:
        """The value of a key, which is a finite number, or null: NaN."""
        if key in self._content and self._content[key] is None:
            return math.nan
        value = self._content.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise MeshFileError(f"{self._where}{key!r} is {value!r}, not a number")
        if not math.isfinite(value):
            raise MeshFileError(f"{self._where}{key!r} is {value!r}, not a finite number")
        return float(value)


def read_object(entry: Any, what: str) -> Reader:
    """A JSON object, named `what` in errors."""
    if not isinstance(entry, dict):
        raise MeshFileError(f"{what} is {entry!r}, not a JSON object")
    return Reader(entry, f"{what}: ")


def or_null(value: float) -> float | None:
    """A number as JSON holds it: NaN is null."""
    return None if math.isnan(value) else value
