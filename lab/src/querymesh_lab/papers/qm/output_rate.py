"""QM Figures 10a to 10c: output rate, time a tuple and overhead, with the paper's own parameters.

The query is the join of ten windowed streams (`ten_streams`); what holds with other windows, steps,
matches and kinds is told by `grid`. Beside it stands the same idea with static partners
(`ten_way`), whose probes cost some twenty times as much.

The paper's parameters are those of Tables 1 and 3: 1,000 tuples are sampled, condensed to 10, and
1,000 of a stream taken at a time; three partitions. It prints no window: in the 25 minutes that
each of its runs lasted 3,000 tuples of a stream arrived, and a window of a third of them is taken
here. It prints no matches either: 3 are taken, as in the middle of the grid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from querymesh.fabric.core.metrics import Metrics
from querymesh.mesh.join_mesh import JoinMesh
from querymesh.optimize.train.training import Training
from querymesh.stats.profile import route_text
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.finding import timing_details
from querymesh_lab.bench.joins.core_run import CoreRun
from querymesh_lab.bench.measure import Timing
from querymesh_lab.papers.claim import Claim, Result
from querymesh_lab.papers.qm import rivals
from querymesh_lab.papers.qm.rivals import (
    QM,
    SP,
    LookUpRace,
    LookUpSubject,
    race,
    train_rivals,
)
from querymesh_lab.papers.qm.ten_way import SOURCE, TenWay
from querymesh_lab.papers.qm.windows.stream_rivals import (
    MR,
    MR_BATCHES,
    STEP,
    Profiles,
    StreamSubject,
    eddies,
    on_meshes,
    probes_a_tuple,
    race_core,
    race_jobs,
    train_stream_rivals,
)
from querymesh_lab.papers.qm.windows.ten_streams import TenStreams

IN_WINDOW = 1_000
SAMPLE = 1_000
POISSON = TenStreams("poisson", in_window=IN_WINDOW)
UNIFORM = TenStreams("uniform", in_window=IN_WINDOW, matches=1.0)
"""At Poisson's matches and no partition to find little, ten joins would multiply tuples."""

LOOK_UPS = TenWay("poisson")
WINDOWS = 20.0
"""Length of the streams; the first of them fills the states."""

FITTED = "the matches, after 1.25 had shown next to no results"

EDDY_RATES = {
    ("poisson", MR): 1.27,
    ("poisson", MR_BATCHES): 1.18,
    ("uniform", MR): 1.39,
    ("uniform", MR_BATCHES): 1.24,
}
"""The paper's output rate of QM over that of the Eddy (§ 6.2)."""


@dataclass(frozen=True)
class OutputRates:
    """One data set's race, for the rows and the plots."""

    data: str
    core: Timing
    job: Timing
    last: Mapping[str, CoreRun]
    details: dict[str, Any]

    @property
    def rate(self) -> float:
        """Results a second of QM over those of SP, inside the join core."""
        return self.core.ratio(SP, QM)

    @property
    def job_rate(self) -> float:
        """Results a second of QM over those of SP, over the whole Spark job."""
        return self.job.ratio(SP, QM)

    @property
    def probes_saved(self) -> float:
        """SP's probes over QM's, counted in the race."""
        return self.last[SP].probes_a_tuple / self.last[QM].probes_a_tuple

    def results_per_second(self) -> dict[str, float]:
        """Each rival's output rate, for the reader's sense of size."""
        seconds = self.core.median_seconds()
        return {n: self.last[n].metrics.rows_out / seconds[n] for n in (QM, SP)}

    def us_a_tuple(self) -> dict[str, float]:
        """Each rival's execution time per tuple."""
        seconds = self.core.median_seconds()
        return {n: 1e6 * seconds[n] / self.last[n].metrics.rows_in for n in (QM, SP)}


def measure(bench: Bench, design: TenStreams) -> OutputRates:
    """Train and race both rivals on one data set."""
    what = design.distribution
    bench.log(f"  {what}: data, profiles, training …")
    subject = StreamSubject(design, 2.0 if bench.quick else WINDOWS)
    seen, unseen = seen_and_unseen(subject.profiles(2 * bench.rows(SAMPLE, 500)))
    training = Training.preset("table-1")
    meshes = train_stream_rivals(subject.join, seen, training=training)
    bench.log(f"  {what}: routes by stream {_route_counts(meshes[QM])}")
    rounds = bench.rounds(5, 1)
    core, last = race_core(subject, {**on_meshes(meshes), **eddies()}, rounds, bench.log)
    job = race_jobs(bench, subject, meshes, rounds)
    details = {
        "data": asdict(design),
        "rows": last[QM].metrics.rows_in,
        "step_rows": STEP,
        "routes": {name: _routes(mesh) for name, mesh in meshes.items()},
        "mesh_why": {alias: mesh.why for alias, mesh in meshes[QM].meshes.items()},
        "probes_QM": round(last[QM].probes_a_tuple, 4),
        "probes_SP": round(last[SP].probes_a_tuple, 4),
        "probes_MR": round(last[MR].probes_a_tuple, 4),
        "results_a_tuple": _a_row(last[QM].metrics.rows_out, last[QM].metrics),
        "comparisons_a_probe": {
            name: round(last.metrics.comparisons / max(last.metrics.evaluations, 1), 4)
            for name, last in last.items()
        },
        "state_bytes": last[QM].state_bytes,
        "state_rows": last[QM].state_rows,
        "unseen_probes_a_tuple": asdict(probes_a_tuple(design, unseen, meshes)),
        "results_by_cpu_second": {name: last.curve for name, last in last.items()},
        "core": timing_details(core),
        "job": timing_details(job),
    }
    return OutputRates(what, core, job, last, details)


def seen_and_unseen(profiles: Profiles) -> tuple[Profiles, Profiles]:
    """Half of each profile to train from, and half to count on."""
    halves = [
        {alias: p.take(np.arange(first, p.rows, 2)) for alias, p in profiles.items()}
        for first in (0, 1)
    ]
    return halves[0], halves[1]


def _routes(mesh: JoinMesh) -> dict[str, list[str]]:
    return {
        alias: [route_text(route) for route in of.leaf_routes] for alias, of in mesh.meshes.items()
    }


def _route_counts(mesh: JoinMesh) -> str:
    return " ".join(str(len(routes)) for routes in mesh.routes.values())


def _a_row(count: float, metrics: Metrics) -> float:
    return round(count / max(metrics.rows_in, 1), 4)


def race_look_ups(bench: Bench, design: TenWay) -> LookUpRace:
    """The rivals with static partners, whose keys are pseudonyms: probes of some microseconds."""
    bench.log("  look-ups: data, profile, training …")
    table = design.source(bench.rows(200_000, 10_000))[0]
    subject = LookUpSubject(design.query(), SOURCE, table, design.partner_tables())
    meshes = train_rivals(subject, subject.profile(rivals.SAMPLE))
    return race(bench, subject, meshes, bench.rounds(7, 1))


def overhead_percent(metrics: Metrics) -> tuple[float, float]:
    """Classifying (the paper's own measure) and everything but operators and output, in percent."""
    total = metrics.total_seconds
    operators = sum(visits.seconds for visits in metrics.by_operator().values())
    rest = total - operators - metrics.output_seconds
    return 100 * metrics.classify_seconds / total, 100 * rest / total


def results(
    poisson: OutputRates,
    uniform: OutputRates,
    look_ups: LookUpRace,
    sensitivity: list[dict[str, float]],
) -> list[Result]:
    """The claims of Figures 10a, 10b and 10c; the sensitivity stands in the first one's details."""
    gain = Claim("qm", "10a", "Poisson: output rate, QM over SP", 1.44)
    kept = Claim("qm", "10a", "uniform: output rate, QM over SP", 0.978, sense="at least")
    per_tuple = "time a tuple, SP over QM"
    first = _rate(gain, poisson)
    return [
        replace(first, details={**first.details, "sensitivity": sensitivity}),
        _on_spark(gain, poisson),
        _probes(poisson),
        _with_look_ups(gain, look_ups),
        _rate(kept, uniform),
        _on_spark(kept, uniform),
        *(_eddy_rate(rates, name) for rates in (poisson, uniform) for name in (MR, MR_BATCHES)),
        _rate(Claim("qm", "10b", f"Poisson: {per_tuple}", 1.44), poisson),
        _rate(Claim("qm", "10b", f"uniform: {per_tuple}", 0.978, sense="at least"), uniform),
        *_overheads(poisson),
        *_eddy_overheads(poisson),
    ]


def _rate(claim: Claim, rates: OutputRates) -> Result:
    details = {
        **rates.details,
        "results_per_second": rates.results_per_second(),
        "us_a_tuple": rates.us_a_tuple(),
    }
    note = "the join core alone, by processor time"
    return Result(claim, rates.rate, rates.core.a_a, note, details, fitted=FITTED)


def _on_spark(claim: Claim, rates: OutputRates) -> Result:
    asked = replace(claim, claim=f"{claim.claim}, whole Spark job")
    note = "with Spark's own work and the way of every tuple to Python and back"
    return Result(asked, rates.job_rate, rates.job.a_a, note, rates.details)


def _probes(rates: OutputRates) -> Result:
    asked = Claim("qm", "10a", "Poisson: probes a tuple, SP over QM", None)
    note = "counted: the machine enters only by the costs that training weighs"
    return Result(asked, rates.probes_saved, None, note, rates.details)


def _with_look_ups(claim: Claim, raced: LookUpRace) -> Result:
    asked = replace(claim, claim=f"{claim.claim}, static partners under keyed hashes")
    note = "no windows: S0 with ten look-up tables, some 2 µs a probe, inside the fabric"
    details = {
        **{f"probes_{name}": _a_row(m.evaluations, m) for name, m in raced.last.items()},
        "fabric": timing_details(raced.fabric),
        "job": timing_details(raced.job),
    }
    return Result(asked, raced.fabric.ratio(SP, QM), raced.fabric.a_a, note, details)


def _overheads(rates: OutputRates) -> list[Result]:
    classify, rest = overhead_percent(rates.last[QM].metrics)
    us = {"us_a_tuple": rates.us_a_tuple()}
    asked = Claim("qm", "10c", "Poisson: overhead of QM, classifying", 2.0, "%", "at most")
    return [
        Result(asked, classify, None, "share of the core's time", us),
        Result(
            replace(asked, claim="Poisson: overhead of QM, all but operators and output"),
            rest,
            None,
            "stricter than the paper, which counts classifying alone",
            us,
        ),
    ]


def _eddy_rate(rates: OutputRates, name: str) -> Result:
    paper = EDDY_RATES[rates.data, name]
    asked = Claim("qm", "10a", f"{rates.data.capitalize()}: output rate, QM over {name}", paper)
    last = rates.last
    probes = {of: round(last[of].probes_a_tuple, 4) for of in (QM, SP, name)}
    note = "the join core alone, by processor time; the Eddy learns within the run"
    ratio = rates.core.ratio(name, QM)
    return Result(asked, ratio, rates.core.a_a, note, {"probes_a_tuple": probes})


def _eddy_overheads(rates: OutputRates) -> list[Result]:
    """What deciding and learning take of the Eddy's time, and what is neither operator nor output.

    The paper's 20 % is of the second kind: tuples going back to the Eddy after each operator.
    """
    made = []
    for name in (MR, MR_BATCHES):
        metrics = rates.last[name].metrics
        decided = 100 * (metrics.routing_seconds + metrics.learning_seconds) / metrics.total_seconds
        rest = overhead_percent(metrics)[1]
        asked = Claim(
            "qm",
            "10c",
            f"Poisson: overhead of {name}, all but operators and output",
            20.0 if name == MR else None,
            "%",
            neutral=overhead_percent(rates.last[QM].metrics)[1],
        )
        split = {
            "deciding_percent": round(100 * metrics.routing_seconds / metrics.total_seconds, 3),
            "learning_percent": round(100 * metrics.learning_seconds / metrics.total_seconds, 3),
            "routing_calls": metrics.routing_calls,
        }
        note = f"of it {decided:.2g} % deciding and learning; even is QM's own"
        made.append(Result(asked, rest, None, note, split))
    return made
