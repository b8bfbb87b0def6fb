"""A hundred seeded runs with a proxy: how often recall and precision hold, and what is still asked.

Each run has other requests of the same kind, and another seed of the proxy. Its answers are
compared with the truth, row by row.
"""

from __future__ import annotations

import statistics

import numpy as np
import pyarrow as pa

import querymesh as qm
from querymesh_lab.bench.costly import inputs, rivals
from querymesh_lab.bench.costly.cell import Cell, Ground
from querymesh_lab.bench.costly.manners import Manners
from querymesh_lab.bench.costly.questions import rule_of
from querymesh_lab.bench.costly.rivals import Question
from querymesh_lab.bench.data import csic
from querymesh_lab.bench.data.real_folder import DATA, folder_with
from querymesh_lab.bench.finding import Finding
from querymesh_lab.bench.guest.tables import AbsentError

GROUP = "proxies"
QUESTION, COLUMNS = "attack", ("path", "query")
ROWS, QUICK_ROWS = 20_000, 2_500
RUNS, QUICK_RUNS = 100, 1
LEAST = 0.95
FEWER = 5.0


def distinct_requests() -> pa.Table:
    """One row for each request that differs in what is asked about."""
    folder = folder_with(csic.FILES)
    if folder is None:
        raise AbsentError(f"no CSIC requests here; {DATA}=folder says where the data are")
    table = csic.requests(folder).select(["id", *COLUMNS])
    first = {repr(each): row for row, each in enumerate(inputs.inputs_of(table, COLUMNS))}
    return table.take(pa.array(sorted(first.values()))).combine_chunks()


def quality(found: set[int], true: set[int]) -> tuple[float, float]:
    """Recall and precision of what was found.

    >>> quality({1, 2, 3, 4}, {1, 2})
    (1.0, 0.5)
    """
    right = len(found & true)
    return right / len(true) if true else 1.0, right / len(found) if found else 1.0


def run(ground: Ground) -> list[Finding]:
    """Each run, and how many held."""
    bench, endpoint = ground.bench, ground.endpoint
    requests = distinct_requests()
    rows, runs = bench.rows(ROWS, QUICK_ROWS), bench.rounds(RUNS, QUICK_RUNS)
    rule, question = rule_of(QUESTION), Question(endpoint.address, QUESTION, COLUMNS)
    recalls, precisions, fewer, explained = [], [], [], ""
    for seed in range(runs):
        order = np.random.default_rng(seed).permutation(requests.num_rows)[:rows]
        table = requests.take(pa.array(order)).combine_chunks()
        asked = zip(table.column("id").to_pylist(), inputs.inputs_of(table, COLUMNS), strict=True)
        true = {number for number, each in asked if rule(each)}
        proxy = qm.Proxy(recall=LEAST, precision=LEAST, seed=seed)
        endpoint.behave(Manners())
        df = ground.frame(ground.stored(table).folder)
        out = rivals.where(df, question.predicate(proxy=proxy))
        found = {row.id for row in out.select("id").collect()}
        recall, precision = quality(found, true)
        recalls.append(recall)
        precisions.append(precision)
        fewer.append(table.num_rows / max(endpoint.counts().inputs, 1))
        explained = explained or str(qm.inspect(out).explain())
        bench.log(f"  seed {seed}: recall {recall:.3f}, precision {precision:.3f}, "
                  f"{fewer[-1]:.1f} × fewer calls")  # fmt: skip
    held = sum(a >= LEAST and b >= LEAST for a, b in zip(recalls, precisions, strict=True))
    details = {
        "group": GROUP, "rows": rows, "runs": runs, "recalls": recalls, "precisions": precisions,
        "fewer": fewer, "explained": explained,
    }  # fmt: skip
    group = {"group": GROUP}
    return [
        Finding("proxies", f"runs of {runs} with recall and precision of {LEAST}",
                100 * held / runs, "%", "at least", 95.0, details),
        Finding("proxies", "inputs over inputs that were asked, median of the runs",
                statistics.median(fewer), "×", "at least", FEWER, group),
        Finding("proxies", "lowest recall", min(recalls), "", details=group),
        Finding("proxies", "lowest precision", min(precisions), "", details=group),
    ]  # fmt: skip


CASES = (Cell(GROUP, "proxies", run),)
