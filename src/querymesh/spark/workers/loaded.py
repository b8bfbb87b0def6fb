"""What a worker has loaded is put aside, so that collecting garbage after a task takes no time.

Spark's Python daemon collects after every task, and a collection looks through all objects there
are: 40 ms in a worker of a filter, 80 where numba and the fabric are loaded, as long as a task on
100,000 rows takes.
"""

from __future__ import annotations

import gc
import sys

from querymesh.spark.context import task_attempt

_modules_set_aside = 0
"""How many modules there were when the collector of garbage was last told to leave them alone."""


def put_aside() -> None:
    """Told at the end of a task: take what its worker has imported out of the collector's sight,
    whenever there is more of it.

    Objects put aside are freed as any other when nobody refers to them, but not if they refer to
    each other: so few moments, each after a collection.
    """
    global _modules_set_aside
    if len(sys.modules) > _modules_set_aside and task_attempt() is not None:
        _modules_set_aside = len(sys.modules)
        gc.collect()
        gc.freeze()
