"""Which run is behind a DataFrame: `qm.inspect`."""

from __future__ import annotations

import weakref

from pyspark.sql import DataFrame

from querymesh.errors import QueryMeshError
from querymesh.runtime.run import Run
from querymesh.spark.results import Results

_runs: weakref.WeakKeyDictionary[DataFrame | Results, Run] = weakref.WeakKeyDictionary()


def remember(out: DataFrame | Results, run: Run) -> None:
    """Let `inspect` find the run of this DataFrame."""
    _runs[out] = run


def inspect(out: DataFrame | Results) -> Run:
    """The run behind a DataFrame that `where`, `run` or `run_all` returned: what it has decided and
    done so far.

    It belongs to that very DataFrame, not to what is derived from it, and adds up every execution.
    Counts come from the fabric; the native engine runs in generated code, which has no counters.
    """
    try:
        return _runs[out]
    except (KeyError, TypeError):
        raise QueryMeshError(
            "inspect() knows only the DataFrame that querymesh.run, querymesh.run_all or "
            "df.transform(querymesh.where(...)) returned, not one derived from it: keep that "
            "DataFrame and inspect it"
        ) from None
