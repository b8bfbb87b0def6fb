"""A stream without Spark: batches of generated tuples on a mesh that a `Watch` watches."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from profiles import profile_of
from querymesh.classify.tree import attributes_of, leaves_of
from querymesh.cost.route_time import Overheads
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.adapt.adapt import Adaptation
from querymesh.optimize.adapt.budget import rows_to_profile
from querymesh.optimize.adapt.watch import Observation, Switch, Watch
from querymesh.optimize.train.train import train_mesh
from querymesh.optimize.train.training import Training
from querymesh.query.parse.query import query
from querymesh.stats.costs import Timing

OVERHEADS = Overheads(node_us=0.005, ruster_us=20.0, window=10_000)
QUERY = query("SELECT * FROM t")
KINDS = np.array(list("abcdefgh"))

OPPOSITE = np.where(np.eye(3), 0.1, 0.9)
"""What each operator (across) passes of each kind (down): each kind has one that drops it."""


def tuples(rng, rows, passes, cost_us=None):
    """The profile of generated tuples; `kind` tells what drops a tuple, `noise` tells nothing."""
    kind = rng.integers(0, len(passes), rows)
    outcomes = (rng.random((rows, passes.shape[1])) < passes[kind]).astype(float)
    sample = pa.table({"kind": pa.array(KINDS[kind]), "noise": rng.normal(size=rows)})
    return profile_of(outcomes, cost_us, sample=sample)


def visits_of(mesh, profile, cost_us=None):
    """What each operator does in each leaf of the mesh, as the fabric counts it."""
    columns = {
        name: profile.sample.column(name).combine_chunks() for name in attributes_of(mesh.tree)
    }
    visits = {}
    reached = leaves_of(mesh.tree, columns.__getitem__, profile.rows)
    for leaf, (arrived, route) in enumerate(zip(reached, mesh.leaf_routes, strict=True)):
        here = arrived
        for operator in route:
            passed = here[profile.outcomes[here, operator - 1] > 0]
            us = cost_us[operator - 1] if cost_us is not None else 0.0
            visits[leaf, operator] = Timing(1, len(here), len(passed), 1e-6 * us * len(here))
            here = passed
    return visits


def oracle_evaluations(profile, passes):
    """The evaluations of the best order of each kind, known beforehand, at equal costs."""
    total = 0.0
    for kind, rates in enumerate(passes):
        rows = np.flatnonzero(np.asarray(profile.sample["kind"]) == KINDS[kind])
        order = tuple(int(k) + 1 for k in np.argsort(rates, kind="stable"))
        total += profile.arriving(order)[rows].sum()
    return total


@dataclass
class Course:
    """What became of a simulated stream."""

    mesh: Mesh
    switches: list[Switch] = field(default_factory=list)
    of_oracle: list[float] = field(default_factory=list)
    """Each batch's evaluations, over those of the oracle."""
    evaluations: float = 0.0
    profile_evaluations: float = 0.0
    overspent: bool = False


def stream(
    regimes,
    *,
    seed=0,
    batches=40,
    rows=2000,
    one_route=False,
    adaptation=None,
    cost_us=None,
    mesh=None,
):
    """Run a trained mesh through batches whose tuples follow one regime after the other.

    `cost_us(batch)` is what an evaluation of each operator takes, if costs are measured; the mesh
    was trained when each took 10.
    """
    rng = np.random.default_rng(seed)
    adaptation, training = adaptation or Adaptation(), Training(seed=seed)
    if mesh is None:
        known_us = np.full(regimes[0].shape[1], 1.0 if cost_us is None else 10.0)
        sample = tuples(rng, 1500, regimes[0], known_us)
        mesh = train_mesh(QUERY, sample, OVERHEADS, training, one_route=one_route)
    measured = [cost_us is not None] * len(mesh.operators)
    watch = Watch(mesh, OVERHEADS, training, adaptation, one_route, measured)
    course = Course(mesh)
    for batch in range(batches):
        passes = regimes[batch * len(regimes) // batches]
        profile = tuples(rng, rows, passes)
        visits = visits_of(course.mesh, profile, cost_us(batch) if cost_us else None)
        by_operator = np.zeros(profile.operators)
        for (_, operator), timing in visits.items():
            by_operator[operator - 1] += timing.evaluations
        share, most = watch.ask.for_task(batch, 0)
        wanted = rows_to_profile(share, most, rows, rng)
        sampled = profile.take(np.sort(rng.choice(rows, wanted, replace=False)))
        course.evaluations += by_operator.sum()
        course.profile_evaluations += wanted * profile.operators
        course.overspent |= course.profile_evaluations > adaptation.budget * course.evaluations
        course.of_oracle.append(by_operator.sum() / oracle_evaluations(profile, passes))
        profiled = np.full(profile.operators, float(wanted))
        watch.observe(
            Observation(batch, rows, 1, visits, by_operator, profiled, [sampled] * (wanted > 0))
        )
        look = watch.look()
        finding = look.finding() if look else None
        if finding is not None:
            course.switches.append(look.switch(finding, len(course.switches) + 1, batch))
            course.mesh = finding.mesh
            watch.installed(finding.mesh)
    return course
