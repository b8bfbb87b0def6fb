"""What people may give as a condition, and what to say of anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pyspark.sql import Column

from querymesh.errors import QueryError
from querymesh.query.predicate.predicate import Predicate

Condition: TypeAlias = Predicate | str | Column
"""What `where` takes."""


def check_conditions(conditions: Sequence[object]) -> None:
    """Refuse what is no condition, before there is a DataFrame."""
    for condition in conditions:
        if not isinstance(condition, Predicate | str | Column):
            raise QueryError(not_a_condition(condition))


def not_a_condition(condition: object) -> str:
    """What to say of something that is no condition."""
    if hasattr(condition, "evalType") and hasattr(condition, "returnType"):
        name = getattr(condition, "__name__", "it")
        return f"{name} is a UDF that is applied to nothing yet: name its columns, {name}('a', 'b')"
    if callable(condition):
        name = getattr(condition, "__name__", type(condition).__name__)
        return f"{name} is a plain function: decorate it with @qm.predicate(columns=[...])"
    return (
        "a condition is SQL text, a Column, a UDF applied to columns or a qm.predicate, not "
        f'{type(condition).__name__}: write it as text, such as "port IN (22, 445)"'
    )
