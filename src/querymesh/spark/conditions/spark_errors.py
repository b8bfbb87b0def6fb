"""Spark's own refusals in a sentence: which condition, what is wrong, the nearest name."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException

from querymesh.errors import QueryError, QueryMeshError, SchemaError, did_you_mean


def in_our_words(refused: PySparkException, what: str, columns: Sequence[str]) -> QueryMeshError:
    """The error of a condition that Catalyst cannot resolve or read."""
    kind = str(refused.getCondition() or "")
    told = refused.getMessageParameters() or {}
    if kind.startswith("UNRESOLVED_COLUMN"):
        name = str(told.get("objectName", "")).replace("`", "")
        known = did_you_mean(name.rpartition(".")[2] or name, columns)
        return SchemaError(f"{what}: the DataFrame has no column {name}: {known}")
    if kind == "FIELD_NOT_FOUND":
        name, fields = str(told.get("fieldName", "")), str(told.get("fields", ""))
        known = did_you_mean(name.replace("`", ""), fields.replace("`", "").split(", "))
        return SchemaError(f"{what}: there is no field {name.replace('`', '')}: {known}")
    if kind == "AMBIGUOUS_REFERENCE":
        name = str(told.get("name", "")).replace("`", "")
        return SchemaError(
            f"{what}: column {name} is ambiguous, since several inputs have one: rename one of "
            "them, or select the DataFrame's columns under names of their own first"
        )
    if kind == "UNRESOLVED_ROUTINE":
        name = str(told.get("routineName", "")).replace("`", "")
        return QueryError(
            f"{what}: unknown function {name}: Spark has none of that name; give a Python function "
            "by functions={...}, or register it with spark.udf.register"
        )
    error = QueryError if kind.startswith("PARSE") else SchemaError
    return error(f"{what}: {_first_line(refused)}")


def _first_line(refused: PySparkException) -> str:
    """Spark's message without its error class in brackets and without the plan below it."""
    text = str(refused.getMessage() or refused).strip().partition("\n")[0]
    text = text.partition(" SQLSTATE:")[0]
    return text.partition("] ")[2] or text
