"""Is the sample good enough? Re-sampling until it is (QM § 4.2).

A sample is as accurate as its mesh's cost foretells the cost on tuples the search never saw
(`train._accuracy`). It is doubled until it has the accuracy asked for, or the most rows allowed; in
the latter case the most accurate mesh stands, and says so. Where no accuracy is asked for, a sample
is doubled while it leaves in doubt whether a mesh pays: it saves on unseen tuples, but no more than
chance could.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from querymesh.cost.route_time import Overheads
from querymesh.mesh.mesh import Mesh
from querymesh.optimize.train.train import nothing_to_search, train_judged
from querymesh.optimize.train.training import Training
from querymesh.query.model import Query
from querymesh.stats.profile import Profile

log = logging.getLogger("querymesh")

Take = Callable[[int, int], Profile]
"""From a number of rows and a seed to the profile of a sample; fewer if the source has no more."""


def train_until_accurate(
    query: Query,
    take: Take,
    overheads: Overheads,
    training: Training | None = None,
    *,
    one_route: bool = False,
    doublings: int = 0,
) -> Mesh:
    """The mesh of the first sample as accurate as `training.accuracy` asks; if nothing is asked, of
    the first sample that leaves no doubt whether another mesh would pay, or of the largest after so
    many `doublings`.

    Each sample is drawn anew, with a seed of its own, and is twice as large as the one before. An
    accuracy that cannot be measured, since no tuple could be kept back, is not reached.
    """
    training = training or Training()
    rows, best = training.sample_rows, None
    for attempt in range(64):
        profile = take(rows, training.seed + attempt)
        trained = train_judged(query, profile, overheads, training, one_route=one_route)
        mesh = trained.mesh
        whole = profile.rows < rows or rows >= training.most_sample_rows
        if nothing_to_search(profile, one_route):
            return mesh
        if training.accuracy is None:
            if not trained.in_doubt or attempt >= doublings or whole:
                return mesh
            rows = min(2 * rows, training.most_sample_rows)
            continue
        if mesh.accuracy is not None and mesh.accuracy >= training.accuracy:
            return mesh.found(f"{mesh.found_by}; {_reached(mesh, training)}", mesh.accuracy)
        if best is None or _measured(mesh) >= _measured(best):
            best = mesh
        if whole:
            break
        rows = min(2 * rows, training.most_sample_rows)
    assert best is not None
    return _not_reached(best, training, profile.rows, profile.rows < rows)


def _measured(mesh: Mesh) -> float:
    return -1.0 if mesh.accuracy is None else mesh.accuracy


def _reached(mesh: Mesh, training: Training) -> str:
    return (
        f"a sample of {mesh.sample_rows:,} rows has accuracy {mesh.accuracy:.3f}, "
        f"{training.accuracy:g} was asked for"
    )


def _not_reached(mesh: Mesh, training: Training, last_rows: int, whole: bool) -> Mesh:
    """The best mesh there is, with the warning that its sample is not what was asked for."""
    limit = (
        f"all {last_rows:,} rows of the source were taken"
        if whole
        else f"the limit is most_sample_rows={training.most_sample_rows:,}"
    )
    has = "is too small to measure it" if mesh.accuracy is None else f"has {mesh.accuracy:.3f}"
    text = (
        f"accuracy {training.accuracy:g} was asked for and not reached: the best sample, of "
        f"{mesh.sample_rows:,} row{'' if mesh.sample_rows == 1 else 's'}, {has}, and {limit}"
    )
    log.warning("%s; going on with that sample's mesh", text)
    found = mesh.found(f"{mesh.found_by}; {text}", mesh.accuracy)
    return replace(found, why=f"{mesh.why} ({text})")
