"""The defaults of the paper's experiments (QM Tables 1 and 3), which differ from each other.

Table 3 names no sample and no stop condition; they are those of Table 1. Its ruster size is a
minimum, and Table 1's, which does not say what it is, is taken for the same. Data distributions,
arrival rates and queue lengths of the tables are those of an experiment, not of a training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from querymesh.optimize.search.stop import Stop

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "table-1": {
        "sample_rows": 1000,
        "training_tuples": 10,
        "start": "route-driven",
        "search": "iterative-improvement",
        "stop": Stop(iterations=3),
        "seconds": 60.0,
        "window": 1000,
        "least_ruster": 100,
    },
    "table-3": {
        "sample_rows": 1000,
        "training_tuples": 100,
        "start": "content-driven",
        "search": "simulated-annealing",
        "stop": Stop(iterations=3),
        "seconds": 60.0,
        "window": 1000,
        "least_ruster": 100,
    },
}
