"""Columns of a running stream that are let through or not, batch by batch.

Spark plans every micro-batch anew from the same analysed plan, and computes what is constant in it
while it plans. So a constant whose value is changed between two batches changes the plan::

    CASE WHEN (gates & 4) > 0 THEN port END     gates = 7:  port
                                                gates = 3:  NULL, and the scan does not read port

A NULL costs a hundredth of what a text costs on its way to Python.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from py4j.protocol import Py4JError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from querymesh.query.render import quoted_name
from querymesh.spark.context import column_of, java

log = logging.getLogger("querymesh")


class ColumnGates:
    """A gate for each of these columns of a stream, open at first."""

    def __init__(self, session: SparkSession, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._arrays = java(session).java.lang.reflect.Array
        any_class = java(session).java.lang.Class.forName("java.lang.Object")
        self._value = self._arrays.newInstance(any_class, 1)
        self.open(names)
        sql = java(session).org.apache.spark.sql
        array = sql.types.ArrayType(sql.types.DataTypes.IntegerType, False)
        value = sql.catalyst.util.GenericArrayData(self._value)
        self.state = column_of(session, sql.catalyst.expressions.Literal(value, array))[0]
        """Which are open, a bit for each: for those who are sent the columns."""

    def open(self, names: Collection[str]) -> None:
        """Open the gates of these columns and close all others, from the next batch on."""
        number = sum(1 << k for k, name in enumerate(self.names) if name in names)
        try:
            self._arrays.set(self._value, 0, number)
        except (Py4JError, OSError) as problem:  # the session is going: no batch comes any more
            log.debug("columns are sent as they were: %s", problem)

    def column(self, name: str) -> Column:
        """The column, NULL as long as its gate is closed."""
        bit = 1 << self.names.index(name)
        return F.when(self.state.bitwiseAND(bit) > 0, F.col(quoted_name(name)))
