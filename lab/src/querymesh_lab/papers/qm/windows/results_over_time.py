"""QM Figures 11a and 11b on windowed streams: the results of each rival over processor time.

The core takes step after step as a task does, as fast as it can, until its time is up or a rival
has come through all; rivals take turns, and what each had at the same time is compared. 11a is
the join of ten streams with the paper's own parameters (`output_rate`), 11b the Lab data as four
streams by place (`amri_lab`): sensors in close proximity are one stream, as § 6.1 has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa

from querymesh.fabric.join.join_fabric import JoinFabric
from querymesh.fabric.profile.join_profile import SampledJoin
from querymesh.optimize.train.training import Training
from querymesh.query.join import JoinQuery
from querymesh.runtime.join_step import JoinSteps
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.joins.core_run import Routers, Streams, as_batches, steps, take_step
from querymesh_lab.papers.amri.amri_lab import lab_streams
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.qm.output_rate import POISSON, SAMPLE
from querymesh_lab.papers.qm.over_time import AGAIN, PAPER_SECONDS, Curve, OverTime, ratio
from querymesh_lab.papers.qm.rivals import QM, SP
from querymesh_lab.papers.qm.windows.stream_rivals import (
    EDDIES,
    STEP,
    Profiles,
    StreamSubject,
    eddies,
    on_meshes,
    train_stream_rivals,
)

SECONDS = 2.0
"""Processor time of a turn."""

TURNS = 5
WINDOWS = 150.0
LAB_SAMPLE = 4_000
QUICK_LAB = 20
"""By how much the Lab data are shorter in a quick run."""


@dataclass(frozen=True)
class WindowedSubject:
    """A join, its streams, and what its probes did with tuples of others like them."""

    name: str
    join: JoinQuery
    streams: Streams
    profiles: Profiles


def ten_streams(quick: bool) -> WindowedSubject:
    """Figure 11a's subject."""
    design = replace(POISSON, in_window=200, streams=5) if quick else POISSON
    subject = StreamSubject(design, 10.0 if quick else WINDOWS)
    streams = as_batches({name.lower(): table for name, table in subject.tables().items()})
    profiles = subject.profiles(200 if quick else SAMPLE)
    return WindowedSubject("Poisson, windows", subject.join, streams, profiles)


def lab(folder: Path, quick: bool) -> WindowedSubject:
    """Figure 11b's subject."""
    join, training, streams = lab_streams(folder, QUICK_LAB if quick else 1)
    sampled = SampledJoin(join, dict(training), {})
    rows = 200 if quick else LAB_SAMPLE
    profiles = {alias: sampled.profile(alias, rows, seed=0) for alias in join.aliases}
    return WindowedSubject("Lab data, windows", join, streams, profiles)


def watch(bench: Bench, subject: WindowedSubject) -> OverTime:
    """Each rival in turns: QM, SP, both Eddies, QM again; then from the next on."""
    join = subject.join
    training = Training.preset("table-1")
    meshes = train_stream_rivals(join, subject.profiles, training=training)
    rivals: dict[str, Routers] = {**on_meshes(meshes), **eddies()}
    rivals[AGAIN] = rivals[QM]
    turns, seconds = bench.rounds(TURNS, 1), 0.05 if bench.quick else SECONDS
    seen = OverTime(turns * seconds)
    names = list(rivals)
    take = partial(results_over_time, join, subject.streams, step_rows=STEP, seconds=seconds)
    take(rivals[QM])  # compiles what is not compiled yet
    for turn in range(turns):
        first = turn % len(names)
        curves = {name: take(rivals[name]) for name in names[first:] + names[:first]}
        until_s = min(curve[-1][0] for curve in curves.values())
        for name, curve in curves.items():
            at, before = seen.curves.setdefault(name, [(0.0, 0)])[-1]
            seen.curves[name] += [(at + spent, before + made) for spent, made in curve]
            made = made_by(curve, until_s)
            seen.fabric_rates.setdefault(name, []).append(made / until_s)
            bench.log(f"  {subject.name}, {name}: {made:,.0f} results in {until_s:.2f} s")
    return seen


def made_by(curve: Curve, at_s: float) -> float:
    """The results that a rival had at some time, between two steps in proportion."""
    seconds, made = zip((0.0, 0), *curve, strict=True)
    return float(np.interp(at_s, seconds, made))


def results_over_time(
    join: JoinQuery, streams: Streams, make_routers: Routers, *, step_rows: int, seconds: float
) -> Curve:
    """Processor seconds and results so far after each step, until the time is up."""
    fabric = JoinFabric(join)
    core = JoinSteps(fabric, make_routers(fabric), None, tunes=False)
    spent, made, curve = 0.0, [0], []

    def sink(batch: pa.RecordBatch) -> None:
        made[0] += batch.num_rows

    for step in steps(join, streams, step_rows):
        started = process_time()
        core.forget(take_step(core, step, sink))
        spent += process_time() - started
        curve.append((spent, made[0]))
        if spent >= seconds:
            break
    return curve


def results(figure: str, subject: str, seen: OverTime) -> list[Result]:
    """Results of QM over those of each rival at the same time; the paper prints no number."""
    rates = seen.fabric_rates
    a_a = ratio(rates, AGAIN, QM)
    note = (
        f"the join core by processor time, steps of {STEP:,}; {seen.seconds:g} s stand for the "
        f"paper's {PAPER_SECONDS / 60:g} minutes"
    )
    details = {"results_per_second": rates, "seconds": seen.seconds}
    return [
        Result(Claim("qm", figure, f"{subject}: results by the end, QM over {rival}", None),
               ratio(rates, QM, rival), a_a, note, details)
        for rival in (SP, *EDDIES)
    ]  # fmt: skip
