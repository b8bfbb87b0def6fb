"""`querymesh bench policies`: every policy on every generator, beside what is possible at best.

| policy | decides | by |
| --- | --- | --- |
| single | once, before the run | a sample of the source |
| mesh | once for each kind of tuple, before the run | the same sample |
| eddy | before every operator | overall selectivities and costs, as they are now |
| cbr | before every operator | those of the tuple's content; learns the attributes as it runs |
| cbr, paper | the same | selectivities alone, settings of CBR's Table 2 |

No Spark: the fabric, or the join core, in this process. Evaluations, calls and comparisons are
exact; times are processor time in interleaved rounds. The generators of the papers are added by
`papers/policy_cases.py`, which knows this module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.text import Text

from querymesh.fabric.routers.make_eddy import CBR, EDDY
from querymesh.fabric.routers.routing import PAPER, Routing
from querymesh.options import check_name
from querymesh.report.text.figures import UNKNOWN, table
from querymesh_lab.bench.measure import Log
from querymesh_lab.bench.policies import filter_subjects, join_subjects
from querymesh_lab.bench.policies.race import PolicyCase, RouterPolicy, deciding, race, trained

SECONDS, QUICK_SECONDS = 6.0, 0.0
"""What the timed rounds of one case may take, about."""

USERS = Routing()
SHORT = 1000

POLICIES: dict[str, RouterPolicy] = {
    "single": trained(one_route=True),
    "mesh": trained(),
    "eddy": deciding(EDDY, USERS),
    "cbr": deciding(CBR, USERS),
    "cbr, paper": deciding(CBR, PAPER),
}
"""The first is what others are compared with. A new policy is one line."""

VARIANTS: dict[str, dict[str, RouterPolicy]] = {
    "eddy": {
        "lottery": deciding(EDDY, replace(USERS, choice="lottery")),
        "eddy, no places": deciding(EDDY, replace(USERS, by_context=False)),
    },
    "cbr": {
        "no places": deciding(CBR, replace(USERS, by_context=False)),
        "sets of two": deciding(CBR, replace(USERS, attribute_sets=True)),
        "by gain ratio": deciding(
            CBR, replace(USERS, evidence=PAPER.evidence, threshold=PAPER.threshold)
        ),
        "one by one": deciding(CBR, replace(USERS, all_at_first=False)),
        "tuned": deciding(CBR, replace(USERS, tune=True)),
        "pairs rested": deciding(CBR, replace(USERS, keep_pairs=False)),
        "unpruned": deciding(CBR, replace(USERS, prune=False)),
        "short chunks": deciding(CBR, replace(USERS, chunk=SHORT)),
    },
}
"""Each with one setting changed; counted once, in the details of their policy."""

CASES: dict[str, PolicyCase] = {**filter_subjects.CASES, **join_subjects.CASES}


def run_policies(
    quick: bool = False,
    cases: list[str] | None = None,
    log: Log = print,
    more: Mapping[str, PolicyCase] | None = None,
) -> list[dict[str, Any]]:
    """A row for each case and policy. `more` are cases that this layer does not know."""
    known = {**CASES, **(more or {})}
    for name in cases or ():
        check_name("case", name, tuple(known))
    command = "querymesh bench policies" + (" --quick" if quick else "")
    rows: list[dict[str, Any]] = []
    for name in cases or known:
        make, full, few = known[name]
        started = perf_counter()
        subject = make(few if quick else full)
        if subject is None:
            log(f"  {name}: skipped, its data are not here")
            continue
        variants: Mapping[str, Mapping[str, RouterPolicy]] = {} if quick else VARIANTS
        seconds = QUICK_SECONDS if quick else SECONDS
        found = race(subject, POLICIES, variants, seconds, log)
        rows += [finding.as_row(command) for finding in found]
        log(f"  {name}: {perf_counter() - started:.1f} s")
    return rows


HEAD = (
    "case", "policy", "evaluations", "late", "calls", "operators ×", "time ×", "comparisons",
    "oracle", "bound", "A/A",
)  # fmt: skip


def print_rows(rows: list[dict[str, Any]], console: Console | None = None) -> None:
    """The rows as a table for people."""
    text = as_text(rows)
    if any(row["details"]["variants"] for row in rows):
        text += "\n\nvariants: evaluations / time, their policy's = 1\n" + variants_text(rows)
    (console or Console()).print(Text(text), soft_wrap=True)


def as_text(rows: list[dict[str, Any]]) -> str:
    """A line for each case and policy; the case is named once."""
    lines, before = [], None
    for row in rows:
        at = row["details"]
        first = row["case"] != before
        before = row["case"]
        lines.append((
            row["case"] if first else "", at["policy"], _two(at["evaluations"]),
            _two(at["late_evaluations"]), _two(at["calls"]), _two(at["operator_time"]),
            _two(at["time"]), _two(at["comparisons"]) if at["kind"] == "joins" else UNKNOWN,
            _two(at["limit_oracle"]) if first else "", _two(at["limit_bound"]) if first else "",
            _two(at["a_a"]) if first else "",
        ))  # fmt: skip
    return table(HEAD, lines, left=(0, 1))


def variants_text(rows: list[dict[str, Any]]) -> str:
    """A line for each case: what each variant evaluates and takes, by its policy's own.

    Variants ran once, outside the rounds: their times say no more than which is far off.
    """
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        at = row["details"]
        for name, figures in at["variants"].items():
            ratios = (figures[key] / at[key] for key in ("evaluations", "cpu_us"))
            found.setdefault(row["case"], {})[name] = " / ".join(map(_two, ratios))
    names = [name for variants in VARIANTS.values() for name in variants]
    lines = [(case, *(cells.get(name, "") for name in names)) for case, cells in found.items()]
    return table(("case", *names), lines, left=(0,))


def _two(value: float) -> str:
    return UNKNOWN if math.isnan(value) else f"{value:.2f}"
