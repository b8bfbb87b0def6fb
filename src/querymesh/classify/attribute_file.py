"""Test attributes as JSON, with the numbers that belong to their bins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from querymesh.arrays import Floats
from querymesh.classify.attributes import Attribute


def attribute_to_json(attribute: Attribute) -> dict[str, Any]:
    """The attribute's name, and its edges or values."""
    if attribute.edges is not None:
        return {"name": attribute.name, "edges": attribute.edges.tolist()}
    return {"name": attribute.name, "values": list(attribute.values)}


def attribute_from_json(entry: Any) -> Attribute:
    """The attribute that was saved; a ValueError says what is wrong with it."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ValueError(f"an attribute is {entry!r}, not an object with a 'name'")
    name = entry["name"]
    if "edges" in entry:
        edges = numbers_from_json(entry["edges"], f"'edges' of {name}")
        if edges.ndim != 1 or (np.diff(edges) <= 0).any():
            raise ValueError(f"'edges' of {name} must grow")
        return Attribute(name, edges=edges)
    values = entry.get("values")
    if not isinstance(values, list) or not all(isinstance(v, bool | int | str) for v in values):
        raise ValueError(f"'values' of {name} must be a list of plain values")
    return Attribute(name, values=tuple(values))


def numbers_from_json(content: Any, what: str) -> Floats:
    """Finite numbers in lists."""

    def plain(each: Any) -> bool:
        if isinstance(each, list):
            return all(map(plain, each))
        return isinstance(each, int | float) and not isinstance(each, bool) and math.isfinite(each)

    if not isinstance(content, list) or not plain(content):
        raise ValueError(f"{what} must be numbers in lists")
    return np.array(content, dtype=np.float64)
