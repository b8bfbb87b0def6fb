"""The package's own errors. Each text says what was wrong, where, and what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class QueryMeshError(Exception):
    """The root of everything QueryMesh raises on purpose."""


class OptionError(QueryMeshError, ValueError):
    """An option is wrong: unknown, out of range, of the wrong kind, or one too many."""


class QueryError(QueryMeshError):
    """The query itself is wrong: it does not parse, or asks for something that has no meaning."""


class SchemaError(QueryMeshError):
    """The query and the data do not fit: unknown or ambiguous names, types that do not compare."""


class PredicateError(QueryMeshError):
    """A user's function raised, or returned something that is not one boolean per row."""


class BudgetError(QueryMeshError):
    """The budget of a job cannot pay for the next call of a function."""


class TrainingError(QueryMeshError):
    """A mesh cannot be learned from what was given."""


class MeshFileError(QueryMeshError):
    """A saved mesh is damaged, from a newer version, or does not fit the query."""


class StateError(QueryMeshError):
    """Stored join state is damaged, missing, foreign, or of another query."""


class UnsupportedError(QueryMeshError):
    """Understood, but not runnable in this way; the text names the way that works."""


class SetupError(QueryMeshError):
    """The machine lacks something QueryMesh needs, such as Java."""


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """The tail of an error about a name: the nearest known one, and the list of all.

    >>> did_you_mean("pirce", ["price", "symbol"])
    "did you mean 'price'? Known: price, symbol"
    """
    names = sorted(known)
    nearest = difflib.get_close_matches(wrong.lower(), [name.lower() for name in names], n=1)
    listing = f"Known: {', '.join(names)}" if names else "There are none"
    if not nearest:
        return listing
    original = next(name for name in names if name.lower() == nearest[0])
    return f"did you mean {original!r}? {listing}"
