"""What a worker has loaded is put aside, so that collecting garbage after a task takes no time.

Spark's Python daemon collects after every task, and a collection looks through all objects there
are: 80 ms where numba and the fabric are loaded, as long as a task on 100,000 rows takes.
"""

from __future__ import annotations

import gc

_tasks = 0


def put_aside() -> None:
    """Told at the end of a task: what lives after the 1st, 2nd, 4th, 8th … is not looked at again.

    Objects put aside are freed as any other when nobody refers to them, but not if they refer to
    each other: so few moments, each after a collection.
    """
    global _tasks
    _tasks += 1
    if _tasks & (_tasks - 1) == 0:
        gc.collect()
        gc.freeze()
