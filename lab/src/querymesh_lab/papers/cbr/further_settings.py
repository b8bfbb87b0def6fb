"""Beyond CBR (its § 3 and 8): what each further setting saves, against the paper's settings.

Four workloads: random selectivities, the largest skew, the Lab data where it is, and, for sets of
attributes, a stream whose classes two attributes tell only together::

    left    any of 4 values            class = (left + right) mod 4: either alone tells nothing
    right   (class - left) mod 4

Settings are judged by these rows and then measured in Figures 3 to 7, so the streams here are
others than there: on the same ones, what fits them by chance would count as gained.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh_lab.bench.case import Bench
from querymesh_lab.papers.cbr.cbr_lab import q2, random_bounds
from querymesh_lab.papers.cbr.eddy_runs import COUNTING, EddyCase, star_case
from querymesh_lab.papers.cbr.stream_star import (
    CLASSIFIER,
    UNCORRELATED,
    StreamStar,
    random_selectivities,
    skewed,
)
from querymesh_lab.papers.claim import Claim, Result

ROWS = 100_000
STREAMS = 2
FIRST_SEED = 100
"""Seeds from here on: the figures' are less."""

SETTINGS: Mapping[str, dict[str, Any]] = {
    "sets of two attributes": {"attribute_sets": True},
    "P, |R| and d adapted": {"tune": True},
    "three operators profiled at once": {"at_once": 3},
    "pairs used while profiled again": {"keep_pairs": True},
    "all operators profiled at once at first": {"all_at_first": True},
    "attributes by evidence": {"evidence": 2.0, "threshold": 0.0},
    "the last two, adapted, pairs used": {
        **dict.fromkeys(("all_at_first", "tune", "keep_pairs"), True),
        "evidence": 2.0,
        "threshold": 0.0,
    },
    "trials without regard to noise": {"trial_noise": 0.0},
}
TOGETHER = "only two attributes together tell"
SETS = "sets of two attributes"


def measure(bench: Bench, lab: pa.RecordBatch | None) -> dict[str, dict[str, float]]:
    """Calls a tuple by workload and setting; the paper's is ""."""
    found: dict[str, dict[str, float]] = {}
    for name, cases in workloads(bench, lab).items():
        settings = {"": {}, **SETTINGS} if name != TOGETHER else {"": {}, SETS: SETTINGS[SETS]}
        found[name] = {
            setting: statistics.fmean(_calls(case, changes) for case in cases)
            for setting, changes in settings.items()
        }
        bench.log(f"  {name}: {found[name]}")
    return found


def _calls(case: EddyCase, changes: Mapping[str, Any]) -> float:
    done = case.run(case.learns(replace(COUNTING, **changes)))
    return float(done.routing_calls / case.batch.num_rows)


def workloads(bench: Bench, lab: pa.RecordBatch | None) -> dict[str, list[EddyCase]]:
    """The streams of each workload, by its name."""
    rows = bench.rows(ROWS, 5_000)
    seeds = range(FIRST_SEED, FIRST_SEED + bench.rounds(STREAMS, 1))
    joins = 4 if bench.quick else 8
    drawn = {s: random_selectivities(joins, np.random.default_rng((joins, s))) for s in seeds}
    found = {
        f"random selectivities, {joins} joins": [
            star_case(StreamStar(matrix), rows, seed) for seed, matrix in drawn.items()
        ],
        f"largest skew, {joins} joins": [
            star_case(StreamStar(skewed(joins, 0.05)), rows, seed) for seed in seeds
        ],
        TOGETHER: [together_case(rows, seed) for seed in seeds],
    }
    if lab is not None:
        part = lab.slice(0, bench.rows(lab.num_rows, 5_000))
        found["Lab data, Q2"] = [
            q2(part, random_bounds(part, np.random.default_rng(seed))) for seed in seeds
        ]
    return found


def together_case(rows: int, seed: int, joins: int = 4) -> EddyCase:
    """Four classes, which two attributes tell only together."""
    case = star_case(StreamStar(skewed(joins, 0.1)), rows, seed)
    kind = np.asarray(case.batch.column(CLASSIFIER))
    left = np.random.default_rng((seed, 2)).integers(0, joins, rows)
    batch = case.batch.append_column("left", pa.array(left))
    batch = batch.append_column("right", pa.array((kind - left) % joins))
    return replace(case, batch=batch, attributes=("left", "right", *UNCORRELATED))


def results(found: Mapping[str, Mapping[str, float]]) -> list[Result]:
    """One row for each setting and workload: percent fewer calls than with the paper's settings."""
    rows = []
    for setting in SETTINGS:
        for workload, calls in found.items():
            if setting in calls:
                name = f"{setting}; {workload}: fewer routing calls than without"
                claim = Claim("cbr", "further", name, None, "%", "more", 0.0, "project")
                gain = 100 * (1 - calls[setting] / calls[""])
                details = {"calls_a_tuple": calls[setting], "without": calls[""]}
                rows.append(Result(claim, gain, details=details))
    return rows
