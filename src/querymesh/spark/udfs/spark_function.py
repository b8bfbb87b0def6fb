"""A user's Spark UDF as a function over Arrow arrays that can be sent to tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructType

from querymesh.spark.udfs.python_udf import CarriedBroadcasts


@dataclass(frozen=True)
class SparkFunction:
    """A UDF by its pickled bytes; called with one Arrow array for each argument.

    - `commands`: the pickled functions, the innermost first where one calls the other
    - `eval_type`: which kind of UDF it is, as PySpark numbers them
    - `keywords`: for each argument the name it is given by, None for a positional one; a function
      without arguments is called with one array all the same, for the number of rows
    - `arguments`, `returns`: the types; there is one argument more than keywords if there are none
    - `settings`: what Spark tells its Python workers about conversions, the time zone among it
    - `broadcasts`: the broadcast variables that the function reads
    """

    commands: tuple[bytes, ...] = field(repr=False)
    eval_type: int
    keywords: tuple[str | None, ...]
    arguments: StructType
    returns: DataType
    settings: Mapping[str, str] = field(repr=False)
    broadcasts: CarriedBroadcasts = field(default_factory=CarriedBroadcasts, repr=False)

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        """The UDF's value for each row, as Spark would have it, of the type `returns_arrow`."""
        # Loaded here: only tasks, and the driver when it profiles, need PySpark's worker.
        from querymesh.spark.udfs.loaded_function import loaded

        conformed = [
            array if array.type == wanted.type else array.cast(wanted.type)
            for array, wanted in zip(arrays, self.argument_schema, strict=True)
        ]
        batch = pa.RecordBatch.from_arrays(conformed, names=self.argument_schema.names)
        parts = [part.column(0) for part in loaded(self).results(batch)]
        result = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return result if result.type == self.returns_arrow else result.cast(self.returns_arrow)

    @cached_property
    def argument_schema(self) -> pa.Schema:
        """The Arrow types in which Spark sends its arguments."""
        zone = self.settings.get("spark.sql.session.timeZone")
        return to_arrow_schema(
            self.arguments, timezone=zone, prefers_large_types=self._has_large_types
        )

    @cached_property
    def returns_arrow(self) -> pa.DataType:
        """The Arrow type of its values."""
        return to_arrow_type(
            self.returns, timezone="UTC", prefers_large_types=self._has_large_types
        )

    @cached_property
    def key(self) -> str:
        """Tells it from all other functions that a worker may meet."""
        rest = (self.eval_type, self.keywords, self.arguments.json(), self.returns.json())
        described = repr((rest, sorted(self.settings.items()))).encode()
        return sha256(b"\0".join((*self.commands, described))).hexdigest()

    @property
    def _has_large_types(self) -> bool:
        return self.settings.get("spark.sql.execution.arrow.useLargeVarTypes") == "true"

    def __getstate__(self) -> dict[str, Any]:
        """Its fields, without what was computed from them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
