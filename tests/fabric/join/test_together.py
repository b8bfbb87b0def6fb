"""Streams whose tuples probe together, against the same streams one after the other."""

import random
from collections import Counter
from unittest import mock

from hypothesis import event, given
from hypothesis import strategies as st

from querymesh.fabric.core.router import MeshRouter
from querymesh.fabric.join.join_fabric import JoinFabric, static_stems
from querymesh.fabric.join.together import Together
from querymesh.runtime.join_step import JoinSteps
from soak import random_cases
from window_cases import as_multiset, window_cases
from window_runs import (
    at_most,
    bound,
    changed_indices,
    inputs_of_step,
    random_indices,
    random_mesh,
    runs,
)


def stepped(case, run):
    """What all steps of a run give, and the metrics by stream."""
    join = bound(case)
    fabric = JoinFabric(
        join, static_stems(join, {r.alias: case.inputs[r.name] for r in case.statics})
    )
    rng = random.Random(run.seed)
    routers = {alias: MeshRouter(random_mesh(rng, join, alias, False)) for alias in fabric.views}
    steps = JoinSteps(fabric, routers, random_indices(rng, fabric))
    found = Counter()
    for number in range(run.steps):
        batches, places = inputs_of_step(case, run, number)
        changed_indices(rng, steps.indices)
        for batch in steps.step(steps.arrivals(batches, places)):
            found.update(as_multiset(batch))
    return found, {alias: view.metrics for alias, view in fabric.views.items()}


def counted(metrics):
    """What is counted of a view, without seconds."""
    visits = {
        key: (each.evaluations, each.passed, each.comparisons)
        for key, each in metrics.visits.items()
        if each.evaluations
    }
    return metrics.rows_in, metrics.rows_out, metrics.output_errors, visits


@random_cases(40, 60)
@given(st.data())
def test_streams_that_probe_together_give_and_count_what_they_do_one_by_one(data):
    case = data.draw(window_cases(most_streams=4))
    run = data.draw(runs(case))
    with at_most(run.most_rows):
        found, together = stepped(case, run)
        with mock.patch.object(Together, "arrived", return_value=None):
            wanted, apart = stepped(case, run)
    event("has results" if wanted else "has none")
    assert found == wanted
    assert {a: counted(m) for a, m in together.items()} == {a: counted(m) for a, m in apart.items()}
