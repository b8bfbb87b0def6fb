"""PySpark's daemon with QueryMesh imported and its kernels loaded, for `join_driver.py`.

Workers are forked from it: one that takes the place of a killed one starts at once, where it would
import for a second or two.
"""

from pyspark import daemon

import querymesh.runtime.task.join_task
import querymesh.spark.reporting  # noqa: F401
from querymesh.index.kernels import kernels  # noqa: F401
from querymesh.index.kernels.compiled import compile_all

if __name__ == "__main__":
    compile_all()
    daemon.manager()
