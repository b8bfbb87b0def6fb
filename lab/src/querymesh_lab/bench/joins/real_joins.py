"""Joins of real streams: rooms of the Intel lab, and ticks of two currencies.

No targets: nobody arranged these data, and whatever comes out is said. Each question is answered by
the join core (`core_run`) on the routes of a mesh and on MJoin's best single order for each stream,
both learned from the first part of the excerpt; every answer must be DuckDB's over the whole of it.

| question | streams | asked for |
| --- | --- | --- |
| two halves of the lab | west, east | readings of one round, equally warm, brighter in the west |
| four quarters | nw, ne, sw, se | equally warm all four; equally damp across the north and across \
the south; the north-west no darker than the south-west |
| two currencies | eurusd, nzdusd | ticks that moved the same way in the same minute, the euro's \
further |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from querymesh.arrays import Ints
from querymesh.fabric.profile.calibrate_join import overheads_for
from querymesh.fabric.profile.join_profile import SampledJoin
from querymesh.mesh.mesh import Mesh, written_mesh
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.bind.windowed_join import bind_join
from querymesh.query.join import JoinQuery
from querymesh.query.parse.query import query
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data import intel_lab
from querymesh_lab.bench.data.real_folder import folder_with, skipped
from querymesh_lab.bench.data.real_streams import (
    PAIRS,
    halves,
    lab_readings,
    quarters,
    ticks,
)
from querymesh_lab.bench.finding import Finding, timing_details
from querymesh_lab.bench.joins.core_run import CoreRun, as_batches, by_meshes, run_core
from querymesh_lab.bench.measure import Log, RivalsDisagreeError, interleave

CASE = "real joins"
SAMPLED = 0.25
"""Share of the excerpt, from its beginning, that is learned from."""

PROFILED = 2000
MESH, SINGLE = "mesh", "single"


@dataclass(frozen=True)
class JoinQuestion:
    """A join of streams by name, each within the same window; every stream has `id` and `ts`."""

    name: str
    streams: Mapping[str, pa.Table]
    window_s: int
    conditions: tuple[str, ...]
    step_rows: int = 5_000

    @property
    def sql(self) -> str:
        """The question in our own words; the result is the members' ids."""
        names = list(self.streams)
        relations = ", ".join(f"{n.upper()} {n} [RANGE {self.window_s} SECONDS]" for n in names)
        ids = ", ".join(f"{name}.id AS id_{name}" for name in names)
        return f"SELECT {ids} FROM {relations} WHERE {' AND '.join(self.conditions)}"

    @property
    def join(self) -> JoinQuery:
        """The question with its columns known."""
        schemas = {name.upper(): table.schema for name, table in self.streams.items()}
        return bind_join(query(self.sql, time="ts"), schemas)

    @property
    def rows(self) -> int:
        """How many tuples all streams have together."""
        return sum(table.num_rows for table in self.streams.values())

    def duckdb_sql(self) -> str:
        """The exact result from the definition of a window.

        Slots as long as the window only find candidates faster: two tuples within a window lie in
        the same slot or in neighbours, and each copy of the second meets one slot of the first.
        """
        first, *others = self.streams
        slot = f"epoch_us(ts) // {self.window_s * 1_000_000}"
        text = f"(SELECT *, {slot} AS slot FROM {first.upper()}) {first}"
        for name in others:
            near = f"unnest([{slot} - 1, {slot}, {slot} + 1]) AS near"
            text += f" JOIN (SELECT *, {near} FROM {name.upper()}) {name}"
            text += f" ON {first}.slot = {name}.near"
        newest = "greatest(" + ", ".join(f"epoch_us({name}.ts)" for name in self.streams) + ")"
        window = [
            f"{newest} - epoch_us({name}.ts) <= {self.window_s * 1_000_000}"
            for name in self.streams
        ]
        ids = ", ".join(f"{name}.id" for name in self.streams)
        return f"SELECT {ids} FROM {text} WHERE {' AND '.join([*self.conditions, *window])}"


def lab_questions(folder: Path, rows: int | None) -> list[JoinQuestion]:
    """The questions about two halves and four quarters of the lab."""
    readings = lab_readings(folder, rows)
    return [
        JoinQuestion(
            "lab, two halves",
            halves(readings),
            60,
            ("west.epoch = east.epoch", "west.warmth = east.warmth", "west.light > east.light"),
        ),
        JoinQuestion(
            "lab, four quarters",
            quarters(readings),
            30,
            (
                "nw.warmth = ne.warmth",
                "nw.warmth = sw.warmth",
                "nw.warmth = se.warmth",
                "nw.damp = ne.damp",
                "sw.damp = se.damp",
                "nw.light >= sw.light",
            ),
        ),
    ]


def tick_question(folder: Path, rows: int | None) -> JoinQuestion:
    """The question about ticks of two currencies against the dollar."""
    return JoinQuestion(
        "ticks, two currencies",
        {name: ticks(folder, name, rows) for name in PAIRS},
        2,
        (
            "eurusd.minute = nzdusd.minute",
            "eurusd.move = nzdusd.move",
            "eurusd.move <> 0",
            "nzdusd.move <> 0",
            "eurusd.jump > nzdusd.jump",
        ),
    )


def run_real(quick: bool, log: Log) -> list[dict[str, Any]]:
    """The questions as rows; they run on the core, without Spark."""
    command = "querymesh bench join --real" + (" --quick" if quick else "")
    return [finding.as_row(command) for finding in run(Bench(quick, log))]


def run(bench: Bench) -> list[Finding]:
    """Each question whose data are there; the others are passed over, saying so."""
    questions: list[JoinQuestion] = []
    if (folder := folder_with(intel_lab.FILES)) is not None:
        questions += lab_questions(folder, bench.rows(276_333, 8_000))
    else:
        bench.log(skipped("Lab data", "they are"))
    if (folder := folder_with(PAIRS.values())) is not None:
        questions.append(tick_question(folder, bench.rows(300_000, 8_000)))
    else:
        bench.log(skipped("currency ticks", "they are"))
    return [finding for question in questions for finding in contest(bench, question)]


@dataclass
class _Answers:
    """Runs of the core, whose clock is moved by what each run took."""

    question: JoinQuestion
    join: JoinQuery
    expected: Ints
    last: dict[str, CoreRun] = field(default_factory=dict)
    clock_s: float = 0.0

    def run(self, name: str, meshes: Mapping[str, Mesh]) -> int:
        """Run once on these meshes; the answer must be DuckDB's."""
        parts: list[Ints] = []
        streams = as_batches(self.question.streams)

        def sink(batch: pa.RecordBatch) -> None:
            parts.append(np.stack([np.asarray(column) for column in batch.columns], axis=1))

        self.last[name] = run_core(
            self.join, streams, by_meshes(meshes), self.question.step_rows, sink
        )
        self.clock_s += self.last[name].cpu_seconds
        got = in_order_of_ids(np.concatenate([self.expected[:0], *parts]))
        if not np.array_equal(got, self.expected):
            raise RivalsDisagreeError(
                f"{self.question.name}: {name} gave {len(got)} results that are not DuckDB's "
                f"{len(self.expected)}"
            )
        return len(got)


def contest(bench: Bench, question: JoinQuestion) -> list[Finding]:
    """Mesh and single order on one question, checked and interleaved."""
    join = question.join
    expected = duckdb_ids(question)
    bench.log(f"  {question.name}: {question.rows:,} rows, {len(expected):,} results")
    answers = _Answers(question, join, expected)
    meshes = learned(question, join)
    actions: dict[str, Callable[[], int]] = {
        policy: partial(answers.run, policy, of) for policy, of in meshes.items()
    }
    timing = interleave(actions, bench.rounds(5, 1), log=bench.log, clock=lambda: answers.clock_s)
    details: dict[str, Any] = {
        "rows": question.rows,
        "results": len(expected),
        "window_s": question.window_s,
        "routes": {a: len(mesh.routes) for a, mesh in meshes[MESH].items()},
        "mesh_why": {a: mesh.why for a, mesh in meshes[MESH].items()},
        **{policy: _of(run) for policy, run in answers.last.items()},
        **timing_details(timing),
    }
    counted = answers.last
    saved = counted[SINGLE].probes_a_tuple / max(counted[MESH].probes_a_tuple, 1e-9)
    speed = question.rows / timing.median_seconds()[MESH]
    return [
        Finding(CASE, f"{question.name}: results, all of them DuckDB's", len(expected), "rows",
                details=details),
        Finding(CASE, f"{question.name}: probes a tuple, single over mesh", saved, "×",
                details=details),
        Finding(CASE, f"{question.name}: processor time, single over mesh",
                timing.ratio(SINGLE, MESH), "×", details=details),
        Finding(CASE, f"{question.name}: mesh, tuples a second of processor time", speed, "rows/s",
                details=details),
    ]  # fmt: skip


def _of(run: CoreRun) -> dict[str, float]:
    return {
        "probes_a_tuple": round(run.probes_a_tuple, 4),
        "comparisons_a_tuple": round(run.metrics.comparisons / max(run.metrics.rows_in, 1), 4),
        "cpu_seconds": round(run.cpu_seconds, 4),
        "state_rows": run.state_rows,
        "state_bytes": run.state_bytes,
    }


def learned(question: JoinQuestion, join: JoinQuery) -> dict[str, dict[str, Mesh]]:
    """The routes of each stream under each policy, from one profile of the excerpt's first part."""
    sample = as_batches(
        {n: table.slice(0, int(SAMPLED * table.num_rows)) for n, table in question.streams.items()}
    )
    sampled = SampledJoin(join, sample, {})
    window = max(question.step_rows // len(join.aliases), 1)
    made: dict[str, dict[str, Mesh]] = {MESH: {}, SINGLE: {}}
    for alias, view in join.views.items():
        profile = sampled.profile(alias, PROFILED, seed=0)
        for policy, meshes in made.items():
            if len(view.operators) < 2:
                meshes[alias] = written_mesh(view)
            else:
                meshes[alias] = train_mesh(
                    join.query,
                    profile,
                    overheads_for(view, window),
                    Training(window=window),
                    one_route=policy == SINGLE,
                )
    return made


def duckdb_ids(question: JoinQuestion) -> Ints:
    """The ids of the exact result, sorted."""
    import duckdb

    connection = duckdb.connect(config={"threads": 2})
    try:
        for name, table in question.streams.items():
            connection.register(name.upper(), table)
        found = connection.execute(question.duckdb_sql()).fetchnumpy()
    finally:
        connection.close()
    return in_order_of_ids(np.stack([np.asarray(found[key], np.int64) for key in found], axis=1))


def in_order_of_ids(ids: Ints) -> Ints:
    """Rows of ids, sorted, so that equal bags are equal arrays."""
    return ids[np.lexsort(ids.T[::-1])]
