"""How much a test tries: enough in every run, and more in a soak (`make soak`).

QUERYMESH_SOAK is how many times as many examples and kills there are; a test that has a longer form
imports it from here, by which `make soak` finds it.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

SOAK = int(os.environ.get("QUERYMESH_SOAK", "0"))
"""0 in a usual run."""

TIMES = max(SOAK, 1)
"""How many times as many examples as in a usual run."""

soak_only = pytest.mark.skipif(not SOAK, reason="a longer form of a test that runs: make soak")


def random_cases(usual: int, soaked: int) -> settings:
    """Of a test whose examples are large, whole queries with their data: so many of them in a usual
    run, and SOAK times so many in a soak."""
    large = [HealthCheck.too_slow, HealthCheck.data_too_large]
    examples = soaked * SOAK if SOAK else usual
    return settings(max_examples=examples, suppress_health_check=large)


def other_cases_each_time(examples: int) -> settings:
    """Of a test that is to see others in each run; on failure hypothesis prints the seed that
    brings them back."""
    return settings(
        max_examples=examples * TIMES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
