"""PySpark's daemon with QueryMesh imported and its kernels loaded.

Workers are forked from it: one that takes the place of a killed one, or of one that was idle for a
minute, starts at once, where it would import for a second or two. What was imported is out of the
collector's sight, which looks through a worker after every task.
"""

import gc

from pyspark import daemon

import querymesh.runtime.task.join_task
import querymesh.spark.reporting  # noqa: F401
from querymesh.index.kernels import kernels  # noqa: F401
from querymesh.index.kernels.compiled import compile_all

if __name__ == "__main__":
    compile_all()
    gc.collect()
    gc.freeze()
    daemon.manager()
