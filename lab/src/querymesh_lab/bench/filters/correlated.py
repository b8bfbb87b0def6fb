"""Case (c): what marginal selectivities get wrong, in evaluations that no machine changes.

- `marginals`: two conditions drop the same 60 %, so after one of them the other drops nothing; a
  third drops 45 %, but most of what they leave. Ranked by marginals the twins come first and
  second, where the second is wasted. Each class has three such conditions of its own, and passes
  nearly all of the other class's three.
- `pooled`: in one half of the data condition 1 drops nearly all, in the other half condition 2; the
  third drops 75 % of both. Pooled, the third looks best and goes first, wrong for both halves.

Costs are declared equal, so that evaluations are what training minimises.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import querymesh as qm
from querymesh.arrays import Bools, Ints
from querymesh.optimize.routes.dynamic_programming import exact_route
from querymesh.query.predicate.predicate import Predicate
from querymesh.stats.profile import Profile, survivors
from querymesh_lab.bench.case import Bench
from querymesh_lab.bench.data.classed import ClassedRows, describing_columns
from querymesh_lab.bench.filters.contest import FilterQuestion, prepare
from querymesh_lab.bench.finding import Finding

CASE = "correlated"
RELATION = "Readings"
DECLARED_US = 20.0


def marginals(rows: int, seed: int = 0) -> ClassedRows:
    """Of three conditions two are twins that drop the same rows; each class has its own three."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2, rows)
    twin = rng.random(rows) < 0.40
    other = rng.random(rows) < np.where(twin, 0.10, 0.85)
    almost_twin = np.where(rng.random(rows) < 0.98, twin, ~twin)
    telling = np.column_stack([twin, almost_twin, other])
    idle = rng.random((rows, 3)) < 0.95
    first, second = np.hstack([telling, idle]), np.hstack([idle, telling])
    return _readings(classes, np.where(classes[:, None] == 0, first, second), rng)


def pooled(rows: int, seed: int = 0) -> ClassedRows:
    """Two halves, each with a condition of its own that should go first."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 2, rows)
    rates = np.array([[0.05, 0.95, 0.25, 0.95], [0.95, 0.05, 0.25, 0.95]])
    return _readings(classes, rng.random((rows, 4)) < rates[classes], rng)


DESIGNS: dict[str, Callable[[int], ClassedRows]] = {"marginals": marginals, "pooled": pooled}


def _readings(classes: Ints, passes: Bools, rng: np.random.Generator) -> ClassedRows:
    """A code per condition that says whether it holds, but not to a classifier's threshold."""
    columns = describing_columns(classes, rng)
    pool = rng.integers(0, 1 << 40, 4096)
    holding, failing = pool[mixed_bit(pool)], pool[~mixed_bit(pool)]
    for k in range(passes.shape[1]):
        yes, no = rng.choice(holding, len(classes)), rng.choice(failing, len(classes))
        columns[f"x{k + 1}"] = pa.array(np.where(passes[:, k], yes, no))
    return ClassedRows(pa.table(columns), classes, passes)


def mixed_bit(codes: Ints) -> Bools:
    """One bit of each code after mixing: a fair coin, of which a range of codes knows nothing."""
    # Another multiplier than `classify.partitions` hashes by, or CBR could read the verdict off.
    spread = codes.astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93)
    return (spread >> np.uint64(63)).astype(bool)


def holds(codes: pa.Array) -> Bools:
    """Which values pass the condition."""
    return mixed_bit(np.asarray(codes))


def functions(count: int) -> dict[str, Predicate]:
    """Cheap conditions with a declared cost, as one declares money or tokens."""
    return {
        f"holds{k}": qm.predicate(holds, columns=[f"x{k}"], name=f"holds{k}", cost_us=DECLARED_US)
        for k in range(1, count + 1)
    }


def run(bench: Bench) -> list[Finding]:
    """Counted evaluations of the trained mesh over the class oracle's."""
    return [_run(bench, name, make) for name, make in DESIGNS.items()]


def _run(bench: Bench, name: str, make: Callable[[int], ClassedRows]) -> Finding:
    data = make(bench.rows(200_000, 20_000))
    count = data.passes.shape[1]
    conditions = " AND ".join(f"holds{k}(x{k})" for k in range(1, count + 1))
    contest = prepare(
        bench,
        FilterQuestion(
            RELATION,
            f"SELECT id, channel FROM {RELATION} WHERE {conditions}",
            data.table,
            functions(count),
            classes=data.classes,
            passes=data.passes,
        ),
    )
    answer = contest.run(contest.mesh, "mesh")()
    contest.check_rows({"best single": contest.result(contest.single)})
    contest.close()
    mesh, oracle = contest.effort("mesh", contest.mesh), contest.limits.oracle
    assert oracle is not None
    expected = int(data.passes.all(axis=1).sum())
    if answer[0] != expected:
        raise AssertionError(f"{answer[0]} rows came out where {expected} were designed")
    details = {
        **contest.details(),
        "by_marginals": marginal_order_evaluations(contest.profile),
        "by_marginals_of_each_class": by_class_marginals(contest.profile, data.classes),
        "mesh_us_over_oracle_us": round(mesh.us / oracle.us, 4),
    }
    return Finding(
        CASE, f"{name}: evaluations of the mesh against the class oracle's",
        mesh.evaluations / oracle.evaluations, "×", "at most", 1.05, details,
    )  # fmt: skip


def marginal_order_evaluations(profile: Profile) -> float:
    """Evaluations a row in the order that marginal selectivities suggest, for comparison."""
    rates = profile.pass_rates()
    independent = survivors(rates[None, :], np.zeros(1, dtype=np.int64), 1)[0]
    route, _ = exact_route(independent, profile.drop_us, profile.pass_us, profile.after)
    return float(profile.arriving(route).sum(axis=1).mean())


def by_class_marginals(profile: Profile, classes: Ints) -> float:
    """The same with the classes known: what is left to lose when only correlation is ignored."""
    rows = [np.flatnonzero(classes == label) for label in np.unique(classes)]
    total = sum(len(own) * marginal_order_evaluations(profile.take(own)) for own in rows)
    return total / profile.rows
