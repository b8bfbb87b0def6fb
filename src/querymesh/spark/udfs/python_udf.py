"""A user's function as the JVM has it: pickled, with the broadcast variables that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext


@dataclass(frozen=True)
class _MetBroadcast:
    """A broadcast variable by its JVM object, which is all that PySpark asks of one it meets."""

    number: int
    _jbroadcast: Any = field(compare=False)


class CarriedBroadcasts:
    """The broadcast variables of a user's function, for a function of ours that calls it.

    Spark sends a task those broadcasts that it met while pickling the task's function: pickling
    this meets them. In the task nothing is left of it, since the user's function finds them itself.
    """

    def __init__(self, met: Sequence[_MetBroadcast] = ()) -> None:
        self._met = tuple(met)

    def __len__(self) -> int:
        return len(self._met)

    def __iter__(self) -> Iterator[_MetBroadcast]:
        return iter(self._met)

    def __reduce__(self) -> tuple[Any, ...]:
        context = SparkContext._active_spark_context
        if context is not None:
            for broadcast in self._met:
                context._pickled_broadcast_vars.add(broadcast)  # type: ignore[arg-type]
        return CarriedBroadcasts, ()


@dataclass(frozen=True)
class PythonUdf:
    """What the JVM knows of a user's function that an analysed expression calls.

    `command` is the pickled function, or a pickled broadcast of it where it is large.
    """

    command: bytes
    broadcasts: CarriedBroadcasts


def python_udf(expression: Any) -> PythonUdf:
    """The function behind a PythonUDF of the JVM's."""
    function = expression.func()
    sent = function.broadcastVars()
    broadcasts = [sent.get(number) for number in range(sent.size())]
    return PythonUdf(
        bytes(function.command().unsafeArray()),
        CarriedBroadcasts([_MetBroadcast(int(each.id()), each) for each in broadcasts]),
    )
